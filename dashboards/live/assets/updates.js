/* What the server has drawn for the page in view: kept here as data, changed by each message, and shown.
 *
 * A message has differences only (see updates.py and differences.py of the server).  They are applied to the data, never
 * to what is on the screen: the page may have been left while a message was on its way, and a slow browser may not have
 * shown the message before.  The screen is drawn from the newest data, where a part is on it.  A browser that is busy
 * drawing first takes all messages that wait, and then draws once: texts and tables itself (elements.js), then charts
 * (charts.js), and the rest by Dash.
 */

(function () {
  "use strict";

  var number = null; /* of the drawing that is held */
  var held = {}; /* its parts by "ID.PROPERTY" */
  var present = {}; /* parts that depend on the time; they hide drawn ones */
  var shown = {}; /* what was drawn last, by part */
  var isDue = false; /* whether a drawing is due */
  var dueAt = 0; /* since when, by the browser's clock */
  var LOST = 5000; /* milliseconds after which a drawing that was due counts as lost, and the next message draws */
  var passes = 0;
  var CHART = ".figure"; /* the end of the name of a part that is a chart */
  var INWARD = -1; /* a step of a path: from an element to what is in it */
  var SOON = 10; /* milliseconds: messages that wait come first */

  /* Returns a value after some operations.  What they do not touch stays the same object, so that a chart or a table
   * can tell what is new. */
  function changed(value, operations) {
    var copies = new Set();
    function own(thing) {
      if (copies.has(thing)) {
        return thing;
      }
      var copy = Array.isArray(thing) ? thing.slice() : Object.assign({}, thing);
      copies.add(copy);
      return copy;
    }
    var root = own(value);
    var path = [];
    operations.forEach(function (operation) {
      var inner = root;
      path = path.slice(0, operation[0][0]).concat(operation[0].slice(1));
      path.forEach(function (step) {
        if (step === INWARD) {
          inner = inner.props = own(inner.props);
          step = "children";
        }
        inner = inner[step] = own(inner[step]);
      });
      switch (operation[1]) {
        case "set":
          inner[operation[2]] = operation[3];
          break;
        case "delete":
          delete inner[operation[2]];
          break;
        case "extend":
          inner.push.apply(inner, operation[2]);
          break;
        case "drop":
          inner.splice(0, operation[2]);
          break;
        case "order":
          var before = inner.slice();
          inner.splice.apply(inner, [0, inner.length].concat(operation[2].map(function (row) {
            return typeof row === "number" ? before[row] : row;
          })));
          break;
      }
    });
    return root;
  }

  function isEqual(one, other) {
    return one === other || (typeof one === "object" && JSON.stringify(one) === JSON.stringify(other));
  }

  /* The value of a part that the screen shall show. */
  function newest(part) {
    return Object.prototype.hasOwnProperty.call(present, part) ? present[part] : held[part];
  }

  function isNew(part) {
    var value = newest(part);
    return value !== undefined && value !== shown[part] && !(part in present && isEqual(value, shown[part]));
  }

  function isChart(part) {
    return part.endsWith(CHART);
  }

  /* The figures that are held, by the ids of their charts. */
  function figures() {
    var found = {};
    Object.keys(held).forEach(function (part) {
      if (isChart(part) && held[part]) {
        found[part.slice(0, -CHART.length)] = held[part];
      }
    });
    return found;
  }

  /* The element whose children a part is, where this page draws them itself; null: Dash draws the part. */
  function ownPlace(part) {
    var found = /^(.*)\.children$/.exec(part);
    var place = found === null ? null : document.getElementById(found[1]);
    return place !== null && place.dataset.drawnBy !== "dash" ? place : null;
  }

  /* Draws the page.  Dash is asked for one pass over all that it draws, not for one per part, because each looks through
   * the whole page.  The next pass is asked for when this one has begun. */
  function draw() {
    var page = document.querySelector("[data-page]");
    var news = page === null ? [] : Object.keys(Object.assign({}, held, present)).filter(isNew);
    var rest = news.filter(function (part) {
      var place = ownPlace(part);
      if (place === null) {
        return !isChart(part);
      }
      window.heliographDraw(place, shown[part], newest(part));
      shown[part] = newest(part);
      return false;
    });
    window.heliographCharts.show(figures());
    isDue = rest.length > 0;
    if (isDue) {
      passes += 1;
      window.dash_clientside.set_props(page.id, { "data-pass": passes });
    }
  }

  function drawSoon() {
    if (!isDue || Date.now() - dueAt > LOST) {
      isDue = true;
      dueAt = Date.now();
      window.setTimeout(draw, SOON); /* not with a frame: those stop while the screen is busy */
    }
  }

  function forget() {
    number = null;
    held = {};
    present = {};
    shown = {};
    isDue = false;
    window.heliographCharts.forget();
  }

  window.dash_clientside = window.dash_clientside || {};
  window.dash_clientside.heliograph = window.dash_clientside.heliograph || {};

  /* The pass: returns the new values of the parts that Dash draws, in the order of its outputs. */
  window.dash_clientside.heliograph.show = function () {
    isDue = false;
    return window.dash_clientside.callback_context.outputs_list.map(function (output) {
      var part = output.id + "." + output.property.split("@")[0];
      if (!isNew(part)) {
        return window.dash_clientside.no_update;
      }
      shown[part] = newest(part);
      return shown[part];
    });
  };

  window.heliograph = {
    changed: changed,

    /* Number of the drawing that is held; null: none. */
    drawing: function () {
      return number;
    },

    /* Forgets everything. */
    forget: forget,

    /* Another page is in view: draws the parts that came with it. */
    begin: function (parts) {
      forget();
      held = parts;
      draw();
    },

    /* Takes a message; returns false where it changes another drawing than the one held. */
    take: function (message) {
      if (message.before !== null && message.before !== number) {
        return false;
      }
      Object.keys(message.parts).forEach(function (part) {
        var difference = message.parts[part];
        held[part] = difference.do ? changed(held[part], difference.do) : difference.set;
      });
      number = message.drawing;
      present = message.now;
      drawSoon();
      return true;
    },
  };
})();

/* What the server has drawn for the page in view: kept here as data, changed by each message, and shown.
 *
 * A message has differences only (see updates.py and differences.py of the server).  They are applied to the data, never
 * to what is on the screen: the page may have been left while a message was on its way, and a slow browser may not have
 * shown the message before.  The screen is drawn from the newest data, where a part is on it.  A browser that is busy
 * drawing first takes all messages that wait, and then draws once.
 *
 * A chart costs more script than all texts and tables.  The charts in view are drawn each time, one of the others each
 * fourth time: the one that waits longest.  A chart that comes into view is drawn at once.
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
  var times = 0; /* that the screen was drawn */
  var due = []; /* charts that the next pass draws */
  var drawnAt = {}; /* by chart, when it was drawn last */
  var TURN = 4; /* times from one chart out of view to the next */
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

  var inView = new WeakSet(); /* elements of charts */
  var watched = new WeakSet();
  var watch = new IntersectionObserver(function (entries) {
    entries.forEach(function (entry) {
      inView[entry.isIntersecting ? "add" : "delete"](entry.target);
    });
    if (waiting().some(isInView)) {
      drawSoon();
    }
  });

  /* Whether a chart is in view; one that was not asked about before says so after the next frame. */
  function isInView(part) {
    var place = document.getElementById(part.slice(0, -CHART.length));
    if (place !== null && !watched.has(place)) {
      watched.add(place);
      watch.observe(place);
    }
    return place !== null && inView.has(place);
  }

  /* The charts that wait to be drawn, the one that waits longest first. */
  function waiting() {
    var found = Object.keys(held).filter(function (part) {
      return isChart(part) && isNew(part);
    });
    return found.sort(function (one, other) {
      return (drawnAt[one] || 0) - (drawnAt[other] || 0);
    });
  }

  /* The charts to draw now: those in view and, when it is their turn, the first of the others. */
  function charts() {
    var isTurn = times % TURN === 0;
    return waiting().filter(function (part) {
      if (isInView(part)) {
        return true;
      }
      var isFirst = isTurn;
      isTurn = false;
      return isFirst;
    });
  }

  /* The element whose children a part is, where this page draws them itself; null: Dash draws the part. */
  function ownPlace(part) {
    var found = /^(.*)\.children$/.exec(part);
    var place = found === null ? null : document.getElementById(found[1]);
    return place !== null && place.dataset.drawnBy !== "dash" ? place : null;
  }

  /* Draws texts and tables, then asks Dash for one pass over the charts and the rest: not for one per part, because each
   * looks through the whole page.  The next pass is asked for when this one has begun. */
  function draw() {
    times += 1;
    var page = document.querySelector("[data-page]");
    var news = page === null ? [] : Object.keys(Object.assign({}, held, present)).filter(isNew);
    var rest = news.filter(function (part) {
      var place = ownPlace(part);
      if (place === null) {
        return true;
      }
      window.heliographDraw(place, shown[part], newest(part));
      shown[part] = newest(part);
      return false;
    });
    due = charts();
    isDue = due.length > 0 || !rest.every(isChart);
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
    due = [];
    drawnAt = {};
    isDue = false;
  }

  window.dash_clientside = window.dash_clientside || {};
  window.dash_clientside.heliograph = window.dash_clientside.heliograph || {};

  /* The pass: returns the new values of the parts that Dash draws, in the order of its outputs. */
  window.dash_clientside.heliograph.show = function () {
    isDue = false;
    return window.dash_clientside.callback_context.outputs_list.map(function (output) {
      var part = output.id + "." + output.property.split("@")[0];
      if (isChart(part) ? !due.includes(part) : !isNew(part)) {
        return window.dash_clientside.no_update;
      }
      drawnAt[part] = times;
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

/* What the server has drawn for the page in view: kept here as data, changed by each message, and shown.
 *
 * A message has differences only (see updates.py and differences.py of the server).  They are applied to the data, never
 * to what is on the screen: the page may have been left while a message was on its way, and a slow browser may not have
 * shown the message before.  The screen is drawn from the newest data, where a part is on it.  A browser that is busy
 * drawing first takes all messages that wait, and then draws once.
 */

(function () {
  "use strict";

  var number = null; /* of the drawing that is held */
  var held = {}; /* its parts by "ID.PROPERTY" */
  var present = {}; /* parts that depend on the time; they hide drawn ones */
  var shown = {}; /* what was drawn last, by part */
  var isDue = false; /* whether a drawing is due */
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
    operations.forEach(function (operation) {
      var inner = root;
      operation[0].forEach(function (step) {
        inner[step] = own(inner[step]);
        inner = inner[step];
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
      }
    });
    return root;
  }

  function isEqual(one, other) {
    return one === other || (typeof one === "object" && JSON.stringify(one) === JSON.stringify(other));
  }

  function draw() {
    isDue = false;
    var news = {}; /* properties by id; Dash draws the last call only of several for one component */
    Object.keys(Object.assign({}, held, present)).forEach(function (part) {
      var isPresent = Object.prototype.hasOwnProperty.call(present, part);
      var value = isPresent ? present[part] : held[part];
      var dot = part.lastIndexOf(".");
      var place = part.slice(0, dot);
      if (value === shown[part] || (isPresent && isEqual(value, shown[part])) || !document.getElementById(place)) {
        return;
      }
      shown[part] = value;
      news[place] = news[place] || {};
      news[place][part.slice(dot + 1)] = value;
    });
    Object.keys(news).forEach(function (place) {
      window.dash_clientside.set_props(place, news[place]);
    });
  }

  window.heliograph = {
    changed: changed,

    /* Number of the drawing that is held; null: none. */
    drawing: function () {
      return number;
    },

    /* Forgets everything: another page is in view. */
    forget: function () {
      number = null;
      held = {};
      present = {};
      shown = {};
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
      if (!isDue) {
        isDue = true;
        window.setTimeout(draw, SOON); /* not with a frame: those stop while the screen is busy */
      }
      return true;
    },
  };
})();

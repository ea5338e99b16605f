/* The part of the browser: requests the next view after the last one has arrived, and shows how current the page is.
 *
 * The timer only starts `tick`.  It sends a request by changing `ask`, never during a request: Dash drops an answer to an
 * older request, so the answers of a server slower than the timer would all be lost.  It judges the connection by the
 * stamp of the answers, which changes with every answer.
 */

(function () {
  "use strict";

  var MOST_MIB = { "lab-upload": 2, "inc-upload": 8 }; /* largest file by the id of its control */
  var PROBE = 2000; /* milliseconds between two looks for a server that does not answer */
  var PATIENCE = 15000; /* milliseconds until a request without an answer is repeated */

  var answered = null; /* stamp of the newest answer */
  var arrived = Date.now(); /* when it arrived, by the browser's clock */
  var asked = null; /* when the present request was sent; null: none */
  var question = 0;
  var pausedAt = null;
  var probed = 0; /* when the last look began */
  var isLooking = false; /* whether it has no result yet */
  var isGone = false; /* whether it found no server */

  function age(milliseconds) {
    var seconds = Math.round(milliseconds / 1000);
    return seconds < 100 ? seconds + " s" : Math.round(seconds / 60) + " min";
  }

  function isLate(stamp, now) {
    return now - arrived > Math.max(3000 * stamp.interval, 3000);
  }

  /* Tells a server that is gone from one that is slow or held up: only the latter takes a connection. */
  function probe(now) {
    if (!isLooking && now - probed >= PROBE) {
      probed = now;
      isLooking = true;
      var found = function (is) {
        return function () {
          isLooking = false;
          isGone = is;
        };
      };
      fetch("/assets/state.js", { method: "HEAD", cache: "no-store" }).then(found(false), found(true));
    }
  }

  /* The headline of data that no longer arrives turns grey and gives its age. */
  function mark(isOld, now) {
    var main = document.querySelector("main");
    if (main !== null) {
      main.classList.toggle("old", isOld);
      main.style.setProperty("--age", JSON.stringify(" – " + age(now - arrived) + " old"));
    }
  }

  function state(stamp, now) {
    if (pausedAt !== null) {
      return ["pill idle", "❚❚", "paused", "by you at " + pausedAt.toTimeString().slice(0, 8)];
    }
    if (isLate(stamp, now)) {
      probe(now);
      return isGone
        ? ["pill bad", "✕", "disconnected", "no answer for " + age(now - arrived)]
        : ["pill watch", "◑", "slow", "connected, but no answer for " + age(now - arrived)];
    }
    return ["pill " + stamp.tone, stamp.shape, stamp.word, stamp.reason];
  }

  /* A new sample replaces the elements of its parts. The focus returns to the link or heading with the same text. */
  var focused = null; /* the element with the focus */
  var place = null; /* id of the part around it */

  document.addEventListener("pointerdown", function () {
    focused = null;
  });

  document.addEventListener("focusin", function (event) {
    focused = event.target;
    var part = focused.closest("[id]");
    place = part === null ? null : part.id;
  });

  function alike(element) {
    return element.textContent === focused.textContent && element.href === focused.href;
  }

  new MutationObserver(function () {
    if (focused !== null && !focused.isConnected && document.activeElement === document.body) {
      var part = place === null ? null : document.getElementById(place);
      var found = part === null ? [] : Array.from(part.querySelectorAll(focused.tagName)).filter(alike);
      if (found.length) {
        found[0].focus({ preventScroll: true });
      }
    }
  }).observe(document.documentElement, { childList: true, subtree: true });

  window.dash_clientside = window.dash_clientside || {};
  window.dash_clientside.heliograph = {
    pause: function (clicks) {
      var paused = (clicks || 0) % 2 === 1;
      if (paused) {
        pausedAt = new Date();
      } else if (pausedAt !== null) {
        pausedAt = null;
        arrived = Date.now();
      }
      return [paused, paused ? "Resume" : "Pause", paused ? "true" : "false"];
    },

    tick: function (_count, paused, stamp) {
      var now = Date.now();
      if (stamp.answered !== answered) {
        answered = stamp.answered;
        arrived = now;
        asked = null;
        isGone = false;
      }
      var next = window.dash_clientside.no_update;
      if (!paused && (asked === null || now - asked > PATIENCE)) {
        asked = now;
        question += 1;
        next = question;
      }
      mark(pausedAt === null && isLate(stamp, now), now);
      return [next].concat(state(stamp, now));
    },

    /* Writes the selections of the page into its address, without an entry in the history. */
    address: function () {
      var found = new URLSearchParams();
      window.dash_clientside.callback_context.inputs_list.forEach(function (input) {
        [].concat(input.value === undefined || input.value === null ? [] : input.value).forEach(function (value) {
          found.append(input.id.replace(/^(lab|act|rx|tp|cc|al|inc|st)-/, ""), value);
        });
      });
      window.history.replaceState(window.history.state, "", window.location.pathname + "?" + found.toString());
      return []; /* the messages about the former address */
    },

    /* Moves the line of the cursor, the first shape of the chart, and says its time to screen readers. */
    cursor: function (line) {
      var chart = document.querySelector("#inc-axis .js-plotly-plot");
      var control = document.getElementById("inc-at");
      if (line && control) {
        control.setAttribute("aria-valuetext", line.time);
      }
      if (line && chart && chart.layout && chart.layout.shapes && chart.layout.shapes.length) {
        window.Plotly.relayout(chart, { "shapes[0].x0": line.x, "shapes[0].x1": line.x });
      }
      return "";
    },

    /* Passes a chosen file on to the server unless it is larger than the server accepts. */
    file: function (contents, name) {
      var skip = window.dash_clientside.no_update;
      if (!contents) {
        return [skip, skip];
      }
      var most = MOST_MIB[window.dash_clientside.callback_context.inputs_list[0].id];
      if (contents.length > (most << 20) * 1.335) { /* as base64 */
        return [skip, name + " is not shown: it is larger than " + most + " MiB."];
      }
      return [{ contents: contents, name: name }, "reading " + name];
    },
  };
})();

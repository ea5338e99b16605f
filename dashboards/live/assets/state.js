/* The connection to the server, and what is said about it.
 *
 * The page in view names itself in an element with "data-page".  While it is visible and not paused, it has one
 * connection: a stream of messages, or, where the server gives it none or the stream stays silent, one request per
 * interval.  `look` runs four times a second and after each event; it alone opens and closes connections, and it alone
 * writes the state: live, paused, stale, slow or disconnected.
 */

(function () {
  "use strict";

  var MOST_MIB = { "lab-upload": 2, "inc-upload": 8 }; /* largest file by the id of its control */
  var LOOK = 250; /* milliseconds between two looks */
  var AGAIN = 1000; /* milliseconds until the next attempt after a failure */
  var PATIENCE = 15000; /* milliseconds until a request without an answer is given up */
  var WITHOUT = 5000; /* milliseconds without a stream after one that did not work; doubled up to: */
  var LONGEST_WITHOUT = 60000;

  var page = null; /* the element of the page in view */
  var prefix = ""; /* of its ids */
  var choices = null; /* its selections, as in the address; null: not known yet */
  var stamp = null; /* of the newest message: how current its data is */
  var arrived = Date.now(); /* when it arrived, by the browser's clock */
  var resumed = arrived; /* since when messages are wanted: visible and not paused */
  var least = null; /* the shortest way of a message of this connection, as a difference of two clocks, ms */
  var late = 0; /* how much longer the newest one took, ms */

  var close = null; /* ends the connection; null: there is none */
  var isStream = true; /* whether the connection is a stream */
  var asked = 0; /* when the connection began to wait for a message */
  var next = 0; /* earliest time of the next connection */
  var streamAfter = 0; /* earliest time of the next stream */
  var without = WITHOUT;
  var refusal = ""; /* why the last attempt failed: there is no server, or it does not answer as it should */
  var isSilent = false; /* whether the last attempt got no answer in time */
  var pausedAt = null;
  var isIdle = false; /* whether no messages are wanted */

  var browser = Math.random().toString(36).slice(2);
  try {
    browser = window.localStorage.heliograph = window.localStorage.heliograph || browser; /* one for all tabs */
  } catch (_error) {
    /* A browser without storage counts each tab on its own. */
  }

  function age(milliseconds) {
    var seconds = Math.round(milliseconds / 1000);
    return seconds < 100 ? seconds + " s" : Math.round(seconds / 60) + " min";
  }

  /* Milliseconds without a message after which something is wrong; the server sends one a second at least. */
  function limit() {
    return Math.max(3000 * (stamp === null ? 1 : stamp.interval), 3000);
  }

  function isLate(now) {
    return now - Math.max(arrived, resumed) > limit();
  }

  function take(message) {
    if (!window.heliograph.take(message)) {
      window.heliograph.forget(); /* a message of another connection: the next one starts with all parts */
      disconnect();
      return;
    }
    var way = performance.now() - message.stamp.sent_ms;
    least = least === null ? way : Math.min(least, way);
    late = way - least;
    stamp = message.stamp;
    arrived = asked = Date.now();
    refusal = "";
    isSilent = false;
  }

  function disconnect() {
    if (close !== null) {
      close();
      close = null;
    }
  }

  function failed(why) {
    disconnect();
    refusal = why;
    next = Date.now() + AGAIN;
  }

  function query() {
    var shown = window.heliograph.drawing();
    var given = { path: page.dataset.page, search: choices, shown: shown === null ? "" : shown, browser: browser };
    return new URLSearchParams(given).toString();
  }

  function openStream() {
    var source = new EventSource("/live/stream?" + query());
    var hasSpoken = false;
    close = function () {
      source.close();
    };
    source.onmessage = function (event) {
      hasSpoken = true;
      without = WITHOUT;
      take(JSON.parse(event.data));
      look();
    };
    source.onerror = function () {
      disconnect();
      if (!hasSpoken) {
        withoutStream();
      }
      look();
    };
  }

  function withoutStream() {
    streamAfter = Date.now() + without;
    without = Math.min(2 * without, LONGEST_WITHOUT);
  }

  function poll() {
    var control = new AbortController();
    var isWanted = true;
    close = function () {
      isWanted = false;
      control.abort();
    };
    function refuse(why) {
      if (isWanted) {
        failed(why);
        look();
      }
    }
    fetch("/live/view?" + query(), { cache: "no-store", signal: control.signal })
      .then(function (answer) {
        if (!answer.ok) {
          refuse(answer.status === 401 ? "the session has ended: load the page again" : "the server fails");
          return;
        }
        return answer.json().then(function (message) {
          if (isWanted) {
            close = null;
            next = Date.now() + 1000 * message.stamp.interval;
            take(message);
            look();
          }
        });
      })
      .catch(function () {
        refuse("no server");
      });
  }

  function connect(now) {
    asked = now;
    least = null;
    late = 0;
    isStream = now >= streamAfter && typeof EventSource !== "undefined";
    if (isStream) {
      openStream();
    } else {
      poll();
    }
  }

  /* Finds the page in view; the one before is gone with its connection. */
  function find(now) {
    var found = document.querySelector("[data-page]");
    if (found !== page) {
      disconnect();
      window.heliograph.begin(found === null ? {} : JSON.parse(found.dataset.parts));
      page = found;
      choices = null;
      next = 0;
      arrived = resumed = now;
      if (page !== null) {
        prefix = page.id.replace(/stamp$/, "");
        stamp = JSON.parse(page.dataset.stamp);
      }
    }
  }

  function look() {
    var now = Date.now();
    find(now);
    if (page === null) {
      return;
    }
    var wasIdle = isIdle;
    isIdle = document.hidden || pausedAt !== null;
    if (isIdle) {
      disconnect();
      next = 0;
    } else if (wasIdle) {
      resumed = now;
    } else if (close !== null && now - asked > (isStream ? limit() : PATIENCE)) {
      isSilent = true;
      disconnect();
      if (isStream) {
        withoutStream();
      }
    }
    if (!isIdle && close === null && choices !== null && now >= next) {
      connect(now);
    }
    if (!document.hidden) {
      say(now);
    }
  }

  function state(now) {
    if (pausedAt !== null) {
      return ["pill idle", "❚❚", "paused", "by you at " + pausedAt.toTimeString().slice(0, 8)];
    }
    if (refusal) {
      return ["pill bad", "✕", "disconnected", "no answer for " + age(now - arrived) + ": " + refusal];
    }
    if (isLate(now)) {
      return ["pill watch", "◑", "slow", "connected, but no answer for " + age(now - arrived)];
    }
    if (late > limit()) {
      return ["pill watch", "◑", "slow", "what arrives is " + age(late) + " late"];
    }
    if (arrived < resumed && now - arrived > limit()) {
      return ["pill idle", "◌", "catching up", "this is " + age(now - arrived) + " old"];
    }
    var manner = isStream || stamp.word !== "live" ? "" : ", requested: no stream at present";
    return ["pill " + stamp.tone, stamp.shape, stamp.word, stamp.reason + manner];
  }

  /* Writes the state.  The headline of data that no longer arrives turns grey and gives its age. */
  function say(now) {
    var found = state(now);
    write("state", "className", found[0]);
    write("state-shape", "children", found[1]);
    write("state-word", "children", found[2]);
    write("state-reason", "children", found[3]);
    var main = document.querySelector("main");
    if (main !== null) {
      main.classList.toggle("old", pausedAt === null && (Boolean(refusal) || now - arrived > limit()));
      main.style.setProperty("--age", JSON.stringify(" – " + age(now - arrived) + " old"));
    }
  }

  function write(place, property, text) {
    var element = document.getElementById(prefix + place);
    if (element !== null && element[property === "children" ? "textContent" : property] !== text) {
      var properties = {};
      properties[property] = text;
      window.dash_clientside.set_props(prefix + place, properties);
    }
  }

  window.setInterval(look, LOOK);
  document.addEventListener("visibilitychange", look);

  /* A button with "data-set" gives a selection of the page its "data-value". */
  document.addEventListener("click", function (event) {
    var button = event.target.closest("[data-set]");
    if (button !== null) {
      window.dash_clientside.set_props(button.dataset.set, { value: button.dataset.value });
    }
  });

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

  /* Corrects what the components of Dash get wrong for screen readers. */
  function correct() {
    /* A hidden input catches the focus and passes it on to the button: the keyboard reaches the button directly. */
    document.querySelectorAll('.dash-dropdown-focus-target[tabindex="0"]').forEach(function (target) {
      target.tabIndex = -1;
      target.parentElement.querySelector("button").tabIndex = 0;
    });
    /* Radio buttons and check boxes are called options of a list: they are what they are, in the group around them. */
    document.querySelectorAll('.dash-options-list[role="listbox"]').forEach(function (list) {
      list.removeAttribute("role");
    });
    document.querySelectorAll(".dash-options-list-option[role], .dash-options-list-option[aria-selected]").forEach(
      function (option) {
        if (option.querySelector("input") !== null && option.closest(".dash-dropdown-content") === null) {
          option.removeAttribute("role");
          option.removeAttribute("aria-selected");
        }
      }
    );
    document.querySelectorAll('input[type="file"]:not([aria-label])').forEach(function (input) {
      input.setAttribute("aria-label", input.parentElement.textContent.trim() || "File");
    });
  }

  new MutationObserver(function () {
    find(Date.now()); /* before the first frame of another page */
    correct();
    if (focused !== null && !focused.isConnected && document.activeElement === document.body) {
      var part = place === null ? null : document.getElementById(place);
      var found = part === null ? [] : Array.from(part.querySelectorAll(focused.tagName)).filter(alike);
      if (found.length) {
        found[0].focus({ preventScroll: true });
      }
    }
  }).observe(document.documentElement, {
    childList: true,
    subtree: true,
    attributes: true,
    attributeFilter: ["tabindex", "aria-selected"] /* Dash sets these again */,
  });

  window.dash_clientside = window.dash_clientside || {};
  window.dash_clientside.heliograph = {
    pause: function (clicks) {
      pausedAt = (clicks || 0) % 2 === 1 ? new Date() : null;
      look();
      return pausedAt === null ? ["Pause", "false"] : ["Resume", "true"];
    },

    /* Follows the selections of the page, and writes them into its address, without an entry in the history. */
    choose: function () {
      find(Date.now());
      var isFirst = choices === null;
      var found = new URLSearchParams();
      window.dash_clientside.callback_context.inputs_list.slice(1).forEach(function (input) {
        [].concat(input.value === undefined || input.value === null ? [] : input.value).forEach(function (value) {
          found.append(input.id.slice(prefix.length), value);
        });
      });
      choices = found.toString();
      disconnect();
      next = 0;
      look();
      if (isFirst) {
        return window.dash_clientside.no_update;
      }
      window.history.replaceState(window.history.state, "", window.location.pathname + "?" + choices);
      return []; /* the messages about the former address */
    },

    /* The page of rows to show after another choice of rows. */
    first: function () {
      return "";
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

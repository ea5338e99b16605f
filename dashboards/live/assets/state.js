/* What only the browser can know: that its reader paused the page, and that the server no longer answers. */

(function () {
  "use strict";

  var answered = null; /* stamp of the newest answer */
  var arrived = Date.now(); /* when it came, by the browser's clock */
  var pausedAt = null;

  function age(milliseconds) {
    var seconds = Math.round(milliseconds / 1000);
    return seconds < 100 ? seconds + " s" : Math.round(seconds / 60) + " min";
  }

  window.dash_clientside = window.dash_clientside || {};
  window.dash_clientside.heliograph = {
    pause: function (clicks) {
      var paused = (clicks || 0) % 2 === 1;
      pausedAt = paused ? new Date() : null;
      if (!paused) {
        arrived = Date.now();
      }
      return [paused, paused ? "Resume" : "Pause", paused ? "true" : "false"];
    },

    state: function (_ticks, paused, stamp) {
      if (stamp && stamp.answered !== answered) {
        answered = stamp.answered;
        arrived = Date.now();
      }
      if (paused) {
        var since = pausedAt ? pausedAt.toTimeString().slice(0, 8) : "now";
        return ["pill idle", "❚❚", "paused", "by you at " + since];
      }
      var silent = Date.now() - arrived;
      var limit = Math.max(3 * 1000 * (stamp ? stamp.interval : 1), 3000);
      if (silent > limit) {
        return ["pill bad", "✕", "disconnected", "no answer for " + age(silent)];
      }
      return ["pill " + stamp.tone, stamp.shape, stamp.word, stamp.reason];
    },
  };
})();

/* Draws the charts of the page in view with Plotly, and bounds what they cost.
 *
 * A chart costs more script than all texts and tables of a page.  Each drawing of the page may spend BUDGET on charts,
 * and draws at least one: the one in view that has waited longest, then the next.  Each fourth drawing begins with a
 * chart out of view.  A fast computer draws all charts in view each time; a slow one draws them in turn, and its texts
 * stay as new as they are.  Charts that nobody has seen yet, and those of a page that is printed, are all drawn.
 *
 * Dash is not asked: its component for charts compares and copies each figure, and draws the first one again after the
 * reader has moved an axis.
 */

(function () {
  "use strict";

  var BUDGET = 30; /* milliseconds of script */
  var REST = 1500; /* milliseconds until charts without a turn are drawn, where no drawing of the page comes before */
  var TURN = 4; /* drawings from one chart out of view to the next */
  var CONFIG = { displayModeBar: false };

  var figures = {}; /* the newest, by id of the chart */
  var drawn = {}; /* what each chart shows: its place, its figure, when it was drawn, and how long that took */
  var times = 0; /* that charts were drawn */
  var rest = null; /* the timer for charts without a turn */

  var inView = new WeakSet();
  var views = new IntersectionObserver(function (entries) {
    entries.forEach(function (entry) {
      inView[entry.isIntersecting ? "add" : "delete"](entry.target);
    });
    if (waiting().some(isInView)) {
      draw();
    }
  });
  var sizes = new ResizeObserver(function (entries) {
    entries.forEach(function (entry) {
      var frame = entry.target._fullLayout;
      if (frame && entry.target.clientWidth && frame.width !== entry.target.clientWidth) {
        window.Plotly.Plots.resize(entry.target);
      }
    });
  });

  function isInView(id) {
    return drawn[id] !== undefined && inView.has(drawn[id].place);
  }

  function isNever(id) {
    return drawn[id] === undefined;
  }

  /* Ids of the charts whose figure is new, the one that waits longest first. */
  function waiting() {
    var found = Object.keys(figures).filter(function (id) {
      return isNever(id) || drawn[id].figure !== figures[id];
    });
    return found.sort(function (one, other) {
      return (isNever(one) ? 0 : drawn[one].time) - (isNever(other) ? 0 : drawn[other].time);
    });
  }

  /* Ids of the charts to draw now, without regard to their cost. */
  function due() {
    var found = waiting();
    var outside = found.find(function (id) {
      return !isNever(id) && !isInView(id);
    });
    var chosen = found.filter(function (id) {
      return isNever(id) || isInView(id);
    });
    return outside !== undefined && times % TURN === 0 ? [outside].concat(chosen) : chosen;
  }

  function drawOne(id) {
    var place = document.getElementById(id);
    if (place === null) {
      return 0;
    }
    var figure = figures[id];
    var began = performance.now();
    window.Plotly.react(place, figure.data.map(copied), structuredClone(figure.layout), CONFIG); /* Plotly changes both */
    var cost = performance.now() - began;
    if (isNever(id)) {
      views.observe(place);
      sizes.observe(place);
    }
    drawn[id] = { place: place, figure: figure, time: times, cost: cost };
    return cost;
  }

  function copied(trace) {
    return Object.assign({}, trace);
  }

  /* Draws the charts whose turn it is. */
  function draw() {
    times += 1;
    var spent = 0;
    due().every(function (id, place) {
      if (place > 0 && !isNever(id) && spent + drawn[id].cost > BUDGET) {
        return false;
      }
      spent += drawOne(id);
      return true;
    });
    window.clearTimeout(rest);
    if (waiting().some(isInView)) {
      rest = window.setTimeout(draw, REST);
    }
  }

  /* Plotly is large: it comes after the first texts and tables. */
  function load() {
    var later = document.querySelector("script[data-later=plotly]");
    if (later !== null) {
      later.removeAttribute("data-later"); /* once */
      var script = document.createElement("script");
      script.src = later.src;
      script.onload = draw;
      document.head.appendChild(script);
    }
  }

  window.addEventListener("beforeprint", function () {
    if (window.Plotly) {
      waiting().forEach(drawOne);
    }
  });

  window.heliographCharts = {
    /* Shows figures, by the ids of their charts. */
    show: function (given) {
      figures = given;
      if (!waiting().length) {
        return;
      }
      if (window.Plotly) {
        draw();
      } else {
        load();
      }
    },

    /* Another page comes: gives the memory of the charts back. */
    forget: function () {
      Object.keys(drawn).forEach(function (id) {
        views.unobserve(drawn[id].place);
        sizes.unobserve(drawn[id].place);
        window.Plotly.purge(drawn[id].place);
      });
      figures = {};
      drawn = {};
      window.clearTimeout(rest);
    },
  };
})();

"""How the pages of the lab look and what little they do: light and dark by the reader's choice."""

from __future__ import annotations

__all__ = ["SCRIPT", "STYLE"]

STYLE = """
:root { color-scheme: light dark; --bg: #f6f6f3; --card: #fff; --ink: #1d2229; --soft: #626b76; --rule: #e3e4e0;
 --good: #15803d; --bad: #c02626; --mark: #9a6700;
 --c0: #2563a8; --c1: #c2570c; --c2: #2c7d4f; --c3: #8a3ea8; --c4: #0f7d8a; --c5: #a83254; }
@media (prefers-color-scheme: dark) { :root { --bg: #14171b; --card: #1c2026; --ink: #e6e8ea; --soft: #99a2ad;
 --rule: #2e343c; --good: #4ade80; --bad: #f87171; --mark: #e3b341;
 --c0: #6cb0f5; --c1: #f5a05a; --c2: #6fd39b; --c3: #cf96ea; --c4: #5fd0de; --c5: #f08aa8; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--bg); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
main { max-width: 1040px; margin: 0 auto; padding: 28px 20px 60px; }
.brand { margin: 0; color: var(--c0); font-weight: 650; letter-spacing: .02em; }
h1 { margin: 2px 0 6px; font-size: 26px; line-height: 1.25; }
h2 { margin: 0 0 10px; font-size: 16px; }
h2.variant { margin: 34px 0 0; font-size: 19px; }
.sub, footer { color: var(--soft); }
footer { margin-top: 26px; font-size: 13px; }
.card { background: var(--card); border: 1px solid var(--rule); border-radius: 10px; padding: 14px 18px;
 margin: 16px 0 0; }
figcaption, summary { font-weight: 620; }
figure ul { list-style: none; display: flex; flex-wrap: wrap; gap: 2px 18px; margin: 4px 0 6px; padding: 0;
 font-size: 13px; color: var(--soft); }
figure li svg { width: 26px; height: 10px; margin-right: 6px; }
figure > svg { display: block; width: 100%; height: auto; overflow: visible; }
figure { position: relative; }
table { border-collapse: collapse; width: 100%; font-size: 14px; margin-top: 6px; }
.card:has(table) { overflow-x: auto; }
th { text-align: left; font-weight: 550; color: var(--soft); }
th, td { padding: 5px 12px 5px 0; border-bottom: 1px solid var(--rule); vertical-align: top; }
tr:last-child td { border-bottom: 0; }
.n { text-align: right; font-variant-numeric: tabular-nums; }
.verdict { padding: 1px 9px; border-radius: 9px; font-weight: 600; font-size: 13px; color: var(--card); }
.verdict.pass { background: var(--good); } .verdict.fail { background: var(--bad); }
.grid { stroke: var(--rule); } .tick, .unit { fill: var(--soft); font-size: 12px; } .unit { font-style: italic; }
.line, .thin, .limit { fill: none; stroke-width: 2; stroke-linejoin: round; vector-effect: non-scaling-stroke; }
.thin { stroke-width: 1.1; } .limit { stroke-width: 1.6; stroke-dasharray: 6 4; }
.c0 { stroke: var(--c0); } .c1 { stroke: var(--c1); } .c2 { stroke: var(--c2); }
.c3 { stroke: var(--c3); } .c4 { stroke: var(--c4); } .c5 { stroke: var(--c5); }
.band { opacity: .17; }
.f0 { fill: var(--c0); } .f1 { fill: var(--c1); } .f2 { fill: var(--c2); }
.f3 { fill: var(--c3); } .f4 { fill: var(--c4); } .f5 { fill: var(--c5); }
.mark line { stroke: var(--soft); stroke-width: 1; opacity: .3; }
.mark.plan line { stroke-dasharray: 2 3; opacity: .8; }
.mark.decision line { stroke: var(--mark); opacity: .12; }
.mark path { fill: var(--mark); } .mark circle { fill: var(--soft); }
.mark:hover line { opacity: 1; }
.here { stroke: var(--ink); stroke-width: 1; opacity: .5; pointer-events: none; }
.tip { position: absolute; pointer-events: none; background: var(--card); border: 1px solid var(--rule);
 border-radius: 8px; padding: 6px 10px; font-size: 12.5px;
 box-shadow: 0 3px 14px rgb(0 0 0 / .18); white-space: nowrap; z-index: 2; }
"""

SCRIPT = """
for (const svg of document.querySelectorAll('svg[data-chart]')) {
  const data = JSON.parse(svg.dataset.chart), here = svg.querySelector('.here'), box = svg.parentElement;
  const tip = document.createElement('div'); tip.className = 'tip'; tip.hidden = true; box.append(tip);
  svg.addEventListener('pointermove', event => {
    const area = svg.getBoundingClientRect(), scale = 960 / area.width, x = (event.clientX - area.left) * scale;
    const at = (x - 66) / (960 - 66 - 14) * data.duration;
    if (at < 0 || at > data.duration) { leave(); return; }
    const row = Math.max(0, Math.ceil(at / (data.interval * data.stride)) - 1);
    here.setAttribute('x1', x); here.setAttribute('x2', x); here.setAttribute('visibility', 'visible');
    tip.replaceChildren();
    const line = text => { const one = document.createElement('div'); one.textContent = text; tip.append(one); };
    line(at.toFixed(2) + ' s');
    for (const [name, values] of data.curves)
      if (row < values.length) line(name + ': ' + values[row].toPrecision(4) + ' ' + data.unit);
    tip.hidden = false;
    const left = event.clientX - box.getBoundingClientRect().left;
    tip.style.top = (svg.offsetTop ?? 0) + 70 + 'px';
    tip.style.left = left > area.width / 2 ? left - tip.offsetWidth - 14 + 'px' : left + 14 + 'px';
  });
  const leave = () => { here.setAttribute('visibility', 'hidden'); tip.hidden = true; };
  svg.addEventListener('pointerleave', leave);
}
"""

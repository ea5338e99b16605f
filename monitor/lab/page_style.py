"""Style of the lab's pages beyond that of all pages: verdicts, marks, and the values under the pointer."""

from __future__ import annotations

__all__ = ["SCRIPT", "STYLE"]

STYLE = """
:root { --good: #15803d; --bad: #c02626; --mark: #9a6700; }
@media (prefers-color-scheme: dark) { :root { --good: #4ade80; --bad: #f87171; --mark: #e3b341; } }
h2.variant { margin: 34px 0 10px; }
figure { position: relative; }
figcaption, details.card > summary { font-weight: 620; }
.verdict { padding: 1px 9px; border-radius: 9px; font-weight: 600; color: var(--card); }
.verdict.pass { background: var(--good); } .verdict.fail { background: var(--bad); }
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

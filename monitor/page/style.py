"""The style sheet of the pages that are one file: cards, tiles, tables and charts, light and dark, nothing fetched."""

from __future__ import annotations

__all__ = ["PAGE_STYLE"]

PAGE_STYLE = """
:root { color-scheme: light dark; --paper: #f6f7f9; --card: #ffffff; --ink: #17202c; --soft: #5d6b7c; --rule: #e2e6eb;
  --accent: #b4540a; --c0: #c2410c; --c1: #1d63b8; --c2: #0f7f68; --c3: #8a3ffc; --c4: #a16207; --c5: #be185d;
  --c6: #0e7490; --c7: #4b5563; }
@media (prefers-color-scheme: dark) { :root { --paper: #0f1318; --card: #171d25; --ink: #e7ecf2; --soft: #93a1b1;
  --rule: #29323d; --accent: #f5a04a; --c0: #fb923c; --c1: #60a5fa; --c2: #34d399; --c3: #c4a2ff; --c4: #facc15;
  --c5: #f472b6; --c6: #22d3ee; --c7: #cbd5e1; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", "Liberation Sans", sans-serif; }
main { max-width: 1320px; margin: 0 auto; padding: 32px 20px 48px; }
header { margin-bottom: 20px; }
h1 { margin: 0; font-size: 30px; letter-spacing: -0.02em; }
h2 { margin: 0 0 4px; font-size: 19px; }
h3 { margin: 22px 0 8px; font-size: 15px; }
.brand { margin: 0; color: var(--accent); font-weight: 650; letter-spacing: 0.04em; }
.sub, small { color: var(--soft); font-size: 13px; }
.sub { margin: 2px 0 0; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(190px, 1fr)); gap: 12px; margin: 24px 0; }
.tile, .card { background: var(--card); border: 1px solid var(--rule); border-radius: 10px; }
.tile { padding: 14px 16px; overflow-wrap: anywhere; }
.tile h2 { font-size: 13px; font-weight: 550; color: var(--soft); }
.big { margin: 0; font-size: 25px; font-weight: 650; font-variant-numeric: tabular-nums; }
.card { padding: 20px 22px 22px; margin: 0 0 20px; }
.trouble { border-left: 4px solid var(--accent); }
.trouble code { overflow-wrap: anywhere; }
.legend { display: flex; flex-wrap: wrap; gap: 4px 18px; margin: 0 0 6px; padding: 0; list-style: none;
  font-size: 13px; }
.c0 { color: var(--c0); } .c1 { color: var(--c1); } .c2 { color: var(--c2); } .c3 { color: var(--c3); }
.c4 { color: var(--c4); } .c5 { color: var(--c5); } .c6 { color: var(--c6); } .c7 { color: var(--c7); }
.key { display: inline-block; width: 14px; height: 4px; border-radius: 2px; margin: 0 7px 3px 0;
  background: currentColor; }
.key.thin { height: 2px; }
.key.limit { height: 0; background: none; border-top: 2px dashed; border-radius: 0; }
svg { display: block; width: 100%; height: auto; }
.grid { stroke: var(--rule); }
.tick, .unit { fill: var(--soft); font-size: 12px; }
.unit { font-style: italic; }
.line { fill: none; stroke: currentColor; stroke-width: 2; stroke-linejoin: round; }
.line.thin { stroke-width: 1.1; }
.line.limit { stroke-width: 1.6; stroke-dasharray: 6 4; }
.line:hover { stroke-width: 4; }
.dot, .band { fill: currentColor; }
.band { opacity: 0.17; }
.told { white-space: normal; overflow-wrap: anywhere; }
.scroll { overflow-x: auto; }
table { width: 100%; border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums; }
th, td { padding: 6px 8px; text-align: right; white-space: nowrap; border-bottom: 1px solid var(--rule); }
thead th { color: var(--soft); font-weight: 550; }
th[scope=row], .text { text-align: left; }
th[scope=row] { font-weight: 550; }
tbody tr:hover { background: var(--paper); }
details { margin-top: 22px; }
summary { cursor: pointer; }
summary h3 { display: inline; }
footer { color: var(--soft); font-size: 13px; }
@media print { body { background: none; } .card, .tile { break-inside: avoid; } }
"""

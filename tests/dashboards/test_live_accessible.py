"""The live pages for every reader: names of controls, contrast, keyboard, reduced motion, print; in a real browser."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import pytest

from tests.dashboards.browsing import Running, chromium_or_skip, seen, until
from tests.incidents import KEPT

PAGES = {
    "": "state",
    "grid?name=PRICES&sort=-lag_seconds": "gr-state",
    "alerts?alert=HeliographReceiverIsolated": "al-state",
    "topic?topic=PRICES.A": "tp-state",
    "receiver": "rx-state",
    "congestion": "cc-state",
    "whatif": "wi-state",
    "stores": "st-state",
    "lab": "lab-state",
    "history": "hy-state",
    f"incident?recording={KEPT}&span=unusual": "inc-state",
    "detail?of=topic&pattern=PRICES.*&level=3": "dt-state",
    f"control?instance=feed+({os.getpid()})": "act-state",
}
"""Address of each page, and the id of its state."""
CONTROLS = {"button", "checkbox", "combobox", "link", "radio", "searchbox", "spinbutton", "textbox"}
LEAST_CONTRAST = 4.5

FAINT = """
const pixel = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
function rgba(colour) {
  pixel.clearRect(0, 0, 1, 1);
  pixel.fillStyle = colour;
  pixel.fillRect(0, 0, 1, 1);
  const [r, g, b, a] = pixel.getImageData(0, 0, 1, 1).data;
  return [r, g, b, a / 255];
}
function over(top, below) {
  return [0, 1, 2].map(i => top[i] * top[3] + below[i] * (1 - top[3])).concat([1]);
}
function behind(node) {
  const layers = [];
  for (let it = node; it; it = it.parentElement) {
    const colour = rgba(getComputedStyle(it).backgroundColor);
    if (colour[3] > 0) layers.push(colour);
    if (colour[3] === 1) break;
  }
  return layers.reverse().reduce((below, top) => over(top, below), [255, 255, 255, 1]);
}
function luminance(colour) {
  const linear = colour.slice(0, 3).map(part => part / 255)
    .map(part => part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
  return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
}
function contrast(front, ground) {
  const [light, dark] = [luminance(over(front, ground)), luminance(ground)].sort((a, b) => b - a);
  return (light + 0.05) / (dark + 0.05);
}
const found = [];
let looked = 0;
const walker = document.createTreeWalker(document.querySelector('main'), NodeFilter.SHOW_TEXT);
for (let text = walker.nextNode(); text; text = walker.nextNode()) {
  const node = text.parentElement;
  if (!text.data.trim() || !node.checkVisibility({visibilityProperty: true}) || !node.getClientRects().length) continue;
  const style = getComputedStyle(node);
  const front = rgba(node instanceof SVGElement ? style.fill : style.color);
  for (let it = node; it; it = it.parentElement) front[3] *= Number(getComputedStyle(it).opacity);
  const value = contrast(front, behind(node));
  looked += 1;
  const name = `${text.data.trim().slice(0, 40)} (${node.className.baseVal ?? node.className})`;
  if (value < arguments[0]) found.push(`${name}: `
    + `${value.toFixed(2)} of ${front.slice(0, 3)} on ${behind(node).slice(0, 3).map(Math.round)}`);
}
for (const box of document.querySelectorAll('main input[placeholder]')) {
  if (!box.checkVisibility()) continue;
  const value = contrast(rgba(getComputedStyle(box, '::placeholder').color), behind(box));
  if (value < arguments[0]) found.push(`placeholder ${box.placeholder}: ${value.toFixed(2)}`);
}
return [looked, [...new Set(found)]];
"""
NAMELESS = """
return [...document.querySelectorAll('.dash-dropdown, [role=listbox], [role=radiogroup]')]
  .filter(it => !it.closest('[role=group][aria-label]')).map(it => it.id || it.className);
"""
"""A dropdown is named by its value, and a list of radio buttons has no name: both need a group with one."""
FOCUSED = """
const it = document.activeElement;
if (it === document.body || !it) return null;
const box = it.getBoundingClientRect(), style = getComputedStyle(it);
return {
  step: it.outerHTML.slice(0, 60),
  seen: box.width > 0 && box.height > 0 && (style.outlineStyle !== 'none' || style.boxShadow !== 'none'),
};
"""
REACHABLE = """
return [...document.querySelectorAll('a[href], button, input, summary, select, textarea, [tabindex]')]
  .filter(it => it.tabIndex >= 0 && !it.disabled && it.checkVisibility({visibilityProperty: true})
    && it.getClientRects().length && !(it.type === 'radio' && !it.checked))
  .map(it => it.outerHTML.slice(0, 60));
"""
"""The controls in the order of reading."""
GROUND = "return getComputedStyle(document.documentElement).backgroundColor"
WHITE = "rgb(255, 255, 255)"
CONTROLS_SHOWN = """
return [...document.querySelectorAll('nav, button, input')].filter(it => it.checkVisibility()).length;
"""
MOVING = """
return [...document.querySelectorAll('main, main *')].flatMap(it => ['', '::before', '::after'].map(part => [it, part]))
  .filter(([it, part]) => {
    const style = getComputedStyle(it, part || null);
    return style.animationName !== 'none' || style.transitionDuration.split(', ').some(time => time !== '0s');
  })
  .map(([it, part]) => it.tagName + '.' + (it.className.baseVal ?? it.className) + part);
"""


@dataclass(frozen=True, slots=True)
class Found:
    """What one visit found on a page."""

    roles: list[tuple[str, str]]
    """Role and name of each node that a screen reader knows."""
    nameless: list[str]
    charts: int
    texts: int
    """The texts whose contrast is known."""
    faint: dict[str, list[str]]
    """Texts with too little contrast, by colour scheme, and in print."""
    grounds: dict[str, str]
    """Colour of the page, by the same."""
    moving: list[str]
    """Elements that move although the reader wants no motion."""
    printed_controls: int


@pytest.fixture(scope="module")
def visited(open_to_all: Running, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Found]:
    """Each page, visited once: a load takes longer than all that is looked for."""
    with chromium_or_skip(tmp_path_factory.mktemp("browser") / "profile") as driver:
        driver.execute_cdp_cmd("Accessibility.enable", {})
        return {path: look(driver, open_to_all, path) for path in PAGES}


def visit(driver: Any, page: Running, path: str) -> None:
    driver.get(f"{page.url}{path}")
    until(lambda: "live" in seen(driver, PAGES[path]), f"the page /{path}", 90)


def media(driver: Any, kind: str = "", **features: str) -> None:
    listed = [{"name": f"prefers-{name.replace('_', '-')}", "value": value} for name, value in features.items()]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": kind, "features": listed})


def look(driver: Any, page: Running, path: str) -> Found:
    media(driver, color_scheme="light")
    visit(driver, page, path)
    nodes = [node for node in driver.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"] if not node["ignored"]]
    roles = [(node["role"]["value"], node.get("name", {}).get("value", "").strip()) for node in nodes]
    nameless = driver.execute_script(NAMELESS)
    charts = len(driver.find_elements("css selector", ".graph"))
    media(driver, reduced_motion="reduce")
    moving = driver.execute_script(MOVING)
    media(driver, "print", color_scheme="dark")
    controls = driver.execute_script(CONTROLS_SHOWN)
    grounds = {"print": driver.execute_script(GROUND)}
    faint = {"print": driver.execute_script(FAINT, LEAST_CONTRAST)[1]}
    driver.execute_script("document.querySelectorAll('details').forEach(it => { it.open = true; })")
    for scheme in ("light", "dark"):
        media(driver, color_scheme=scheme)
        grounds[scheme] = driver.execute_script(GROUND)
        texts, faint[scheme] = driver.execute_script(FAINT, LEAST_CONTRAST)
    return Found(roles, nameless, charts, texts, faint, grounds, moving, controls)


def test_every_control_and_chart_has_a_name(visited: dict[str, Found]) -> None:
    for path, found in visited.items():
        assert [role for role, name in found.roles if role in CONTROLS and not name] == [], path
        assert found.nameless == [], path
        named = [name for role, name in found.roles if role in ("img", "image") and name.startswith("Chart: ")]
        assert len(named) == found.charts


@pytest.mark.parametrize("ground", ["light", "dark", "print"])
def test_every_text_stands_out_from_its_ground(ground: str, visited: dict[str, Found]) -> None:
    for path, found in visited.items():
        assert found.texts > 20
        assert found.faint[ground] == [], path


def test_the_keyboard_reaches_every_control_in_the_order_of_reading(open_to_all: Running, driver: Any) -> None:
    from selenium.webdriver import ActionChains

    for path in PAGES:
        visit(driver, open_to_all, path)
        pause = PAGES[path].replace("state", "pause")
        driver.execute_script("document.getElementById(arguments[0]).click()", pause)
        until(lambda path=path: "paused" in seen(driver, PAGES[path]), "the pause")
        wanted = driver.execute_script(REACHABLE)
        steps = []
        while len(steps) < len(wanted):
            ActionChains(driver).send_keys("\ue004").perform()  # the tabulator
            step = driver.execute_script(FOCUSED) or {"step": "nothing", "seen": False}
            if 'class="scroll' not in step["step"]:  # Chromium adds tables that are wider than the window
                steps.append(step)
        assert [step["step"] for step in steps] == wanted, path
        assert [step for step in steps if not step["seen"]] == [], path


def test_a_new_sample_leaves_the_focus_where_it_is(open_to_all: Running, driver: Any) -> None:
    visit(driver, open_to_all, "")
    driver.execute_script("document.querySelector('#receivers a').focus()")
    before = seen(driver, "taken")
    until(lambda: seen(driver, "taken") != before, "a newer sample")
    assert driver.execute_script("return document.activeElement.matches('#receivers a')")


def test_nothing_moves_for_readers_who_want_no_motion(visited: dict[str, Found]) -> None:
    assert {path: found.moving for path, found in visited.items() if found.moving} == {}


def test_a_printed_page_is_light_and_has_no_controls(visited: dict[str, Found]) -> None:
    for path, found in visited.items():
        assert (found.printed_controls, found.grounds["print"]) == (0, WHITE), path
        assert found.grounds["dark"] not in (WHITE, found.grounds["light"]), "the scheme that the print overrides"

"""axe-core over every live page, on a light and a dark ground, and the page's own content security policy.

The pages are loaded once. Only the rules about colour depend on the ground, so the dark one is examined by these alone.
A chart is an image with a name and a table; the inside of its drawing is left out. `test_live_accessible.py` measures
the contrast of its text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from heliograph.dashboards.live.pages.head import PAGES as ADDRESSES
from tests.dashboards.browsing import Running, chromium_or_skip
from tests.dashboards.test_live_accessible import PAGES, media, visit

SERIOUS = ("serious", "critical")
OF_COLOUR = ["color-contrast", "link-in-text-block"]
WATCH = """
window.violations = [];
document.addEventListener('securitypolicyviolation', it =>
  window.violations.push(`${it.violatedDirective}: ${it.blockedURI} ${it.sample}`));
"""
EXAMINE = """
const [rules, done] = arguments;
const chosen = rules ? {runOnly: {type: 'rule', values: rules}} : {};
const part = {include: [document], exclude: ['.js-plotly-plot > *']};
axe.run(part, {...chosen, resultTypes: ['violations'], elementRef: false}).then(
  found => done({passed: found.passes.length, found: found.violations.flatMap(rule =>
    rule.nodes.map(node => [node.impact || rule.impact, rule.id, node.target.join(' '), node.html.slice(0, 120)]))}),
  error => done(String(error)));
"""


def axe() -> str:
    """The source of axe-core; the test skips where it is not installed."""
    found = find_spec("axe_playwright_python")
    if found is None or found.origin is None:
        pytest.skip("axe-core is not installed (package axe-playwright-python)")
    return (Path(found.origin).parent / "axe.min.js").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A browser that counts the violations of the content security policy, and that axe can examine."""
    source = axe()
    with chromium_or_skip(tmp_path_factory.mktemp("profile")) as found:
        found.set_script_timeout(120)
        for script in (WATCH, source):
            found.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": script})
        yield found


def examined(driver: Any, rules: Sequence[str] | None = None) -> list[str]:
    """What is serious or critical, as text."""
    answer = driver.execute_async_script(EXAMINE, rules)
    assert isinstance(answer, dict), answer
    assert answer["passed"] or rules
    return [" | ".join(map(str, found)) for found in answer["found"] if found[0] in SERIOUS]


def test_every_page_is_examined() -> None:
    assert {f"/{path.partition('?')[0]}" for path in PAGES} == set(ADDRESSES)


@pytest.mark.parametrize("path", PAGES, ids=[path.partition("?")[0] or "overview" for path in PAGES])
def test_axe_finds_nothing_serious_and_the_policy_holds(path: str, open_to_all: Running, reader: Any) -> None:
    media(reader, color_scheme="light")
    visit(reader, open_to_all, path)
    reader.execute_script("document.querySelectorAll('details').forEach(it => { it.open = true; })")
    serious = examined(reader)
    assert not serious, "\n".join(serious)
    media(reader, color_scheme="dark")
    serious = examined(reader, OF_COLOUR)
    assert not serious, "\n".join(serious)
    assert reader.execute_script("return window.violations") == []
    said = [entry["message"] for entry in reader.get_log("browser")]
    assert [text for text in said if "Content Security Policy" in text] == []


def test_axe_and_the_policy_find_what_is_wrong(open_to_all: Running, reader: Any) -> None:
    visit(reader, open_to_all, "")
    reader.execute_script("""
      document.querySelector('main').insertAdjacentHTML('beforeend', '<button></button><p>faint</p>');
      const faint = document.querySelector('main > p:last-child');
      faint.style.color = '#ccc';
      faint.style.background = '#fff';
      document.head.append(Object.assign(document.createElement('script'), {textContent: 'window.foreign = 1'}));
    """)
    found = examined(reader)
    assert any("| button-name |" in text for text in found)
    assert any("| color-contrast |" in text for text in examined(reader, OF_COLOUR))
    assert reader.execute_script("return [window.violations.length, window.foreign]") == [1, None]

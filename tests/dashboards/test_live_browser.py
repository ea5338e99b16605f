"""The live page in a real browser: what is seen, its states, and that it asks nobody but its own server."""

from __future__ import annotations

import os
import re
import signal
import socket
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from heliograph.dashboards.live.capture import browser, capture
from heliograph.monitor import _hdr
from heliograph.monitor.errors import UserError
from heliograph.monitor.flight.page import page as flight_page
from heliograph.monitor.flight.reader import read
from heliograph.monitor.flight.study import study_of
from heliograph.monitor.history.hlog import head, line_of
from tests.dashboards.browsing import Running, addresses, click_to, click_to_fleet, seen, served, start, until
from tests.fleet import STREAM
from tests.incidents import KEPT, TICK, incident
from tests.ports import free_port

PNG = b"\x89PNG\r\n\x1a\n"


def test_the_page_lives_pauses_and_knows_when_it_is_alone(running: Running, driver: Any) -> None:
    driver.get(running.url)
    until(lambda: "live" in seen(driver, "state"), "a live page")
    assert " is " in seen(driver, "verdict")  # somebody is slow, lossy or stalled, whatever the moment
    assert {"alpha", "bravo", "slow", "lossy"} <= set(seen(driver, "receivers").split())
    graphs = ("throughput", "naks", "losses", "latency", "spectrum")
    script = "return arguments[0].filter(id => document.querySelector('#' + id + ' .scatterlayer .trace')).length"
    until(lambda: driver.execute_script(script, graphs) == len(graphs), "lines in every chart")

    before = seen(driver, "taken")
    until(lambda: seen(driver, "taken") != before, "a newer sample")

    pause = driver.find_element("id", "pause")
    pause.click()
    until(lambda: "paused" in seen(driver, "state"), "the pause")
    assert pause.text == "Resume"

    def holds() -> bool:
        shown = seen(driver, "taken")
        time.sleep(1.5)  # three intervals
        return seen(driver, "taken") == shown

    until(holds, "a page that stays as it is, after an answer under way when the button was pressed")
    held = seen(driver, "taken")
    pause.click()
    until(lambda: "live" in seen(driver, "state"), "going on")
    until(lambda: seen(driver, "taken") != held, "newer samples after the pause")

    outside = {url for url in addresses(driver) if not url.startswith(running.url)}
    assert outside == set()
    errors = [entry for entry in driver.get_log("browser") if entry["level"] == "SEVERE"]
    assert errors == []

    grey = "return document.querySelector('main').classList.contains('old')"
    after = "return getComputedStyle(document.querySelector('#verdict h1'), '::after').content"
    headline = seen(driver, "verdict")
    running.process.send_signal(signal.SIGSTOP)
    try:
        until(lambda: "slow connected, but no answer for" in seen(driver, "state"), "noticing that the server is slow")
        assert driver.execute_script(grey)
        assert re.fullmatch(r'" – \d+ s old"', driver.execute_script(after))
        assert seen(driver, "verdict") == headline, "the last known headline stays"
    finally:
        running.process.send_signal(signal.SIGCONT)
    until(lambda: "live" in seen(driver, "state"), "answers again")
    assert not driver.execute_script(grey)

    running.process.send_signal(signal.SIGTERM)
    running.process.wait(20)
    until(lambda: "disconnected no answer for" in seen(driver, "state"), "noticing that the server is gone")
    assert driver.execute_script(grey)


def test_a_reader_signs_in_and_no_script_or_style_breaks_the_policy(tmp_path: Path, driver: Any) -> None:
    with served(tmp_path, token_file="0123456789abcdef-token") as page:
        driver.get(f"{page.url}?q=1")
        assert "Access token" in driver.find_element("tag name", "body").text
        driver.find_element("name", "token").send_keys("0123456789abcdef-token\n")
        until(lambda: "live" in seen(driver, "state"), "the live page")
        assert driver.current_url == f"{page.url}?q=1"
        assert driver.execute_script("return document.cookie") == ""
        before = seen(driver, "taken")
        until(lambda: seen(driver, "taken") != before, "a newer sample")
        said = [entry["message"] for entry in driver.get_log("browser")]
        assert [text for text in said if "Content Security Policy" in text] == []
        blocked = "return fetch('https://example.com/').then(() => 'sent', () => 'blocked')"
        assert driver.execute_script(blocked) == "blocked"
        assert any("Content Security Policy" in entry["message"] for entry in driver.get_log("browser"))


HEARD = """
window.heard = [];
for (const region of document.querySelectorAll('[aria-live], [role=status]')) {
  new MutationObserver(() => window.heard.push(region.textContent))
    .observe(region, {childList: true, characterData: true, subtree: true});
}
"""
"""Texts that a screen reader announces: those of live regions whose content has changed."""
LINES = """
const chart = document.getElementById('lab-spectrum');
return chart && chart.data ? chart.data.map(trace => trace.name) : [];
"""


def test_a_screen_reader_hears_of_a_state_once(running: Running, driver: Any) -> None:
    driver.get(running.url)
    until(lambda: "falling behind" in seen(driver, "verdict"), "trouble")
    driver.execute_script(HEARD)
    for _ in range(4):
        before = seen(driver, "taken")
        until(lambda before=before: seen(driver, "taken") != before, "a newer sample")
    repeated = driver.execute_script("return window.heard.filter((text, n) => n && text === window.heard[n - 1])")
    assert repeated == []
    running._stopping.set()
    until(lambda: "stale" in driver.execute_script("return window.heard"), "the word of the stale state")
    until(lambda: "The data on this page is old" in driver.execute_script("return window.heard"), "the headline")
    aged = seen(driver, "state")
    until(lambda: seen(driver, "state") != aged, "a greater age of the data")
    assert driver.execute_script("return window.heard.filter(text => text === 'stale').length") == 1


def test_the_latency_lab_keeps_its_state_in_the_address(running: Running, driver: Any, tmp_path: Path) -> None:
    driver.get(running.url)
    until(lambda: "live" in seen(driver, "state"), "a live page")
    default = ["all, last 60 s"]
    click_to(driver, "nav a[href='/lab']", lambda: driver.execute_script(LINES) == default, "the default line")
    assert driver.current_url == f"{running.url}lab"
    until(lambda: "live" in seen(driver, "lab-state"), "a live lab")
    before = seen(driver, "lab-taken")
    until(lambda: seen(driver, "lab-taken") != before, "a newer sample")

    log = tmp_path / "other.hlog"
    payload = _hdr.encode(np.eye(1, 27_648, 900, np.uint64)[0], 3, 1, 60_000_000_000, compress=True)
    log.write_text(head(0) + line_of(0, 1_000_000_000, 1, "app", payload))
    driver.find_element("css selector", "#lab-upload input").send_keys(str(log))
    until(lambda: "other.hlog: app" in driver.execute_script(LINES), "the line of the log")
    assert "other.hlog is shown beside the lines." in seen(driver, "lab-said")
    driver.find_element("css selector", "#lab-recovered input").click()
    until(lambda: "recovered=apart" in driver.current_url, "the selection in the address")
    address = driver.current_url
    assert "&logs=" in address
    driver.get(address)
    until(lambda: "other.hlog: app" in driver.execute_script(LINES), "the same page by its address")
    assert driver.find_element("css selector", "#lab-recovered input").is_selected()

    huge = tmp_path / "huge.hlog"
    huge.write_bytes(b"#" * (3 << 20))
    driver.find_element("css selector", "#lab-upload input").send_keys(str(huge))
    until(lambda: "huge.hlog is not shown: it is larger than 2 MiB." in seen(driver, "lab-said"), "the refusal")

    driver.get(f"{running.url}lab?lines=topic:NOPE")
    until(lambda: 'Line "topic:NOPE" has no latency at present.' in seen(driver, "lab-address-notes"), "the message")
    until(lambda: driver.execute_script(LINES) == ["all, last 60 s"], "the default line")
    click_to_fleet(driver, running.url)
    until(lambda: "live" in seen(driver, "state"), "the first page")
    driver.back()
    until(lambda: "live" in seen(driver, "lab-state"), "the lab, by the way back")
    assert {url for url in addresses(driver) if not url.startswith(running.url)} == set()
    assert [entry for entry in driver.get_log("browser") if entry["level"] == "SEVERE"] == []


CURSOR = "return document.querySelector('#inc-axis .js-plotly-plot').layout.shapes[0].x0"


def test_a_recording_is_scrubbed_by_keyboard_uploaded_and_downloaded(
    running: Running, driver: Any, tmp_path: Path
) -> None:
    from selenium.webdriver import ActionChains, Keys

    driver.get(f"{running.url}incident?recording={KEPT}&span=1&at={TICK}")
    until(lambda: driver.execute_script(TRACES, "inc-axis") >= 8, "the curves", 60)
    before = driver.execute_script(CURSOR)
    driver.execute_script("document.querySelector('#inc-at').focus()")
    for presses in (1, 2, 3):
        ActionChains(driver).send_keys(Keys.ARROW_RIGHT).perform()
        until(lambda presses=presses: f"tick {TICK + presses};" in seen(driver, "inc-when"), "the next tick")
    until(lambda: driver.execute_script(CURSOR) == before + 30, "the line of the cursor, 30 ms later")
    spoken = driver.execute_script("return document.querySelector('#inc-at').getAttribute('aria-valuetext')")
    assert spoken.endswith(":23.030")
    until(lambda: f"at={TICK + 3}" in driver.current_url, "the cursor in the address")
    assert driver.execute_script("return document.activeElement.id") == "inc-at"
    driver.get(driver.current_url)
    until(lambda: f"tick {TICK + 3};" in seen(driver, "inc-when"), "the same tick by its address")

    upload = driver.find_element("css selector", "#inc-upload input")
    garbage = tmp_path / "garbage.flight"
    garbage.write_bytes(b"HELIOFLT" + b"\xff" * 5000)
    upload.send_keys(str(garbage))
    until(lambda: "garbage.flight is not shown: it is damaged" in seen(driver, "inc-said"), "the refusal")
    assert "8 of 8 curves deviate" in seen(driver, "inc-verdict")
    own = incident("own").write(tmp_path / "own.flight")
    driver.find_element("css selector", "#inc-upload input").send_keys(str(own))
    until(lambda: "own.flight is shown." in seen(driver, "inc-said"), "the upload")
    until(lambda: "recording=upload-" in driver.current_url, "the upload in the address")
    until(lambda: seen(driver, "inc-tiles").startswith("Instance own"), "its tiles")

    page = tmp_path / "page.html"
    page.write_text(flight_page(study_of(read(own))), encoding="utf-8")
    driver.get(page.as_uri())
    assert len(driver.find_elements("css selector", "svg")) >= 8
    style = "return getComputedStyle(document.querySelector('.card')).borderRadius"
    assert driver.execute_script(style) == "10px"  # its policy admits its own style sheet
    assert {url for url in addresses(driver) if not url.startswith((running.url, page.as_uri()))} == set()
    assert [entry for entry in driver.get_log("browser") if entry["level"] == "SEVERE"] == []


def test_the_fleet_opens_a_receiver_by_keyboard_and_by_mouse(running: Running, driver: Any) -> None:
    from selenium.webdriver import ActionChains, Keys

    driver.get(running.url)
    until(lambda: "live" in seen(driver, "state"), "a live page")
    script = "return document.activeElement.matches('#receivers a') ? document.activeElement.textContent : ''"
    first = ""

    def opened() -> bool:
        """Press the tabulator until a receiver has the focus, then enter; a new sample may take the focus between."""
        nonlocal first
        first = driver.execute_script(script) or first
        ActionChains(driver).send_keys(Keys.ENTER if driver.execute_script(script) else Keys.TAB).perform()
        return bool(driver.current_url == f"{running.url}receiver?instance={first}")

    until(opened, "the page of the receiver")
    until(lambda: seen(driver, "rx-verdict").startswith(f"{first} "), "its verdict")
    until(lambda: "live" in seen(driver, "rx-state"), "a live page")
    graphs = ("rx-position", "rx-lag", "rx-queue")
    script = "return arguments[0].filter(id => document.querySelector('#' + id + ' .trace')).length"
    until(lambda: driver.execute_script(script, graphs) == len(graphs), "data in every chart")

    click_to_fleet(driver, running.url)
    until(lambda: "live" in seen(driver, "state"), "the first page")
    click_to(
        driver,
        "#receivers a[href$=lossy]",
        lambda: seen(driver, "rx-verdict").startswith("lossy "),
        "the other receiver",
    )
    assert driver.current_url == f"{running.url}receiver?instance=lossy"
    before = seen(driver, "rx-taken")
    until(lambda: seen(driver, "rx-taken") != before, "a newer sample")
    driver.find_element("id", "rx-instance").click()
    until(lambda: driver.find_elements("css selector", ".dash-dropdown-options label"), "the list of receivers")
    assert [entry for entry in driver.get_log("browser") if entry["level"] == "SEVERE"] == []


TRACES = """
return document.querySelectorAll('#' + arguments[0] + ' .scatterlayer .trace, #' + arguments[0] + ' .trace.bars').length
"""


def follow(driver: Any, selector: str) -> str:
    """Pause, press the tabulator until a link of the selection has the focus, then enter; return its address."""
    from selenium.webdriver import ActionChains, Keys

    pause = "document.querySelector('.head button[aria-pressed=false]')"
    until(lambda: driver.execute_script(f"const it = {pause}; it?.click(); return it === null"), "the pause")
    script = "const it = document.activeElement; return it.matches(arguments[0]) ? it.href : ''"
    before, wanted = driver.current_url, ""

    def opened() -> bool:
        """A last answer may take the focus between two keys."""
        nonlocal wanted
        here = driver.execute_script(script, selector)
        wanted = here or wanted
        ActionChains(driver).send_keys(Keys.ENTER if here else Keys.TAB).perform()
        return bool(driver.current_url != before)

    until(opened, f"the page of {selector}", 120)
    assert driver.current_url == wanted
    return wanted


def test_the_keyboard_walks_from_the_fleet_to_topic_receiver_and_congestion(tmp_path: Path, driver: Any) -> None:
    with served(tmp_path, token_file="0123456789abcdef-token") as page:
        driver.get(page.url)
        driver.find_element("name", "token").send_keys("0123456789abcdef-token\n")
        until(lambda: "live" in seen(driver, "state"), "a live page")
        address = follow(driver, "#carried a[href^='/topic?']")
        until(lambda: "live" in seen(driver, "tp-state"), "the page of the topic")
        topic = address.partition("topic=")[2].partition("&")[0]
        until(lambda: topic in seen(driver, "tp-verdict"), "its verdict")
        for chart in ("tp-race", "tp-rates"):
            until(lambda chart=chart: driver.execute_script(TRACES, chart) >= 3, f"lines in {chart}")
        before = seen(driver, "tp-taken")
        until(lambda: seen(driver, "tp-taken") != before, "a newer sample")
        address = follow(driver, "#tp-receivers a")
        until(lambda: "live" in seen(driver, "rx-state"), "the page of the receiver")
        name = address.partition("instance=")[2]
        until(lambda: seen(driver, "rx-verdict").startswith(f"{name} "), "its verdict")
        follow(driver, "#rx-topics a[href^='/topic?']")
        until(lambda: "live" in seen(driver, "tp-state"), "the page of the topic, from the receiver")
        follow(driver, "#tp-source a")
        until(lambda: "live" in seen(driver, "cc-state"), "the page of congestion control")
        until(lambda: "of feed" in seen(driver, "cc-verdict"), "its verdict")  # data waits, or nothing holds it back
        until(lambda: driver.execute_script(TRACES, "cc-axis") >= 5, "lines in the chart")
        follow(driver, "#cc-topics a")
        until(lambda: "live" in seen(driver, "tp-state"), "the page of the topic, from its stream")
        outside = {url for url in addresses(driver) if not url.startswith(page.url)}
        assert outside == set()
        said = [item for item in driver.get_log("browser") if "401 (Unauthorized)" not in item["message"]]  # signing in
        assert [item for item in said if item["level"] == "SEVERE" or "Security Policy" in item["message"]] == []


def test_the_mouse_walks_from_the_fleet_to_topic_receiver_and_congestion(running: Running, driver: Any) -> None:
    driver.get(running.url)
    until(lambda: "live" in seen(driver, "state"), "a live page")
    click_to(driver, "#carried a[href*='PRICES.B']", lambda: "PRICES.B" in seen(driver, "tp-verdict"), "the topic")
    assert driver.current_url == f"{running.url}topic?topic=PRICES.B&stream={STREAM}"
    click_to(
        driver, "#tp-receivers a[href$=lossy]", lambda: seen(driver, "rx-verdict").startswith("lossy "), "the receiver"
    )
    driver.back()
    until(lambda: "PRICES.B" in seen(driver, "tp-verdict"), "the topic, by the way back")
    click_to(driver, "#tp-source a", lambda: "feed" in seen(driver, "cc-verdict"), "the stream")
    assert driver.current_url == f"{running.url}congestion?stream={STREAM}"
    click_to_fleet(driver, running.url)
    click_to(
        driver,
        f"#streams a[href$='{STREAM}']",
        lambda: "feed" in seen(driver, "cc-verdict"),
        "the stream, from the fleet",
    )
    click_to_fleet(driver, running.url)
    click_to(driver, "#stores a", lambda: seen(driver, "st-verdict").startswith("bravo: "), "the store")
    assert driver.current_url == f"{running.url}stores?store=bravo"

    driver.get(f"{running.url}topic?topic=NOPE")
    until(lambda: 'Topic "NOPE" is not in reach' in seen(driver, "tp-address-notes"), "the message")
    driver.get(f"{running.url}topic?topic=PRICES.C&stream={STREAM}")
    until(lambda: "PRICES.C" in seen(driver, "tp-verdict"), "the topic of the address")
    running._stopping.set()
    for path, place in ((f"topic?topic=PRICES.C&stream={STREAM}", "tp-"), ("congestion", "cc-")):
        driver.get(f"{running.url}{path}")
        until(lambda place=place: "stale" in seen(driver, f"{place}state"), "the stale state")
        wanted = "The data on this page is old"
        until(lambda place=place, wanted=wanted: wanted in seen(driver, f"{place}verdict"), "the headline")
    assert [entry for entry in driver.get_log("browser") if entry["level"] == "SEVERE"] == []


def test_a_command_needs_the_token_and_appears_among_the_events(tmp_path: Path, driver: Any) -> None:
    with served(tmp_path, control_token_file="fedcba9876543210-control") as page:
        driver.get(f"{page.url}control?instance=feed+({os.getpid()})&command=freeze")
        until(lambda: "live" in seen(driver, "act-state"), "the control page")
        driver.find_element("id", "act-who").send_keys("Ada")
        driver.find_element("id", "act-token").send_keys("wrong")
        driver.find_element("id", "act-send").click()
        until(lambda: "This is not the control token." in seen(driver, "act-said"), "the refusal")
        assert "Ada" not in seen(driver, "act-events")
        driver.find_element("id", "act-token").send_keys("\b" * 5 + "fedcba9876543210-control")
        driver.find_element("id", "act-send").click()
        until(lambda: "feed refused:" in seen(driver, "act-said"), "the answer")  # a sample fleet takes no commands
        until(lambda: "Ada at 127.0.0.1, on the live page: freeze" in seen(driver, "act-events"), "the event")
        assert [entry for entry in driver.get_log("browser") if entry["level"] == "SEVERE"] == []
        driver.get(f"{page.url}control?command=format")
        until(lambda: 'Command "format" is not known.' in seen(driver, "act-address-notes"), "the message")


@pytest.mark.parametrize("path", ["lab", "control", "receiver", "topic", "congestion", f"incident?recording={KEPT}"])
def test_a_page_fits_a_phone(path: str, running: Running, driver: Any) -> None:
    size = {"width": 400, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    driver.get(f"{running.url}{path}")
    until(lambda: driver.execute_script("return document.querySelector('main h1') !== null"), "the page")
    until(lambda: driver.execute_script("return document.documentElement.scrollWidth") <= 400, "a page of that width")


def test_a_page_whose_engines_died_says_so(running: Running, driver: Any) -> None:
    driver.get(running.url)
    until(lambda: "live" in seen(driver, "state"), "a live page")
    running._stopping.set()
    until(lambda: "stale" in seen(driver, "state"), "the stale state")
    assert "no live instance; last heartbeat" in seen(driver, "state")
    assert "The data on this page is old" in seen(driver, "verdict")


def test_a_picture_is_taken_of_the_running_page(running: Running, tmp_path: Path) -> None:
    if browser() is None:
        pytest.skip("chromium is not installed")
    file = tmp_path / "live.png"
    done = start("--capture", str(file), "--url", running.url, "--after", "0.5")
    _, errors = done.communicate(timeout=90)
    assert done.returncode == 0, errors
    data = file.read_bytes()
    assert data.startswith(PNG)
    assert int.from_bytes(data[16:20]) == 1440
    assert int.from_bytes(data[20:24]) > 1000
    assert len(data) > 50_000


def test_a_picture_of_a_page_that_is_not_there_is_refused(tmp_path: Path) -> None:
    if browser() is None:
        pytest.skip("chromium is not installed")
    nobody = f"http://127.0.0.1:{free_port()}/"
    with pytest.raises(UserError, match="check that `heliograph live` is running"):
        capture(nobody, tmp_path / "live.png")
    assert not (tmp_path / "live.png").exists()


def test_a_picture_without_a_browser_says_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match="Chromium is not installed"):
        capture("http://127.0.0.1:8050/", tmp_path / "live.png")


def test_a_port_in_use_is_named_with_a_way_out(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        process = start("--listen", f"127.0.0.1:{port}", "--segments", str(tmp_path))
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 2
    assert errors == (
        f"heliograph: port {port} on 127.0.0.1 is in use; stop the program that uses it, or choose another port: "
        f"--listen 127.0.0.1:{port + 1}\n"
    )


@pytest.mark.parametrize("text", ["8050", "127.0.0.1:", "127.0.0.1:http", ":8050", "127.0.0.1:70000"])
def test_an_address_that_is_none_is_refused(text: str) -> None:
    process = start("--listen", text)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "is not HOST:PORT" in errors


def test_it_ends_on_ctrl_c_without_a_traceback(running: Running) -> None:
    running.process.send_signal(signal.SIGINT)
    _, errors = running.process.communicate(timeout=20)
    assert running.process.returncode in (0, 130)
    assert "Traceback" not in errors

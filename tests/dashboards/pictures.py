"""Pictures of every live page on a light and a dark ground and at the width of a phone: `make pictures`.

The data is the sample fleet, continued for a minute and a half at a rate that varies. Data, clock and time zone are
fixed, so a picture changes with the page only. What if alone shows a log that a real engine wrote just before.

Beside the pictures lies a hash of what they are made from: `test_pictures.py` fails when it is old.
"""

from __future__ import annotations

import base64
import hashlib
import itertools
import logging
import os
import random
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np
from werkzeug.serving import make_server

from heliograph.dashboards.live.alerting import Alerting
from heliograph.dashboards.live.app import create
from heliograph.dashboards.live.control import Control
from heliograph.dashboards.live.pages import history
from heliograph.dashboards.live.past import Past
from heliograph.dashboards.live.recordings import Shelf
from heliograph.dashboards.live.replays import Question, Replays
from heliograph.dashboards.live.silences import Alertmanager, Matcher, Silence, Silences
from heliograph.dashboards.live.store import Store
from heliograph.monitor.alerts import load_evaluator
from heliograph.monitor.latency import dense
from heliograph.monitor.model import Event, Histogram, ObjectState, Snapshot
from tests.dashboards.browsing import chromium, until
from tests.dashboards.pasts import SLOW, keep_decisions, keep_history
from tests.dashboards.views import SECOND, Fleet
from tests.fleet import RATE, RATE_DECIDED, STREAM
from tests.incidents import KEPT, TICK, keep_incident
from tests.ports import free_port

PAGES = {
    "fleet": "",
    "grid": "grid",
    "alerts": "alerts?alert=HeliographReceiverFallingBehind",
    "topic": "topic?topic=PRICES.A",
    "receiver": "receiver?instance=slow",
    "congestion": "congestion",
    "whatif": "whatif?loss_high=0.9",
    "stores": "stores",
    "incident": f"incident?recording={KEPT}&span=unusual&at={TICK + 12}",
    "detail": "detail?of=topic&pattern=PRICES.*&level=3",
    "history": f"history?{urlencode({'series': SLOW})}",
    "lab": "lab?lines=receiver:slow&lines=all",
    "control": "control",
}
LOOKS: Mapping[str, tuple[str, int]] = {"": ("light", 1440), "-dark": ("dark", 1440), "-phone": ("light", 400)}
"""Ground and width by the end of a file's name."""
INPUTS = "live.inputs"
"""File with the hash of the inputs of the pictures beside it."""
SECONDS = 90
DECISIONS: Mapping[int, tuple[str, str, Mapping[str, int]]] = {
    25: ("receiver_slow", "slow is slow: its buffer is full", {"value_millionths": 1_000_000}),
    40: ("rate_changed", "rate lowered for lossy", {"from": 4_400_000, "to": RATE, "loss_millionths": 32_000}),
    62: ("receiver_suspended", "slow is suspended for 30 s", {"value_millionths": 1_000_000, "duration_ms": 30_000}),
    80: ("rate_changed", "rate lowered for lossy", {"from": RATE, "to": RATE_DECIDED, "loss_millionths": 21_000}),
}
"""Events of congestion control, by second."""
RATES = ((0, 4_400_000, 9_000), (40, RATE, 32_000), (80, RATE_DECIDED, 21_000))
"""Rate and the loss that decided it, from a second on."""
DRAWN = """
return document.querySelector('main') !== null
  && [...document.querySelectorAll('.graph')].every(it => it.querySelector('.main-svg'));
"""


def inputs() -> str:
    """Return a hash of the files that the pictures are made from: the live pages, this file and its sample fleet."""
    top = Path(__file__).resolve().parents[2]
    live = top / "dashboards/live"
    found = [path for path in live.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    found += [top / "dashboards/words.py", top / "tests/fleet.py", Path(__file__).resolve()]
    whole = hashlib.sha256()
    for path in sorted(found):
        whole.update(f"{path.relative_to(top)}\0".encode() + path.read_bytes())
    return whole.hexdigest()


def file_of(name: str, look: str) -> str:
    """Return the name of the file of a picture."""
    return "live.png" if (name, look) == ("fleet", "") else f"live-{name}{look}.png"


def main(folder: Path, *only: str) -> None:
    """Write live.png, the fleet page, and live-PAGE[-dark|-phone].png; only of the pages that are named, if any."""
    os.environ["TZ"] = "UTC"
    time.tzset()
    with tempfile.TemporaryDirectory() as place:
        snapshots = list(moments(Path(place) / "segments"))
        samples = iter(snapshots)
        alerts = Alerting(load_evaluator(), silencing(snapshots[-1].time_ns))
        store = Store(lambda: next(samples), place="/dev/shm/heliograph", alerts=alerts)
        for snapshot in snapshots:
            alerts.judge(snapshot, record_only=snapshot is not snapshots[-1])
            view = store.take()
        control = Control(b"sixteen characters", lambda: store.found, store.record)
        answers = itertools.count(view.time_ns, 1_000_000)  # the browser expects another time with each answer
        shelf = Shelf([keep_incident(Path(place) / "recordings").parent])
        past = studied(Path(place) / "history")
        replays = replayed(Path(place) / "decisions")
        app = create(store, lambda: next(answers), control, shelf, past=past, replays=replays)
        logging.getLogger("werkzeug").setLevel(logging.WARNING)
        server = make_server("127.0.0.1", free_port(), app.server, threaded=True)
        serving = threading.Thread(target=server.serve_forever, daemon=True)
        serving.start()
        try:
            with chromium(Path(place) / "profile") as driver:
                for name, path in PAGES.items():
                    if only and name not in only:
                        continue
                    for look, (ground, width) in LOOKS.items():
                        file = folder / file_of(name, look)
                        file.write_bytes(picture(driver, f"http://127.0.0.1:{server.port}/{path}", ground, width))
                        print(file)
        finally:
            server.shutdown()
            serving.join()
    if not only:
        (folder / INPUTS).write_text(inputs() + "\n")


def replayed(folder: Path) -> Replays:
    """A log of decisions whose replay is ready."""
    folder.mkdir()
    log = keep_decisions(folder)
    replays = Replays([folder])
    question = Question(log.name, (("loss_high", "0.9"),))  # as in the address
    until(lambda: replays.answer(question) is not None, "the replay", 90)
    return replays


def studied(folder: Path) -> Past:
    """A history whose page is ready."""
    past = Past(keep_history(folder))
    until(lambda: past.reading().series, "the history")
    until(lambda: "under way" not in str(history.parts(past, history.Choice(SLOW))["hy-verdict"]), "its study")
    return past


def silencing(now_ns: int) -> Alertmanager:
    """An Alertmanager that has answered with one silence, of the lossy receiver's requests."""
    manager = Alertmanager("http://alertmanager:9093")
    matchers = [Matcher("alertname", "HeliographCryingBabyReceiver"), Matcher("receiver", "lossy|bravo", is_regex=True)]
    hours = 3600 * SECOND
    silence = Silence(matchers, now_ns - hours, now_ns + 2 * hours, "ada", "its switch is replaced at noon", True)
    manager._silences = Silences("http://alertmanager:9093", [silence], now_ns - 5 * SECOND)
    return manager


def picture(driver: Any, url: str, ground: str, width: int) -> bytes:
    """The whole page as PNG."""
    features = [
        {"name": "prefers-color-scheme", "value": ground},
        {"name": "prefers-reduced-motion", "value": "reduce"},
    ]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    size = {"width": width, "height": 1200, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    driver.get(url)
    until(lambda: driver.execute_script(DRAWN), url)
    time.sleep(1.0)  # the lists of choices are loaded
    height = driver.execute_script("return Math.ceil(document.documentElement.getBoundingClientRect().height)")
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {**size, "height": height})
    time.sleep(1.0)  # the charts adapt to the window
    return base64.b64decode(driver.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})["data"])


def moments(folder: Path) -> Iterator[Snapshot]:
    """The sample fleet at each second: its first one, continued at a rate that varies."""
    fleet = Fleet(folder)
    fleet.store.need_stages()
    first, second = (found(fleet, moment) for moment in (0, 1))
    fleet.close()
    chance = random.Random(15)
    share = 0.0
    for moment in range(SECONDS):
        yield grown(first, second, moment, share)
        share += chance.uniform(0.9, 1.05)


def found(fleet: Fleet, moment: int) -> Snapshot:
    """The snapshot of a moment."""
    kept: list[Snapshot] = []
    sample = fleet.store._sample
    fleet.store._sample = lambda: kept.append(sample()) or kept[-1]  # type: ignore[func-returns-value]
    fleet.at(moment)
    return kept[-1]


def grown(first: Snapshot, second: Snapshot, moment: int, share: float) -> Snapshot:
    """The fleet after a number of seconds, when it has changed by a share of what one second changes."""
    time_ns = first.time_ns + moment * SECOND
    instances = tuple(
        replace(
            old,
            pid=4000 + number,
            heartbeat_ns=time_ns,
            objects=tuple(_rated(_grown(*pair, share), moment) for pair in zip(old.objects, new.objects, strict=True)),
        )
        for number, (old, new) in enumerate(zip(first.instances, second.instances, strict=True))
    )
    events = first.events if moment == 0 else second.events if moment == SECONDS // 2 else ()
    made = (_decision(first, moment),) if moment in DECISIONS else ()
    return Snapshot(time_ns, instances, tuple(replace(event, time_ns=time_ns) for event in (*events, *made)))


def _decision(first: Snapshot, moment: int) -> Event:
    name, text, arguments = DECISIONS[moment]
    feed = next(instance for instance in first.instances if instance.name == "feed")
    labels = {"instance": "feed", "stream": STREAM}
    return Event("feed", feed.incarnation, 100 + moment, 0, name, "info", labels, arguments, text)


def _grown(old: ObjectState, new: ObjectState, share: float) -> ObjectState:
    values = {name: max(0, value + round((new.values[name] - value) * share)) for name, value in old.values.items()}
    histograms = {name: _more(one, new.histograms[name], share) for name, one in old.histograms.items()}
    return replace(old, values=values, histograms=histograms)


def _rated(item: ObjectState, moment: int) -> ObjectState:
    if item.scope != "tx_stream":
        return item
    rate, loss = next((rate, loss) for since, rate, loss in reversed(RATES) if since <= moment)
    found = {"rate_limit": rate, "rate_decided": rate, "rate_loss": loss, "rate_decreases": moment // 40}
    return replace(item, values={**item.values, **found})


def _more(old: Histogram, new: Histogram, share: float) -> Histogram:
    before, after = dense(old), dense(new)
    rise = (after.counts.astype(np.float64) - before.counts) * share
    return replace(before, counts=before.counts + np.maximum(rise, 0.0).astype(np.uint64))


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])

"""What is put through faults: a case has a victim in a house and says when all is well again and what is gone."""

from __future__ import annotations

import json
import signal
import time
import urllib.request
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

from tests.faults.house import House
from tests.ports import free_port

__all__ = ["CASES", "Case", "remains"]


_MADE = "heliograph_exporter_snapshot_timestamp_seconds"
_SENT = "heliograph_node_messages_sent_total"


class Case(ABC):
    """A victim and what depends on it."""

    victim: str
    """Name of the process that faults are done to."""
    accounts_for: str
    """What `lost` counts, for people; empty: the component acknowledges nothing."""
    kills = 0
    """So far."""

    def __init__(self, house: House) -> None:
        """Start everything and wait until it works.

        Raises:
            RuntimeError: It does not.
        """
        from heliograph.monitor.sampler import Sampler

        self.house = house
        self.begin()
        if house.until(self.is_well) is None:
            raise RuntimeError(f"{self.victim} does not work: {self.why()} {house.last_words(self.victim)}")
        self.sampler = Sampler(house.segments)

    def close(self) -> None:
        """Let go of what was opened."""
        self.sampler.close()

    @abstractmethod
    def begin(self) -> None:
        """Start every process."""

    @abstractmethod
    def start(self) -> None:
        """Start the victim once more."""

    @abstractmethod
    def is_well(self) -> bool:
        """Everything works, by what has come since the last `mark`."""

    @abstractmethod
    def mark(self) -> None:
        """From now on only what is new counts."""

    def why(self) -> str:
        """What `is_well` found last, for people."""
        return ""

    def lost(self) -> int:
        """What was acknowledged and is not there."""
        return 0

    def residual(self) -> int:
        """The largest residual of the books of everyone, the dead included."""
        from heliograph.monitor.reconciliation import accounts

        snapshot = self.sampler.sample(histograms=False)
        return max((abs(row.residual) for row in accounts(snapshot)), default=0)

    def complaint(self) -> str:
        """What else is not as it should be; empty: nothing."""
        return ""

    def at_rest(self) -> list[str]:
        """What is wrong when nobody sends any more: all must have arrived, and no file of a dead instance be left."""
        publisher = self.house.child("publisher")
        publisher.send_signal(signal.SIGUSR1)
        quiet = self.house.until(lambda: self._in_flight() == 0)
        found = [] if quiet is not None else [f"in flight at rest: {self._in_flight()}"]
        return found + [note for note in (remains(self.house.segments),) if note]

    def _in_flight(self) -> int | None:
        """Of all streams together; None: there is no stream with both ends, or the publisher has not come to rest."""
        from heliograph.monitor.reconciliation import crossings, is_quiet

        before = self.sampler.sample(histograms=False)
        self.house.sleep(0.1)
        after = self.sampler.sample(histograms=False)
        found = crossings(after)
        return sum(row.in_flight for row in found) if found and is_quiet(before, after) else None


def remains(folder: Path) -> str:
    """What is wrong with the segments and flights of a folder: a name has those of one life, the dead are removed."""
    lives: dict[str, set[str]] = {}
    for path in folder.iterdir():
        name, pid, *_ = [*path.name.removeprefix(".").split("."), ""]
        lives.setdefault(name, set()).add(pid)
    crowds = {name: sorted(pids) for name, pids in lives.items() if len(pids) > 1}
    return f"files of more than one life: {crowds}" if crowds else ""


def _pair(house: House) -> tuple[str, str]:
    """Starts a publisher and a subscriber that nobody disturbs; their endpoint."""
    url = f"rmm+unicast://127.0.0.1:{free_port()}"
    house.actor("subscriber", url)
    house.actor("publisher", url)
    return url, url


# ---- engines ----


class _Engine(Case):
    accounts_for = "messages the publisher counted as acknowledged"

    def begin(self) -> None:
        self._acked = self._acked_read = self._received_read = 0
        self._received: set[tuple[int, int]] = set()
        self._missing: set[tuple[int, int]] = set()
        self.url = f"rmm+unicast://127.0.0.1:{free_port()}"
        self.house.actor("subscriber", self.url)
        self.house.actor("publisher", self.url)

    def start(self) -> None:
        self.house.actor(self.victim, self.url)

    def mark(self) -> None:
        self._acked = self.house.count("acked.bin")

    def is_well(self) -> bool:
        return self.house.count("acked.bin") >= self._acked + 60

    def lost(self) -> int:
        acked = self.house.records("acked.bin", self._acked_read)
        received = self.house.records("received.bin", self._received_read)
        self._acked_read += len(acked)
        self._received_read += len(received)
        self._received.update(received)
        self._missing = self._missing.union(acked) - self._received
        self._received.difference_update(acked)
        return len(self._missing)

    def complaint(self) -> str:
        from heliograph.monitor.model import Health

        def shown() -> list[str]:
            return sorted(
                owner.name for owner in self.sampler.sample(histograms=False).instances if owner.health is Health.LIVE
            )

        wanted = ["publisher", "subscriber"]
        if self.house.until(lambda: shown() == wanted) is None:
            return f"running instances shown: {shown()}"
        return remains(self.house.segments)


class Publisher(_Engine):
    """An engine that sends."""

    victim = "publisher"


class Subscriber(_Engine):
    """An engine that receives and whose application acknowledges."""

    victim = "subscriber"


# ---- what watches ----


class Monitor(Case):
    """`heliograph monitor` with a module that writes what happens."""

    victim = "monitor"
    accounts_for = ""

    def begin(self) -> None:
        _pair(self.house)
        self._log = self.house.folder / "events.jsonl"
        self._since_ns = 0
        self._poke()
        self.start()

    def start(self) -> None:
        module = f"log={self._log}"
        self.house.heliograph("monitor", "monitor", "--module", module, "--interval", "0.05")

    def mark(self) -> None:
        self._since_ns = time.time_ns()

    def _poke(self) -> None:
        """Something for it to tell of: an instance comes and goes."""
        self._visitor = self.house.start("visitor", "tests.faults.visitor")

    def is_well(self) -> bool:
        if self._visitor.poll() is not None:
            self._poke()
        return any(line["time_ns"] > self._since_ns for line in self._lines()[-50:])

    def _lines(self) -> list[dict[str, Any]]:
        try:
            text = self._log.read_text(encoding="utf-8")
        except FileNotFoundError:
            return []
        whole, _, _ = text.rpartition("\n")
        return [json.loads(line) for line in whole.splitlines()]

    def complaint(self) -> str:
        try:
            self._lines()
        except ValueError as error:
            return f"the log has a line that is no JSON: {error}"
        return ""


class Exporter(Case):
    """`heliograph export prometheus`."""

    victim = "exporter"
    accounts_for = ""

    def begin(self) -> None:
        _pair(self.house)
        self._port = free_port()
        self._since = 0.0
        self._text = self._why = ""
        self.start()

    def start(self) -> None:
        listen = f"127.0.0.1:{self._port}"
        self.house.heliograph("exporter", "export", "prometheus", "--listen", listen, "--interval", "0.2")

    def mark(self) -> None:
        self._since = time.time()

    def why(self) -> str:
        return f"{self._why}; made {self._values(_MADE)}, since {self._since}, sent {self._values(_SENT)}"

    def _values(self, name: str) -> list[float]:
        lines = (line for line in self._text.splitlines() if line.startswith(name) and not line.startswith("#"))
        return [float(line.rpartition(" ")[2]) for line in lines]

    def is_well(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/metrics", timeout=10.0) as answer:
                self._text = answer.read().decode()
        except OSError as error:
            self._why = repr(error)
            return False
        self._why = "the answer is old"
        made = self._values(_MADE)
        sent = self._values(_SENT)
        return bool(made) and max(made) > self._since and bool(sent) and max(sent) > 0

    def residual(self) -> int:
        exported = self._values("heliograph_reconciliation_residual")
        return max([super().residual(), *(round(abs(value)) for value in exported)])

    def complaint(self) -> str:
        counted = [line for line in self._text.splitlines() if line.startswith(_SENT) and '"publisher' in line]
        return "" if len(counted) == 1 else f"the publisher is exported {len(counted)} times: {counted}"


class _Collected(Case):
    accounts_for = ""

    def begin(self) -> None:
        _pair(self.house)
        self._url = f"rum://127.0.0.1:{free_port()}"
        self._lines = self.house.folder / "collect.jsonl"
        self._since_ns = self._snapshots = 0
        self.collect()
        self.publish()

    def collect(self) -> None:
        words = ("collect", "--from", self._url, "--json", "--interval", "0.1")
        self.house.heliograph("collector", *words, output=self._lines)

    def publish(self) -> None:
        words = ("publish", "--to", self._url, "--interval", "0.05", "--keyframe", "2", "--host", "here")
        self.house.heliograph("statistics publisher", *words)

    def mark(self) -> None:
        self._since_ns = time.time_ns()
        self._snapshots = self._taken()

    def _taken(self) -> int:
        """Snapshots taken of all hosts by the present collector."""
        return sum(host["snapshots"] for host in self.last().get("hosts", ()))

    def last(self) -> dict[str, Any]:
        """The newest whole line."""
        try:
            with self._lines.open("rb") as file:
                file.seek(max(0, file.seek(0, 2) - 20_000))
                lines = file.read().split(b"\n")[:-1]
            found: dict[str, Any] = json.loads(lines[-1])
        except (OSError, IndexError, ValueError):
            return {}
        return found

    def is_well(self) -> bool:
        line = self.last()
        if line.get("time_ns", 0) <= self._since_ns or (
            self.victim != "collector" and self._taken() < self._snapshots + 4
        ):
            return False
        return bool(line["hosts"]) and all(host["up"] and host["instances"] >= 2 for host in line["hosts"])

    def complaint(self) -> str:
        hosts = [host["host"] for host in self.last().get("hosts", ())]
        return "" if hosts == ["here"] else f"hosts shown: {hosts}"


class Collector(_Collected):
    """`heliograph collect`."""

    victim = "collector"

    def start(self) -> None:
        self.collect()


class StatisticsPublisher(_Collected):
    """`heliograph publish`."""

    victim = "statistics publisher"

    def start(self) -> None:
        self.publish()


class History(Case):
    """The spool and the HDR log: what a roll-up starts from."""

    victim = "history"
    accounts_for = "histogram intervals told as written, and lines of the log once seen"

    def begin(self) -> None:
        _pair(self.house)
        self._rows = self._log_lines = self._told = self._told_read = 0
        self._rows_of: dict[Path, int] = {}
        self._broken: set[Path] = set()
        self._per_life: dict[int, int] = {}
        self.start()

    def start(self) -> None:
        self.house.actor("history", str(self.house.segments))

    def _spooled(self) -> int:
        """Rows in the spool. Files never change, so each is read once."""
        import pyarrow.parquet as pq

        files = set((self.house.folder / "spool").glob("date=*/*.parquet"))
        for path in sorted(files - self._rows_of.keys() - self._broken):
            if path.name.startswith("."):
                continue
            try:
                self._rows_of[path] = pq.ParquetFile(path).metadata.num_rows
            except (OSError, ValueError):
                self._broken.add(path)
        return sum(rows for path, rows in self._rows_of.items() if path in files)

    def _logged(self) -> int:
        """Whole lines of the log; `at_rest` reads what is in them."""
        try:
            return (self.house.folder / "latency.hlog").read_bytes().count(b"\nTag=")
        except FileNotFoundError:
            return 0

    def mark(self) -> None:
        self._rows, self._log_lines = self._spooled(), self._logged()
        told = self.house.records("told.bin", self._told_read)
        self._told_read += len(told)
        for life, rows in told:
            self._per_life[life] = max(rows, self._per_life.get(life, 0))
        self._told = sum(self._per_life.values())

    def is_well(self) -> bool:
        return self._spooled() > self._rows and self._logged() > self._log_lines

    def lost(self) -> int:
        rows = self._spooled()
        return max(0, self._told - rows) + max(0, self._log_lines - self._logged())

    def complaint(self) -> str:
        if self._broken:
            return f"{len(self._broken)} files of the spool cannot be read"
        left = [path.name for path in (self.house.folder / "spool").rglob(".tmp-*")]
        dead = [name for name in left if not name.startswith(f".tmp-{self.house.child('history').pid}-")]
        return f"left in the spool by the dead: {dead}" if dead else ""

    def at_rest(self) -> list[str]:
        from heliograph.monitor.history.files import scan
        from heliograph.monitor.history.hlog import Malformed, read_hlog

        found = super().at_rest()
        self.house.end("history")
        scanned = scan(self.house.folder / "spool")
        if scanned.broken or scanned.rows != self._spooled():
            found.append(f"the spool: {scanned.rows} rows, {self._spooled()} counted; broken: {scanned.broken[:3]}")
        lines = list(read_hlog(self.house.folder / "latency.hlog"))
        cut = sum(isinstance(line, Malformed) for line in lines)
        if cut > self.kills or len(lines) - cut < self._logged() - self.kills:
            found.append(f"the log: {cut} of {len(lines)} lines cannot be read after {self.kills} kills")
        return found


CASES: dict[str, type[Case]] = {
    "engine, publisher": Publisher,
    "engine, subscriber": Subscriber,
    "monitor": Monitor,
    "exporter (prometheus)": Exporter,
    "collector": Collector,
    "publisher of statistics": StatisticsPublisher,
    "history (spool, HDR log)": History,
}


def logs(folder: Path) -> str:
    """What everybody said last, for a report of a failure."""
    return "\n".join(f"{path.name}: {path.read_text(errors='replace')[-400:]}" for path in sorted(folder.glob("*.log")))

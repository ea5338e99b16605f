"""What is put through faults: a case has a victim in a house and says when all is well again and what is gone."""

from __future__ import annotations

import json
import time
import urllib.request
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

from tests.faults.house import House, free_port, until

__all__ = ["CASES", "Case"]


_MADE = "heliograph_exporter_snapshot_timestamp_seconds"
_SENT = "heliograph_node_messages_sent_total"


class Case(ABC):
    """A victim and what depends on it."""

    victim: str
    """Name of the process that faults are done to."""
    accounts_for: str
    """What `lost` counts, for people; empty: the component acknowledges nothing."""

    def __init__(self, house: House) -> None:
        """Start everything and wait until it works.

        Raises:
            RuntimeError: It does not.
        """
        from heliograph.monitor.sampler import Sampler

        self.house = house
        self.begin()
        if until(self.is_well) is None:
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
        from heliograph.monitor.books import accounts

        snapshot = self.sampler.sample(histograms=False)
        return max((abs(row.residual) for row in accounts(snapshot)), default=0)

    def complaint(self) -> str:
        """What else is not as it should be; empty: nothing."""
        return ""


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
        self._acked = self._life = 0
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
        acked = self.house.records("acked.bin")
        return len(acked - self.house.records("received.bin"))

    def complaint(self) -> str:
        from heliograph.monitor.model import Health

        def shown() -> list[str]:
            return sorted(
                owner.name for owner in self.sampler.sample(histograms=False).instances if owner.health is Health.LIVE
            )

        wanted = ["publisher", "subscriber"]
        return "" if until(lambda: shown() == wanted, 10.0) is not None else f"running instances shown: {shown()}"


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
        exported = self._values("heliograph_books_residual")
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
        self._since_ns = self._frames = 0
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
        self._frames = self._taken()

    def _taken(self) -> int:
        """Frames taken of all hosts by the present collector."""
        return sum(host["frames"] for host in self.last().get("hosts", ()))

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
            self.victim != "collector" and self._taken() < self._frames + 4
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
    accounts_for = "histogram intervals told as written, and lines of the log once read"

    def begin(self) -> None:
        _pair(self.house)
        self._rows = self._log_lines = self._told = 0
        self._per_life: dict[int, int] = {}
        self.start()

    def start(self) -> None:
        self.house.actor("history", str(self.house.segments))

    def _spooled(self) -> tuple[int, int]:
        """Rows, and files that cannot be read."""
        from heliograph.monitor.history.files import scan

        if not (self.house.folder / "spool").is_dir():
            return 0, 0
        found = scan(self.house.folder / "spool")
        return found.rows, len(found.broken)

    def _logged(self) -> int:
        from heliograph.monitor.history.hlog import HlogInterval, read_hlog

        path = self.house.folder / "latency.hlog"
        return sum(isinstance(found, HlogInterval) for found in read_hlog(path)) if path.exists() else 0

    def mark(self) -> None:
        self._rows, self._log_lines = self._spooled()[0], self._logged()
        for life, rows in self.house.records("told.bin"):
            self._per_life[life] = max(rows, self._per_life.get(life, 0))
        self._told = sum(self._per_life.values())

    def is_well(self) -> bool:
        return self._spooled()[0] > self._rows and self._logged() > self._log_lines

    def lost(self) -> int:
        rows = self._spooled()[0]
        return max(0, self._told - rows) + max(0, self._log_lines - self._logged())

    def complaint(self) -> str:
        broken = self._spooled()[1]
        if broken:
            return f"{broken} files of the spool cannot be read"
        left = [path.name for path in (self.house.folder / "spool").rglob(".tmp-*")]
        victim = self.house.child("history")
        dead = [name for name in left if f"-{victim.pid}-" not in name]
        # What a kill leaves is removed by the start after the next: a file so young may be somebody's.
        return f"left in the spool: {dead}" if len(dead) > 4 else ""


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

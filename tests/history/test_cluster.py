"""The roll-up on a real standalone cluster: a master and two workers of one core each, on the loopback.

A worker and a driver are killed in the middle of a roll-up. Afterwards the history equals the direct merge bit for bit.
On the same cluster a stream adds a spool in S3 to a history in S3.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from heliograph.monitor.history.hours import load, read_history
from heliograph.monitor.history.merge import merge_spool
from heliograph.monitor.history.remote import place_of
from heliograph.monitor.history.rollup import Threads, rollup
from heliograph.monitor.history.writes import put
from tests.history.conftest import SHORT_LIVED
from tests.history.object_store import store_of_commands
from tests.history.recordings import sample_spool
from tests.history.test_rollup import ORDER
from tests.ports import free_port

PATIENCE_S = 280.0
"""Bound of each wait. A cluster needs some seconds; with a load of 15 on two cores, two minutes."""
WORKERS = ("worker-1", "worker-2")
FOR_EXECUTORS = {"AWS_ENDPOINT_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_EC2_METADATA_DISABLED"}

pytestmark = [
    pytest.mark.skipif(shutil.which("java") is None, reason="no java: apt-get install openjdk-17-jre-headless"),
    pytest.mark.skipif(importlib.util.find_spec("pyspark") is None, reason="no pyspark: pip install .[history]"),
]


def until(condition: Callable[[], bool], what: str) -> None:
    """Wait for a condition.

    Raises:
        AssertionError: It did not come true within `PATIENCE_S`.
    """
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end, f"waited {PATIENCE_S:.0f} s for {what}"
        time.sleep(0.02)


def answers(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1.0):
        return True
    return False


class Cluster:
    """Processes of a cluster and of its drivers. Each leads its own session, and dies with this process.

    Args:
        folder: Directory for logs and for the files of the workers.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._processes: list[subprocess.Popen[bytes]] = []
        self._port = free_port()
        self.master = f"spark://127.0.0.1:{self._port}"
        self.workers: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        """Start the master and both workers."""
        self._daemon("master", "master.Master", self._port)
        until(lambda: answers(self._port), "the master")
        self.workers = [
            self._daemon(
                name, "worker.Worker", free_port(), "-c", 1, "-m", "1g", "-d", self._folder / name, self.master
            )
            for name in WORKERS
        ]
        until(lambda: self.log("master").count("Registering worker") == len(WORKERS), "both workers")

    def _daemon(self, name: str, role: str, port: int, *options: object) -> subprocess.Popen[bytes]:
        import pyspark

        program = Path(pyspark.__file__).parent / "bin" / "spark-class"
        own = ("--host", "127.0.0.1", "--port", port, "--webui-port", free_port())
        return self._start(name, program, f"org.apache.spark.deploy.{role}", *own, *options)

    def _start(self, name: str, *command: object) -> subprocess.Popen[bytes]:
        environment = os.environ | {
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_DAEMON_MEMORY": "256m",
            "JAVA_TOOL_OPTIONS": SHORT_LIVED,
            # Without the ratio, all tasks of a short job may run on the worker that is ready first.
            "PYSPARK_SUBMIT_ARGS": "--conf spark.scheduler.minRegisteredResourcesRatio=1.0"
            " --conf spark.executor.memory=512m"
            + "".join(f" --conf spark.executorEnv.{name}={os.environ[name]}" for name in FOR_EXECUTORS & {*os.environ})
            + " pyspark-shell",
        }
        with (self._folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", *map(str, command)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=environment,
                start_new_session=True,
            )
        self._processes.append(process)
        return process

    def rollup(self, name: str, spool: Path | str, history: Path | str, *action: str) -> subprocess.Popen[bytes]:
        """Start a roll-up, or another action; its output is the log of this name."""
        command = (sys.executable, "-m", "heliograph.monitor.cli", "history", *(action or ("rollup",)))
        return self._start(name, *command, "--master", self.master, "--spool", spool, "--history", history)

    def log(self, name: str) -> str:
        return (self._folder / f"{name}.log").read_text(encoding="utf-8", errors="replace")

    def finished(self, name: str, process: subprocess.Popen[bytes]) -> str:
        """Wait for the end of a roll-up; returns its result in words."""
        until(lambda: process.poll() is not None, f"the end of {name}")
        assert process.returncode == 0, self.log(name)
        return self.log(name)

    def executors(self) -> list[int]:
        """Number of executors that each worker has started."""
        return [len(list((self._folder / name).glob("app-*/*"))) for name in WORKERS]

    def close(self) -> None:
        for process in self._processes:
            kill(process)


def kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and the JVMs it has started, as the loss of a machine does."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    made = Cluster(tmp_path_factory.mktemp("cluster"))
    try:
        made.start()
        yield made
    finally:
        made.close()


def is_writing(history: Path) -> bool:
    """Whether a roll-up is between its halves: the intervals are merged on the workers, and no hour is committed."""
    return any(history.glob(".run-*"))


def commits(history: Path) -> int:
    return len(list(history.rglob("manifest-*.json")))


def test_a_stream_adds_a_spool_in_s3_to_a_history_in_s3(cluster: Cluster, tmp_path: Path) -> None:
    pytest.importorskip("moto.server", reason="moto is not installed")
    rows = sample_spool(tmp_path / "spool", files=4, hours=3)
    before = cluster.executors()
    with store_of_commands("cluster") as store:
        spool, history = place_of("s3://cluster/spool"), place_of("s3://cluster/history")
        for path in sorted((tmp_path / "spool").rglob("*.parquet")):
            put(spool / path.relative_to(tmp_path / "spool").as_posix(), path.read_bytes())
        store.every = 10
        try:
            driver = cluster.rollup("driver in s3", str(spool), str(history), "stream", "--once")
            told = cluster.finished("driver in s3", driver)
        finally:
            store.every = 0
        assert f"{len(rows)} new intervals with {sum(row.n for row in rows):,} values in 3 hours" in told
        table, broken = read_history(history)
        assert broken == []
        assert table.sort_by(ORDER).equals(merge_spool(tmp_path / "spool")[0])
        assert store.failed > 0
    assert [after - count for after, count in zip(cluster.executors(), before, strict=True)] == [1, 1]


def test_history_equals_the_direct_merge_after_a_worker_and_a_driver_are_killed(
    cluster: Cluster, tmp_path: Path
) -> None:
    spool = tmp_path / "spool"
    rows = sample_spool(spool, files=12, hours=6)
    values = f"{sum(row.n for row in rows):,}"
    direct, _ = merge_spool(spool)

    def check(history: Path) -> None:
        """The same rows, counts and percentiles, and no file that no manifest lists."""
        table, broken = read_history(history)
        assert broken == []
        assert table.sort_by(ORDER).equals(direct)
        listed = sum(len(load(folder).files) for folder in (history / "1h").glob("*/*"))
        assert len(list(history.rglob("*.parquet"))) == listed

    def killed_between_halves(
        name: str, history: Path, victim: subprocess.Popen[bytes] | None
    ) -> subprocess.Popen[bytes]:
        driver = cluster.rollup(name, spool, history)
        until(lambda: is_writing(history) or driver.poll() is not None, f"the second half of {name}")
        kill(victim or driver)
        assert driver.poll() is None or victim is None, cluster.log(name)
        assert commits(history) == 0, "killed too late"
        return driver

    executors = cluster.executors()
    # The driver dies. Its session takes its JVM along; the executors on the workers end on their own.
    history = tmp_path / "driver-killed"
    killed_between_halves("first driver", history, None)
    assert read_history(history)[0].num_rows == 0
    again = cluster.rollup("second driver", spool, history)
    assert f"{len(rows)} new intervals with {values} values" in cluster.finished("second driver", again)
    assert cluster.executors() == [count + 2 for count in executors], "each worker takes part in each roll-up"
    check(history)

    # A worker dies with its executor, and with the partly merged rows that it kept for the second half.
    history = tmp_path / "worker-killed"
    driver = killed_between_halves("third driver", history, cluster.workers[1])
    assert f"{len(rows)} new intervals with {values} values" in cluster.finished("third driver", driver)
    check(history)
    assert rollup(Threads(), spool, history).intervals == 0
    check(history)

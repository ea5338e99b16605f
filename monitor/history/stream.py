"""The roll-up as a stream: new files of a spool enter the history in batches, by Spark's Structured Streaming.

    source `heliograph`, content `files` -> names of the new files -> a roll-up of these files, on the workers

A batch is a roll-up (`monitor.history.rollup`) of some files, so the commits and their rules are the same. The
manifests make it count once, however often Spark repeats it: an interval that an hour has merged is left out. So the
stream needs no checkpoint that outlives it. After a kill it begins behind the files of the ledger, and whatever a
killed batch has committed is found in the manifests (ADR 0075).

A batch holds the lock of the history while it works, and waits for another holder, for example `compact`.
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable, Container
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heliograph.monitor.errors import UserError
from heliograph.monitor.history.files import no_spool
from heliograph.monitor.history.lock import Busy
from heliograph.monitor.history.remote import Place, absolute
from heliograph.monitor.history.rollup import Progress, RolledUp, Runner, rollup
from heliograph.monitor.history.rollup_spark import OnSpark
from heliograph.monitor.history.source import SpoolSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["add_batch", "stream"]

_PATIENCE_S = 600.0
_POLL_S = 0.1

_SLOW_START = "Python worker failed to connect back"
"""Spark waits ten seconds for the interpreter that runs the source on the driver; no option changes that."""

_STARTS = 10


def stream(
    spark: SparkSession,
    spool: Place,
    history: Place,
    *,
    every: float | None,
    stop: threading.Event,
    told: Callable[[int, RolledUp], None],
    progress: Progress = lambda text: None,
) -> None:
    """Merge new files of a spool into a history until `stop` is set.

    Args:
        spark: The session. Workers must see both directories under the same name.
        spool: Directory to read.
        history: Directory to write; created when missing.
        every: Seconds between the beginnings of two batches; None: end when the files that are there now are merged.
        stop: Ends the stream after the running batch.
        told: Called after each batch with its number and result.
        progress: Called from time to time.

    Raises:
        UserError: The spool does not exist, the history cannot be written, or Spark fails.
    """
    if not spool.is_dir():
        raise no_spool(spool)
    spool, history = absolute(spool), absolute(history)
    at_work = threading.Lock()
    is_over = threading.Event()
    failed: list[BaseException] = []

    def batch(frame: DataFrame, number: int) -> None:
        with at_work:
            if is_over.is_set():
                return
            try:
                names = {row.file for row in frame.collect()}
                told(number, add_batch(OnSpark(spark), spool, history, names, number, progress))
            except BaseException as error:
                failed.append(error)
                raise

    def ended() -> BaseException | None:
        """Run a query until it ends or `stop` is set; returns its error."""
        failed.clear()
        is_over.clear()
        with tempfile.TemporaryDirectory(prefix="heliograph-stream-") as folder:
            writer = files.writeStream.foreachBatch(batch).option("checkpointLocation", Path(folder).as_uri())
            query = writer.trigger(**trigger).start()
            try:
                while query.isActive and not stop.wait(_POLL_S):
                    pass
            finally:
                with at_work:  # a batch that has begun ends with its commits, and no other begins
                    is_over.set()
                query.stop()
        return failed[0] if failed else query.exception()

    spark.dataSource.register(SpoolSource)
    source = spark.readStream.format("heliograph").option("content", "files").option("history", str(history))
    files = source.load(str(spool))
    trigger: dict[str, Any] = (
        {"availableNow": True} if every is None else {"processingTime": f"{round(every * 1000)} milliseconds"}
    )
    for start in range(1, _STARTS + 1):
        error = ended()
        if isinstance(error, UserError):
            raise error
        if error is None or stop.is_set():
            return
        if _SLOW_START not in str(error):
            raise UserError(f"the stream has failed: {str(error).strip().splitlines()[0]}") from error
        progress(f"Spark gave up waiting for its Python process, start {start} of {_STARTS}; this machine is busy")
    raise UserError(
        f"Spark waits ten seconds for its Python process, and this machine was too busy for that {_STARTS} times; "
        "`heliograph history rollup` has no such limit"
    )


def add_batch(
    runner: Runner, spool: Place, history: Place, names: Container[str], number: int, progress: Progress
) -> RolledUp:
    """Add the files of a batch to the history; intervals that it has are left out.

    Args:
        runner: Where the work is done.
        spool: Directory of the files, absolute.
        history: Directory of the history, absolute.
        names: Paths of the files below the spool.
        number: Number of the batch, for the manifests.
        progress: Called from time to time.

    Raises:
        Busy: The history was locked for ten minutes.
        UserError: The history cannot be written.
    """
    end = time.monotonic() + _PATIENCE_S
    while True:
        try:
            return rollup(
                runner,
                spool,
                history,
                only=names,
                batch=str(number),
                progress=lambda text: progress(f"batch {number}: {text}"),
            )
        except Busy:
            if time.monotonic() > end:
                raise
            progress(f"batch {number}: waiting for another process that writes {history}")
            time.sleep(_POLL_S)

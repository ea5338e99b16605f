"""A Spark session for the history: the same on a laptop and, with another master, on a cluster.

This module sets the options of a local session: this interpreter for the workers, loopback only, no web page, UTC, few
shuffle partitions, and little output. The output of the JVM goes to a file that is shown only when the start fails.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

from heliograph.monitor.errors import UserError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["LOCAL", "spark_session"]

LOCAL = "local[2]"

_JAVA = 17
_INSTALL = (
    "install it (apt-get install openjdk-17-jre-headless) or set JAVA_HOME; `heliograph history merge` needs no Java"
)

_JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""The JVM only passes rows on; the work is in the Python processes, which need the cores that the optimizing compiler
and a parallel collector would take."""

_LOG4J = """\
rootLogger.level = error
rootLogger.appenderRef.stderr.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n
"""


@contextmanager
def spark_session(master: str = LOCAL, name: str = "heliograph history") -> Iterator[SparkSession]:
    """A session that ends with the block.

    Raises:
        UserError: PySpark or Java is missing, or the session does not start.
    """
    try:
        from pyspark.sql import SparkSession
    except ModuleNotFoundError as error:
        raise UserError(
            "PySpark is not installed: pip install 'heliograph[history]', or use `heliograph history merge`"
        ) from error
    _require_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    if master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    with tempfile.TemporaryDirectory(prefix="heliograph-spark-") as folder:
        log4j = Path(folder, "log4j2.properties")
        log4j.write_text(_LOG4J, encoding="ascii")
        builder = SparkSession.builder.master(master).appName(name)  # type: ignore[attr-defined, unused-ignore]
        for key, value in _settings(master, log4j, folder).items():
            builder = builder.config(key, value)
        session = _started(builder, master, Path(folder, "jvm.log"))
        try:
            yield session
        finally:
            session.stop()


def _settings(master: str, log4j: Path, folder: str) -> dict[str, str]:
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.python.authenticate.socketTimeout": "120s",  # the start of an interpreter on a busy machine
        "spark.sql.shuffle.partitions": "8",
        "spark.sql.adaptive.coalescePartitions.enabled": "false",
        "spark.sql.parquet.compression.codec": "zstd",
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "2000",
        "spark.driver.extraJavaOptions": f"-Dlog4j.configurationFile={log4j} -Dlog4j2.configurationFile={log4j} {_JVM}",
    }
    if master.startswith("local"):
        settings |= {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.local.dir": folder,
            "spark.sql.warehouse.dir": f"{folder}/warehouse",
        }
    return settings


def _started(builder: SparkSession.Builder, master: str, log: Path) -> SparkSession:
    with log.open("w+b") as file:
        try:
            with _errors_to(file):
                session = builder.getOrCreate()
                session.sparkContext.setLogLevel("ERROR")
                return session
        except Exception as error:
            file.seek(0)
            told = file.read().decode("utf-8", "replace").splitlines()
            told = [line for line in told if re.search("error|exception", line, re.IGNORECASE)]
            reason = told[-1] if told else str(error).partition("\n")[0]
            raise UserError(f"Spark did not start on master {master!r}: {reason.strip()[:300]}") from error


@contextmanager
def _errors_to(file: IO[bytes]) -> Iterator[None]:
    """Send what this process and the ones it starts write to stderr into a file."""
    sys.stderr.flush()
    saved = os.dup(2)
    try:
        os.dup2(file.fileno(), 2)
        yield
    finally:
        sys.stderr.flush()
        os.dup2(saved, 2)
        os.close(saved)


def _require_java() -> None:
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=f"{home}/bin") if home else shutil.which("java")
    if java is None:
        where = f"JAVA_HOME ({home}) holds no bin/java" if home else "no java was found"
        raise UserError(f"Spark needs Java {_JAVA} or newer and {where}: {_INSTALL}")
    done = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    version = re.search(r'version "(?:1\.)?(\d+)', done.stderr + done.stdout)
    if done.returncode != 0 or version is None:
        raise UserError(f"Spark needs Java {_JAVA} or newer and {java} does not run: {_INSTALL}")
    if int(version[1]) < _JAVA:
        raise UserError(f"Spark needs Java {_JAVA} or newer and {java} is Java {version[1]}: {_INSTALL}")

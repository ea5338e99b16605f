"""One Spark session for all tests of the history: starting one costs seconds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from heliograph.monitor.history.spark import spark_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Options of JVMs that live for seconds: half the processor time, because they compile once."""


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    with ExitStack() as stack:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("JAVA_TOOL_OPTIONS", SHORT_LIVED)
            session = stack.enter_context(spark_session("local[2]", "heliograph tests"))
        yield session

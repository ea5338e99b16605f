"""The schema: pyarrow and Spark forms say the same, metrics are the catalogue's."""

from __future__ import annotations

import pytest

from heliograph.engine import catalogue
from heliograph.monitor.history.schema import (
    HISTORY,
    LABELS,
    SERIES,
    SPOOL,
    Column,
    arrow_schema,
    metric_titles,
    spark_schema,
)


@pytest.mark.parametrize("columns", [SPOOL, HISTORY])
def test_both_forms_have_the_same_columns_in_the_same_types(columns: tuple[Column, ...]) -> None:
    from pyspark.sql.pandas.types import to_arrow_type

    arrow, spark = arrow_schema(columns), spark_schema(columns)
    assert arrow.names == spark.names == [column.name for column in columns]
    assert [to_arrow_type(field.dataType, timezone="UTC") for field in spark.fields] == arrow.types


def test_every_histogram_of_the_catalogue_has_a_title() -> None:
    histograms = [
        f"{scope.name}_{statistic.name}"
        for scope in catalogue.scopes().values()
        for statistic in scope.statistics
        if statistic.kind == "histogram"
    ]
    assert "receiver_total_latency" in histograms
    assert set(histograms) < set(metric_titles())


@pytest.mark.parametrize("columns", [SPOOL, HISTORY])
def test_what_tells_series_apart_is_in_every_table(columns: tuple[Column, ...]) -> None:
    assert {*LABELS, *SERIES} <= {column.name for column in columns}

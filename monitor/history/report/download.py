"""All rows of a report as one file that its page carries: CSV, compressed by gzip, behind a link."""

from __future__ import annotations

import base64
import csv
import gzip
import io
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from heliograph.monitor.history.report.figures import SHOWN, MetricFigures
from heliograph.monitor.history.report.uncertainty import least
from heliograph.monitor.history.schema import PERCENTILES

__all__ = ["download_link"]

_COLUMNS = ("start", "length_s", *SHOWN, "values", "out_of_range", "mean_ns", *PERCENTILES, "max_ns", "covered_s")
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def _lines(metrics: Sequence[MetricFigures]) -> Iterator[str]:
    """Yield the head and one line per series and hour; percentiles of too few values are empty."""
    least_of = [least(fraction) for fraction in PERCENTILES.values()]
    texts: dict[datetime, str] = {}  # the series have the same hours
    yield _line(name if name not in PERCENTILES else f"{name}_ns" for name in _COLUMNS)
    for metric in metrics:
        for series in metric.series:
            labels = _line(_text(series.labels[name]) for name in SHOWN)
            for hour in series.hours:
                if hour.start not in texts:
                    texts[hour.start] = f"{hour.start:%Y-%m-%dT%H:%M:%SZ}"
                n = hour.n
                quantiles = ",".join(
                    ["" if n < needed else str(value) for needed, value in zip(least_of, hour.percentiles, strict=True)]
                )
                yield (
                    f"{texts[hour.start]},{round(hour.length.total_seconds())},{labels},{n},{hour.dropped},"
                    f"{round(hour.mean)},{quantiles},{hour.max},{hour.covered_ms // 1000 if hour.covered_ms else ''}"
                )


def _line(cells: Iterable[str]) -> str:
    """Return cells as a line of CSV, without its end; only texts need the quotes of `csv`."""
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(cells)
    return text.getvalue()


def _text(label: str) -> str:
    """Return a label that no spreadsheet takes for a formula."""
    return f"'{label}" if label.startswith(_FORMULA) else label


def download_link(metrics: Sequence[MetricFigures]) -> str:
    """Return the link that saves all rows as ``latency.csv.gz``, as markup."""
    text = "".join(f"{line}\n" for line in _lines(metrics))
    packed = gzip.compress(text.encode("utf-8", "replace"), 9, mtime=0)
    data = base64.b64encode(packed).decode("ascii")
    return f'<a download="latency.csv.gz" href="data:application/gzip;base64,{data}">all rows as CSV (gzip)</a>'

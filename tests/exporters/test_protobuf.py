"""Prometheus' protobuf format and native histograms: read by a decoder of our own, by arithmetic, and by Prometheus."""

from __future__ import annotations

import http.client
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from prometheus_client.parser import text_string_to_metric_families as plain

from heliograph.exporters.collector import SnapshotCollector
from heliograph.exporters.native import Native, native
from heliograph.exporters.prometheus import PrometheusExporter, exposition
from heliograph.exporters.protobuf import CONTENT_TYPE, encode, is_wanted
from heliograph.monitor.cli import main
from heliograph.monitor.errors import UserError
from heliograph.monitor.latency import percentile, upper_bounds
from heliograph.monitor.model import Histogram
from tests.exporters.making import CELLS, HIGHEST, START, at, histogram, instance, receiver
from tests.prometheus import serve

PROTOBUF = "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"
PROMETHEUS_2 = f"{PROTOBUF},application/openmetrics-text;version=1.0.0;q=0.8,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
PROMETHEUS_3 = (
    "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.6,"
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,text/plain;version=0.0.4;q=0.2,*/*;q=0.1"
)

# A decoder from the wire format and the field numbers of client_model alone.


def varint(data: bytes, at_: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at_]
        value |= (byte % 128) << shift
        at_, shift = at_ + 1, shift + 7
        if byte < 128:
            return value, at_


def fields(data: bytes) -> Iterator[tuple[int, Any]]:
    at_ = 0
    while at_ < len(data):
        tag, at_ = varint(data, at_)
        if tag % 8 == 0:
            value: Any
            value, at_ = varint(data, at_)
        elif tag % 8 == 1:
            (value,), at_ = struct.unpack_from("<d", data, at_), at_ + 8
        else:
            assert tag % 8 == 2
            size, at_ = varint(data, at_)
            value, at_ = data[at_ : at_ + size], at_ + size
            assert len(value) == size
        yield tag // 8, value


def signed(value: int) -> int:
    return -(value + 1) // 2 if value % 2 else value // 2


@dataclass
class Read:
    """A histogram or a plain value, as read."""

    labels: dict[str, str] = field(default_factory=dict)
    value: float | None = None
    count: int = 0
    total: float = 0.0
    classic: list[tuple[float, int]] = field(default_factory=list)
    schema: int | None = None
    zero_threshold: float = 0.0
    zero_count: int = 0
    spans: list[tuple[int, int]] = field(default_factory=list)
    deltas: list[int] = field(default_factory=list)
    created_ns: int = 0

    def buckets(self) -> list[tuple[float, float, int]]:
        """Lower and upper bound and count, the zero bucket first."""
        assert self.schema is not None
        found = [(0.0, self.zero_threshold, self.zero_count)]
        counts = iter(list(accumulate(self.deltas)))
        index = 0
        for offset, length in self.spans:
            index += offset
            for _ in range(length):
                base = 2.0 ** (2.0**-self.schema)
                found.append((base ** (index - 1), base**index, next(counts)))
                index += 1
        assert next(counts, None) is None, "spans and deltas agree"
        return found

    def quantile(self, q: float) -> float:
        """As promql/quantile.go of Prometheus 2.42 has it."""
        rank, below = q * self.count, 0.0
        for lower, upper, count in self.buckets():
            if count and below + count >= rank:
                return lower + (upper - lower) * (rank - below) / count
            below += count
        raise AssertionError("the count is larger than the buckets")


def read(data: bytes) -> dict[str, tuple[int, str, list[Read]]]:
    """Families by name: type, help, metrics."""
    families: dict[str, tuple[int, str, list[Read]]] = {}
    at_ = 0
    while at_ < len(data):
        size, at_ = varint(data, at_)
        name, text, kind = "", "", -1
        metrics = []
        for number, value in fields(data[at_ : at_ + size]):
            match number:
                case 1:
                    name = value.decode()
                case 2:
                    text = value.decode()
                case 3:
                    kind = value
                case 4:
                    metrics.append(metric(value))
        at_ += size
        assert name not in families
        families[name] = kind, text, metrics
    assert at_ == len(data)
    return families


def nanoseconds(timestamp: bytes) -> int:
    found = dict(fields(timestamp))
    return int(found.get(1, 0)) * 10**9 + int(found.get(2, 0))


def metric(data: bytes) -> Read:
    found = Read()
    for number, value in fields(data):
        if number == 1:
            pair = dict(fields(value))
            found.labels[pair[1].decode()] = pair[2].decode()
        elif number in (2, 3):
            inside = dict(fields(value))
            found.value = inside[1]
            found.created_ns = nanoseconds(inside.get(3, b""))
        else:
            assert number == 7
            for inner, part in fields(value):
                match inner:
                    case 1:
                        found.count = part
                    case 2:
                        found.total = part
                    case 3:
                        bucket = dict(fields(part))
                        found.classic.append((bucket[2], bucket[1]))
                    case 5:
                        found.schema = signed(part)
                    case 6:
                        found.zero_threshold = part
                    case 7:
                        found.zero_count = part
                    case 15:
                        found.created_ns = nanoseconds(part)
                    case 12:
                        span = dict(fields(part))
                        found.spans.append((signed(span[1]), span[2]))
                    case 13:
                        place = 0
                        while place < len(part):
                            delta, place = varint(part, place)
                            found.deltas.append(signed(delta))
    return found


# Continuous distributions: the share of the values up to a value in ns.

Curve = Callable[[npt.NDArray[np.float64]], npt.NDArray[np.float64]]
CURVES: dict[str, Curve] = {
    "exponential": lambda x: 1 - np.exp(-x / 200_000),
    "heavy tail": lambda x: 1 - (1 + x / 20_000) ** -2,
    "log-logistic": lambda x: x**4 / (x**4 + 50_000.0**4),
    "two modes": lambda x: 0.6 * x**10 / (x**10 + 5e4**10) + 0.4 * x**10 / (x**10 + 2e6**10),
    "weibull": lambda x: 1 - np.exp(-((x / 300_000) ** 0.7)),
}
QUANTILES = (0.1, 0.5, 0.9, 0.99, 0.999, 0.9999)
BOUNDS = {5: 0.011, 8: 0.0014}


def drawn(curve: str, count: int = 10**10) -> Histogram:
    """A histogram of many values."""
    empty = Histogram(np.zeros(CELLS, dtype=np.uint64), 1, HIGHEST, 3)
    ends = upper_bounds(empty).astype(np.float64)
    counts = np.diff(np.rint(CURVES[curve](ends) * count), prepend=0).astype(np.uint64)
    return Histogram(counts, 1, HIGHEST, 3, total_ns=int((counts * ends).sum()))


def as_read(made: Histogram, schema: int) -> Read:
    collector = SnapshotCollector()
    collector.update(at(1, instance("alpha", receiver("alpha", histograms={"total_latency": made}))))
    families = read(encode(collector.collect(), schema))
    (found,) = families["heliograph_receiver_total_latency_seconds"][2]
    return found


@pytest.mark.parametrize("schema", BOUNDS)
@pytest.mark.parametrize("curve", CURVES)
def test_quantiles_of_native_buckets_agree_with_hdr(curve: str, schema: int) -> None:
    whole = drawn(curve)
    found = as_read(whole, schema)
    assert found.count == whole.count == sum(count for _, _, count in found.buckets())
    assert found.total == whole.total_ns / 1e9
    for q in QUANTILES:
        truth = percentile(whole, q) / 1e9
        assert abs(found.quantile(q) / truth - 1) <= BOUNDS[schema], (q, found.quantile(q), truth)


def test_every_value_is_in_the_bucket_of_its_cell_and_none_is_lost() -> None:
    counts = {0: 3, 1: 1, 2: 5, 3: 2, 1_000: 7, 1_000_000: 1, 59_999_999_999: 4}
    found = as_read(histogram(counts, above=2), 8)
    assert found.zero_count == 3
    assert 0 < found.zero_threshold < 1e-9
    assert found.count == sum(counts.values()) + 2
    filled = [bucket for bucket in found.buckets()[1:] if bucket[2]]
    assert [count for _, _, count in filled] == [1, 5, 2, 7, 1, 6]
    for (lower, upper, _), value in zip(filled, sorted(counts)[1:], strict=True):
        assert lower * (1 - 0.001) < value / 1e9 <= upper * (1 + 0.001)
    assert found.buckets()[1][0] >= found.zero_threshold


@pytest.mark.parametrize("schema", range(-4, 9))
def test_buckets_of_every_schema_hold_all_values(schema: int) -> None:
    rng = np.random.default_rng(schema + 4)
    counts = np.zeros(CELLS, dtype=np.uint64)
    counts[rng.integers(0, CELLS, 300)] = rng.integers(1, 1 << 40, 300).astype(np.uint64)
    whole = Histogram(counts, 1, HIGHEST, 3)
    found = native(whole, schema)
    assert found.zero_count + int(np.cumsum(found.deltas).sum()) == whole.count
    assert sum(length for _, length in found.spans) == found.deltas.size
    assert all(offset > 2 for offset, _ in found.spans[1:]), "short gaps are filled"


def test_an_empty_histogram_is_native_too() -> None:
    found = as_read(histogram({}), 5)
    assert (found.count, found.spans, found.deltas, found.schema) == (0, [], [], 5)
    assert found.zero_threshold > 0, "Prometheus knows a native histogram by it"
    assert native(histogram({}), 5).deltas.size == 0


def test_a_layout_of_more_cells_gives_the_same_buckets() -> None:
    coarse = histogram({12_345: 7, 1_010_000_000: 2})
    fine_counts = np.zeros(1 << 22, dtype=np.uint64)
    fine = Histogram(fine_counts, 1, HIGHEST, 5)
    for value, count in ((12_345, 7), (1_010_000_000, 2)):
        fine_counts[int(np.searchsorted(upper_bounds(fine), value))] = count
    one, other = native(coarse, 5), native(fine, 5)
    assert isinstance(one, Native)
    assert (one.spans, one.deltas.tolist()) == (other.spans, other.deltas.tolist())


def test_it_says_what_the_text_says() -> None:
    made = {"total_latency": histogram({10_000: 5, 70_000_000: 2}, above=1)}
    fleet = [receiver("alpha", f'ä\\"\n{n}', messages_delivered=n, histograms=made) for n in (0, 5, 1 << 60)]
    collector = SnapshotCollector(monotonic_ns=lambda: 0)
    collector.update(at(1, instance("alpha", *fleet)))
    found = read(encode(collector.collect(), 5))
    text = {family.name: family for family in plain(exposition(collector).decode())}
    assert {name.removesuffix("_total") if kind == 0 else name for name, (kind, _, _) in found.items()} == set(text)
    for name, (kind, words, metrics) in found.items():
        family = text[name.removesuffix("_total") if kind == 0 else name]
        assert family.type == {0: "counter", 1: "gauge", 4: "histogram"}[kind]
        assert family.documentation == words
        seen: dict[tuple[Any, ...], float] = {}
        for one in metrics:
            key = tuple(sorted(one.labels.items()))
            if kind != 4:
                assert one.value is not None
                seen[(name, key)] = one.value
                continue
            seen[(f"{name}_count", key)], seen[(f"{name}_sum", key)] = one.count, one.total
            for bound, count in one.classic:
                le = "+Inf" if bound == float("inf") else repr(bound)
                seen[(f"{name}_bucket", tuple(sorted({**one.labels, "le": le}.items())))] = count
        said = {(s.name, tuple(sorted(s.labels.items()))): s.value for s in family.samples}
        assert seen == said


def test_counters_and_histograms_have_the_time_at_which_they_began() -> None:
    made = {"total_latency": histogram({10_000: 5})}
    collector = SnapshotCollector()
    collector.update(at(1, instance("alpha", receiver("alpha", messages_delivered=5, histograms=made))))
    found = read(encode(collector.collect(), 5))
    for name in ("heliograph_receiver_messages_delivered_total", "heliograph_receiver_total_latency_seconds"):
        assert [one.created_ns for one in found[name][2]] == [START]
    assert {one.created_ns for kind, _, metrics in found.values() if kind == 1 for one in metrics} == {0}


ACCEPTED = {
    PROTOBUF: True,
    PROMETHEUS_2: True,
    PROMETHEUS_3: True,
    "": False,
    "*/*": False,
    "text/plain": False,
    PROTOBUF.replace("delimited", "text"): False,
    "application/vnd.google.protobuf": False,
    f"{PROTOBUF};q=0": False,
    f"{PROTOBUF};q=0.3,text/plain;version=0.0.4;q=0.5": False,
    f"{PROTOBUF};q=high": False,
    f"application/openmetrics-text;version=1.0.0,{PROTOBUF};q=0.9": False,
}


@pytest.mark.parametrize("accept", ACCEPTED)
def test_it_is_given_to_scrapers_that_prefer_it(accept: str) -> None:
    assert is_wanted(accept) == ACCEPTED[accept]


@pytest.fixture
def exporter() -> Iterator[PrometheusExporter]:
    running = PrometheusExporter("127.0.0.1:0", native_schema=8)
    fleet = [receiver("alpha", topic, histograms={"total_latency": drawn(topic)}) for topic in CURVES]
    running.publish(at(1, instance("alpha", *fleet)))
    yield running
    running.close()


def test_the_endpoint_serves_it_with_the_schema_asked_for(exporter: PrometheusExporter) -> None:
    connection = http.client.HTTPConnection(*exporter.address, timeout=30)
    connection.request("GET", "/metrics", headers={"Accept": PROMETHEUS_2})
    response = connection.getresponse()
    assert response.getheader("Content-Type") == CONTENT_TYPE
    found = read(response.read())["heliograph_receiver_total_latency_seconds"][2]
    assert [one.schema for one in found] == [8] * len(CURVES)
    connection.close()


def test_the_command_passes_schema_and_created_series(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    given: dict[str, Any] = {}

    def made(self: PrometheusExporter, **settings: Any) -> None:
        given.update(settings)
        raise UserError("seen")

    monkeypatch.setattr(PrometheusExporter, "__init__", made)
    words = ["export", "prometheus", "--segments", str(tmp_path), "--native-schema", "0", "--created-series"]
    assert main(words) == 2
    assert (given["native_schema"], given["created_series"]) == (0, True)


@pytest.mark.parametrize("words", [["prometheus", "--native-schema", "9"], ["prometheus", "--native-schema", "x"]])
def test_another_schema_is_refused(words: Sequence[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["export", *words])
    assert "--native-schema" in capsys.readouterr().err


@pytest.mark.parametrize("schema", BOUNDS)
def test_a_real_prometheus_answers_quantiles_within_the_bound(tmp_path: Path, schema: int) -> None:
    histograms = {topic: drawn(topic) for topic in CURVES}
    fleet = [receiver("alpha", topic, histograms={"total_latency": one}) for topic, one in histograms.items()]
    running = PrometheusExporter("127.0.0.1:0", native_schema=schema)
    running.publish(at(1, instance("alpha", *fleet)))
    (tmp_path / "prometheus.yml").write_text(f"""\
global: {{scrape_interval: 1s, scrape_timeout: 1s}}
scrape_configs: [{{job_name: heliograph, static_configs: [{{targets: ["127.0.0.1:{running.address[1]}"]}}]}}]
""")
    name = "heliograph_receiver_total_latency_seconds"
    try:
        with serve(tmp_path / "prometheus.yml", tmp_path / "data", "--enable-feature=native-histograms") as server:
            server.wait_until(f"histogram_count({name})")
            counted = server.query(f"histogram_count({name})")
            assert counted == {("alpha", topic): one.count for topic, one in histograms.items()}
            for q in QUANTILES:
                answers = server.query(f"histogram_quantile({q}, {name})")
                for topic, one in histograms.items():
                    truth = percentile(one, q) / 1e9
                    assert abs(answers[("alpha", topic)] / truth - 1) <= BOUNDS[schema], (topic, q)
            merged = server.query(f"histogram_count(sum by (node) ({name}))")
            assert merged == {("alpha",): sum(one.count for one in histograms.values())}
    finally:
        running.close()

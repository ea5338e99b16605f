"""Exemplars: the newest loss behind each counter, as each format carries it and as a real Prometheus stores it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

from prometheus_client.openmetrics.exposition import generate_latest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parsed

from heliograph.engine import Instance
from heliograph.exporters.collector import SnapshotCollector
from heliograph.exporters.prometheus import PrometheusExporter
from heliograph.exporters.protobuf import encode
from heliograph.exporters.rendering import Format, Renderer
from heliograph.exporters.selection import EVERYTHING
from heliograph.monitor.model import Event, InstanceState, Snapshot
from heliograph.monitor.sampler import Sampler
from tests.exporters.making import START, at, instance, receiver, state
from tests.exporters.test_protobuf import fields, nanoseconds
from tests.ports import free_port
from tests.prometheus import serve

STREAM = {"instance": "alpha", "stream": "s1"}
TOPIC = {"instance": "alpha", "topic": "PRICES.A", "stream": "s1"}
Found = Mapping[tuple[str, ...], tuple[dict[str, str], float, float]]


def event(of: InstanceState, name: str, labels: Mapping[str, str], second: float, **arguments: int) -> Event:
    return Event(
        of.name, of.incarnation, 1, START + int(second * 1e9), name, "error", dict(labels), arguments, "made by hand"
    )


def lost(of: InstanceState, second: float, first: int, count: int) -> Event:
    return event(of, "messages_lost", {**TOPIC, "instance": of.name}, second, first_message=first, messages=count)


def with_events(snapshot: Snapshot, *events: Event) -> Snapshot:
    return Snapshot(snapshot.time_ns, snapshot.instances, events=events)


def alpha(pid: int = 100) -> InstanceState:
    return instance("alpha", receiver("alpha", messages_lost=7), state("rx_stream", STREAM), pid=pid)


def exemplars(collector: SnapshotCollector) -> Found:
    """Labels, value and time by node, sample name and reason, from the OpenMetrics text."""
    text = Renderer(1).render(collector.collect(), Format.OPENMETRICS).decode()
    return {
        (sample.labels["node"], sample.name, *([sample.labels["reason"]] if "reason" in sample.labels else [])): (
            sample.exemplar.labels,
            sample.exemplar.value,
            float(sample.exemplar.timestamp),
        )
        for family in parsed(text)  # type: ignore[no-untyped-call]
        for sample in family.samples
        if sample.exemplar is not None
    }


def test_the_newest_loss_of_a_series_is_its_exemplar() -> None:
    one, collector = alpha(), SnapshotCollector()
    packets = {"first_sequence": 90, "packets": 4, "reason": 3}
    collector.update(with_events(at(1, one), lost(one, 0.2, 100, 3), lost(one, 0.5, 110, 4)))
    collector.update(with_events(at(2, one), event(one, "packets_lost", STREAM, 1.5, **packets)))
    assert exemplars(collector) == {
        ("alpha", "heliograph_receiver_messages_lost_total"): ({"first_message": "110"}, 4.0, START / 1e9 + 0.5),
        ("alpha", "heliograph_rx_stream_packets_lost_total", "deadline"): (
            {"first_sequence": "90"},
            4.0,
            START / 1e9 + 1.5,
        ),
    }


def test_openmetrics_is_written_as_prometheus_client_does_and_the_text_format_has_none() -> None:
    one, collector = alpha(), SnapshotCollector(monotonic_ns=lambda: 0)
    collector.update(with_events(at(1, one), lost(one, 0.2, 100, 3)))
    assert Renderer(1).render(collector.collect(), Format.OPENMETRICS) == generate_latest(collector.registry())
    with_created = Renderer(1, has_created=True).render(collector.collect(), Format.OPENMETRICS).decode()
    line, after = with_created.partition("heliograph_receiver_messages_lost_total{")[2].splitlines()[:2]
    assert line.endswith(f' 7.0 # {{first_message="100"}} 3.0 {START / 1e9 + 0.2}')
    assert after.startswith("heliograph_receiver_messages_lost_created{")
    assert " # " not in Renderer(1).render(collector.collect(), Format.TEXT).decode()


def test_protobuf_carries_them() -> None:
    one, collector = alpha(), SnapshotCollector()
    collector.update(with_events(at(1, one), lost(one, 0.5, 100, 3)))
    (family,) = (one for one in collector.families(EVERYTHING) if one.name == "heliograph_receiver_messages_lost")
    data = encode([family], 5)
    (metric,) = (value for number, value in fields(data[data.index(b"\n") :]) if number == 4)
    (counter,) = (value for number, value in fields(metric) if number == 3)
    found = dict(fields(dict(fields(counter))[2]))
    assert dict(fields(found[1])) == {1: b"first_message", 2: b"100"}
    assert (found[2], nanoseconds(found[3])) == (3.0, START + 500_000_000)


def test_an_exemplar_belongs_to_the_run_that_lost_and_goes_with_its_object() -> None:
    first, second, collector = alpha(), alpha(pid=200), SnapshotCollector()
    collector.update(with_events(at(1, first, second), lost(second, 0.2, 100, 3)))
    assert [node for node, *_ in exemplars(collector)] == ["alpha@200"]
    collector.update(at(2, first))
    assert not exemplars(collector)
    collector.update(at(3, first, second))
    assert not exemplars(collector), "not kept for a later object of that name"


def test_events_that_this_version_cannot_read_are_passed_over() -> None:
    one, collector = alpha(), SnapshotCollector()
    events = [
        event(one, "messages_lost", TOPIC, 0.1),
        event(one, "messages_lost", STREAM, 0.1, first_message=1, messages=1),
        event(one, "packets_lost", STREAM, 0.1, first_sequence=1, packets=1, reason=99),
        event(one, "packets_lost", STREAM, 0.1, first_sequence=1, packets=1),
        lost(instance("nobody"), 0.1, 1, 1),
    ]
    collector.update(with_events(at(1, one), *events))
    assert not exemplars(collector)


def test_prometheus_stores_what_a_real_receiver_lost(segments: Path, tmp_path: Path) -> None:
    exporter = PrometheusExporter("127.0.0.1:0")
    target = f"static_configs: [{{targets: ['127.0.0.1:{exporter.address[1]}']}}]"
    jobs = f"scrape_configs: [{{job_name: heliograph, scrape_interval: 1s, {target}}}]\n"
    (tmp_path / "prometheus.yml").write_text(jobs)
    endpoint = f"rmm+unicast://127.0.0.1:{free_port()}"
    try:
        with (
            Instance(name="source") as source,
            Instance(name="sink") as sink,
            sink.receiver(endpoint, "PRICES.A", inject_loss=0.5, nak_deadline=0.05) as taker,
            source.transmitter(endpoint, "PRICES.A", linger=0.0) as transmitter,
            Sampler(segments) as sampler,
        ):
            losses: list[tuple[int, int]] = []
            until = time.monotonic() + 60
            while not losses and time.monotonic() < until:
                for number in range(100):
                    transmitter.send(b"%d" % number)
                    transmitter.flush()
                taker.receive(timeout=0.2)
                snapshot = sampler.sample()
                exporter.publish(snapshot)
                arguments = [one.arguments for one in snapshot.events if one.name == "messages_lost"]
                losses = [(each["first_message"], each["messages"]) for each in arguments]
            with serve(tmp_path / "prometheus.yml", tmp_path / "data", "--enable-feature=exemplar-storage") as server:
                lost_series = 'heliograph_receiver_messages_lost_total{node="sink",topic="PRICES.A"}'
                server.wait_until(lost_series)
                now = time.time()
                (found,) = server.get("query_exemplars", query=lost_series, start=f"{now - 300}", end=f"{now + 60}")
    finally:
        exporter.close()
    (exemplar,) = found["exemplars"]
    assert (int(exemplar["labels"]["first_message"]), float(exemplar["value"])) == losses[-1]

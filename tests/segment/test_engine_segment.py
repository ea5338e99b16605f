"""What the C engine writes, read from the page alone."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from heliograph.engine import Instance
from tests.segment.decoder import Damaged, Decoded, decode, decode_live
from tests.segments import SegmentEvent, SegmentObject, directory_text, write_segment

MESSAGES = 500


def _endpoint(number: int) -> str:
    port = 20000 + os.getpid() % 20000 + 90 + number
    return f"rmm://239.192.33.3:{port}?interface=127.0.0.1&ttl=0"


def _read(instance: Instance) -> Decoded:
    return decode_live(instance.segment)


@pytest.fixture(name="engine")
def _engine() -> Iterator[Instance]:
    with Instance(name="decoded engine", mode="poll", segment_bytes=8 << 20, level=2) as instance:
        yield instance


def _exchange(engine: Instance, endpoint: str, topic: str, count: int, **options: float) -> None:
    """Send and receive `count` messages of 100 bytes over loopback."""
    with (
        engine.receiver(endpoint, topic, **options) as receiver,
        engine.transmitter(endpoint, topic, linger=0.0) as transmitter,
    ):
        received = 0
        for _ in range(count):
            transmitter.send(bytes(100))
            received += len(receiver.receive(0, limit=64))
        deadline = time.monotonic() + 30
        while received < count and time.monotonic() < deadline:
            received += len(receiver.receive(1, limit=64))
        assert received == count
        engine.poll()


def test_the_header_tells_who_and_since_when(engine: Instance) -> None:
    before = time.time_ns()
    seen = _read(engine)
    assert (seen.state, seen.pid, seen.mode, seen.name) == ("running", os.getpid(), "poll", "decoded engine")
    assert seen.incarnation != 0
    assert seen.started_ns <= before
    assert seen.heartbeat_ns >= seen.started_ns
    assert engine.segment is not None
    assert engine.segment.name == f"decoded_engine.{os.getpid()}.helio"


def test_the_directory_is_the_catalogue(engine: Instance) -> None:
    assert engine.segment is not None
    assert directory_text().encode() in engine.segment.read_bytes()


def test_the_instance_describes_itself(engine: Instance) -> None:
    (instance,) = _read(engine).of("instance")
    assert instance.labels["instance"] == "decoded engine"
    assert instance.labels["pid"] == str(os.getpid())
    assert (instance.labels["mode"], instance.labels["idle"], instance.labels["cpu"]) == ("poll", "backoff", "-1")
    assert (instance.labels["priority"], instance.labels["lock_memory"]) == ("0", "false")


def test_every_message_is_counted_at_both_ends(engine: Instance) -> None:
    _exchange(engine, _endpoint(0), "PRICES", MESSAGES)
    seen = _read(engine)
    (transmitter,) = seen.of("transmitter", topic="PRICES")
    (receiver,) = seen.of("receiver", topic="PRICES")
    (instance,) = seen.of("instance")
    assert transmitter.values["messages_sent"] == transmitter.values["next_message"] == MESSAGES
    assert receiver.values["messages_delivered"] == receiver.values["next_message"] == MESSAGES
    assert receiver.values["messages_lost"] == receiver.values["messages_before_join"] == 0
    assert receiver.values["bytes_delivered"] == transmitter.values["bytes_sent"] == MESSAGES * 100
    assert instance.values["messages_sent"] == instance.values["messages_received"] == MESSAGES
    assert receiver.labels["stream"] == transmitter.labels["stream"]
    assert not any(item.torn for item in seen.objects)


def test_latency_histograms_hold_every_message(engine: Instance) -> None:
    _exchange(engine, _endpoint(1), "PRICES", MESSAGES)
    seen = _read(engine)
    (receiver,) = seen.of("receiver", topic="PRICES")
    (transmitter,) = seen.of("transmitter", topic="PRICES")
    total = receiver.histograms["total_latency"]
    refused = receiver.values["latency_invalid_samples"]
    assert total.total + total.above + refused == MESSAGES
    assert total.negative == 0
    assert transmitter.histograms["send_latency"].total > 0
    assert transmitter.histograms["batch_latency"].total > 0


def test_a_message_submitted_while_the_engine_is_at_work_takes_no_negative_time() -> None:
    with (
        Instance(name="busy", mode="thread", idle="spin", segment_bytes=8 << 20, level=2) as engine,
        engine.transmitter(_endpoint(7), "PRICES", linger=0.0) as transmitter,
    ):
        for _ in range(50_000):
            transmitter.send(bytes(100))
        transmitter.flush(timeout=30)
        (record,) = _read(engine).of("transmitter", topic="PRICES")
    batches = record.histograms["batch_latency"]
    assert batches.total > 0
    assert batches.negative == 0


def test_objects_that_went_keep_their_last_values(engine: Instance) -> None:
    _exchange(engine, _endpoint(2), "PRICES", MESSAGES)
    seen = _read(engine)
    (receiver,) = seen.of("receiver", topic="PRICES")
    assert receiver.state == "gone"
    assert receiver.closed_ns >= receiver.created_ns > 0
    assert receiver.values["messages_delivered"] == MESSAGES


def test_requests_for_repair_are_counted_where_they_leave_and_where_they_arrive(engine: Instance) -> None:
    _exchange(engine, _endpoint(3), "PRICES", MESSAGES, inject_loss=0.1)
    seen = _read(engine)
    (source,) = seen.of("tx_stream")
    (stream,) = seen.of("rx_stream")
    (peer,) = seen.of("tx_receiver")
    (receiver,) = seen.of("receiver")
    assert stream.values["naks_sent"] >= stream.values["packets_missed"] > 0
    assert stream.values["naks_sent"] >= source.values["naks_received"] >= peer.values["naks_received"] > 0
    assert peer.labels["receiver"] == stream.labels["feedback_address"]
    assert peer.labels["name"] == "decoded engine"
    assert receiver.values["messages_recovered"] > 0
    assert stream.histograms["recovery_time"].total == stream.values["packets_recovered"]


def test_events_are_told_in_order(engine: Instance) -> None:
    _exchange(engine, _endpoint(4), "PRICES", 10)
    seen = _read(engine)
    assert [event.number for event in seen.events] == list(range(seen.events_written))
    names = [event.name for event in seen.events]
    assert names[0] == "instance_started"
    assert "stream_opened" in names
    (instance,) = seen.of("instance")
    assert instance.values["events_emitted"] == seen.events_written
    assert all(event.text for event in seen.events)


def test_level_0_has_no_histograms() -> None:
    with Instance(name="bare", mode="poll", segment_bytes=1 << 20, level=0) as engine:
        _exchange(engine, _endpoint(5), "PRICES", 10)
        assert not any(item.histograms for item in _read(engine).objects)


def test_a_clean_end_removes_the_file() -> None:
    with Instance(name="brief", mode="poll", segment_bytes=1 << 20) as engine:
        path = engine.segment
        assert path is not None
        assert path.exists()
    assert not path.exists()


def test_the_independent_writer_and_this_reader_agree(tmp_path: Path) -> None:
    labels = {"instance": "alpha", "topic": "A", "stream": "0a0b0c0d0e0f:1"}
    path = tmp_path / "alpha.1.helio"
    write_segment(
        path,
        name="alpha",
        objects=[
            SegmentObject(
                "receiver", labels, values={"queue_bytes": 7}, histograms={"total_latency": {1000: 2, 10**11: 1}}
            )
        ],
        events=[SegmentEvent("messages_lost", "gone", arguments=(4, 2), slot=0)],
    )
    seen = decode(path.read_bytes())
    (receiver,) = seen.of("receiver", **labels)
    assert receiver.values["queue_bytes"] == 7
    assert receiver.histograms["total_latency"].counts == {1000: 2}
    assert receiver.histograms["total_latency"].above == 1
    (event,) = seen.events
    assert (event.name, event.severity, event.arguments, event.slot) == ("messages_lost", "error", (4, 2, 0, 0), 0)


def test_damage_is_seen(engine: Instance) -> None:
    assert engine.segment is not None
    data = bytearray(engine.segment.read_bytes())
    with pytest.raises(Damaged, match="size"):
        decode(bytes(data[:-8]))
    data[72:80] = (len(data)).to_bytes(8, "little")
    with pytest.raises(Damaged, match="directory lies outside"):
        decode(bytes(data))

"""Many messages in one buffer: batches received, packed messages sent."""

from __future__ import annotations

import gc
import sys
import tracemalloc
from array import array
from typing import Any

import numpy as np
import pytest

from heliograph.engine import Batch, ClosedError, Instance, MessageSizeError
from heliograph.engine.batch import FIELDS


def take(instance: Instance, endpoint: str, bodies: list[bytes]) -> list[Batch]:
    """Send the bodies packed, with offsets, and receive them in batches."""
    offsets = np.cumsum([0, *map(len, bodies)]).astype(np.uint64)
    with instance.receiver(endpoint, "T") as receiver, instance.transmitter(endpoint, "T") as transmitter:
        assert transmitter.send_packed(b"".join(bodies), offsets=offsets) == len(bodies)
        batches: list[Batch] = []
        while sum(map(len, batches)) < len(bodies):
            batches.append(receiver.receive_batch(timeout=5, limit=100))
            assert batches[-1]
        return batches


def test_packed_messages_arrive_whole_and_in_order(threaded: Instance, multicast: str) -> None:
    bodies = [bytes([i % 256]) * (i % 300) for i in range(2000)]
    batches = take(threaded, multicast, bodies)
    assert [bytes(view) for batch in batches for view in batch] == bodies
    assert all(len(batch) <= 100 for batch in batches)
    numbers = np.concatenate([batch.table["number"] for batch in batches])
    assert (numbers == np.arange(len(bodies))).all()


def test_the_table_tells_times_and_places(threaded: Instance, multicast: str) -> None:
    (batch, *_) = take(threaded, multicast, [b"abc", b"", b"de"])
    table = batch.table
    assert table["length"].tolist()[: len(batch)] == [3, 0, 2][: len(batch)]
    assert (table["submit_ns"] <= table["receive_ns"]).all()
    assert (table["stream"] == 0).all()
    assert (table["flags"] == 0).all()


def test_messages_of_one_size_are_rows_of_numbers(threaded: Instance, multicast: str) -> None:
    sent = np.arange(3000, dtype="<f8").reshape(1000, 3)
    with threaded.receiver(multicast, "T") as receiver, threaded.transmitter(multicast, "T") as transmitter:
        assert transmitter.send_packed(sent.tobytes(), size=24) == 1000
        rows = []
        while sum(map(len, rows)) < 1000:
            rows.append(receiver.receive_batch(timeout=5).matrix("<f8"))
        assert (np.concatenate(rows) == sent).all()


def make(*records: tuple[int, ...], data: bytes = b"abcde") -> Batch:
    return Batch(data, np.array(list(records), dtype=np.dtype(FIELDS)).tobytes())


def test_messages_of_many_sizes_are_no_matrix() -> None:
    batch = make((0, 3, 0, 0, 0, 0, 0), (3, 2, 1, 0, 0, 0, 0))
    with pytest.raises(ValueError, match="different sizes, from 2 to 3 bytes"):
        batch.matrix("u1")


@pytest.mark.parametrize(
    ("dtype", "shape"),
    [
        ("u1", (2, 8)),
        ("<f4", (2, 2)),
        (np.dtype(">i8"), (2, 1)),
        (np.uint16, (2, 4)),
        (float, (2, 1)),
        ([("bid", "<f4"), ("ask", "<f4")], (2, 1)),
        (("<u2", (2,)), (2, 4)),
    ],
    ids=str,
)
def test_rows_may_have_any_type(dtype: Any, shape: tuple[int, int]) -> None:
    batch = make((0, 8, 0, 0, 0, 0, 0), (8, 8, 1, 0, 0, 0, 0), data=bytes(range(16)))
    for _ in range(2):
        rows = batch.matrix(dtype)
        assert rows.shape == shape
        assert rows.tobytes() == batch.data
        assert not rows.flags.writeable
        assert rows.base is not None


@pytest.mark.parametrize(
    ("dtype", "error"),
    [("<f4", ValueError), ("S", ValueError), ("V0", ValueError), ("no type", TypeError), (object(), TypeError)],
    ids=["floats", "no-length", "no-bytes", "no-type", "an-object"],
)
def test_rows_of_an_unfit_type_are_refused(dtype: Any, error: type[Exception]) -> None:
    batch = make((0, 6, 0, 0, 0, 0, 0), (6, 6, 1, 0, 0, 0, 0), data=bytes(12))
    with pytest.raises(error):
        batch.matrix(dtype)


def test_rows_of_objects_are_refused() -> None:
    with pytest.raises(ValueError, match="no rows of object"):
        make((0, 8, 0, 0, 0, 0, 0), data=bytes(8)).matrix(object)


def test_empty_messages_are_empty_rows() -> None:
    assert make((0, 0, 0, 0, 0, 0, 0), (0, 0, 1, 0, 0, 0, 0), data=b"").matrix("<f8").shape == (2, 0)


def test_views_and_rows_outlive_their_batch_and_the_receiver(instance: Instance, multicast: str) -> None:
    receiver, transmitter = instance.receiver(multicast, "T"), instance.transmitter(multicast, "T", linger=0.0)
    transmitter.send_packed(b"abcdefgh", size=4)
    batch = receiver.receive_batch(timeout=5)
    view, rows, table = batch[0], batch.matrix("u1"), batch.table
    transmitter.send_packed(b"ABCDEFGH", size=4)
    assert receiver.receive_batch(timeout=5)
    del batch
    receiver.close()
    instance.close()
    gc.collect()
    assert (bytes(view), rows[0].tobytes(), table["number"][0]) == (b"abcd", b"abcd", 0)


def test_batches_leak_nothing(polled: Instance, multicast: str) -> None:
    receiver, transmitter = polled.receiver(multicast, "T"), polled.transmitter(multicast, "T", linger=0.0)

    def once() -> None:
        transmitter.send_packed(bytes(4000), size=40)
        left = 100
        while left:
            batch = receiver.receive_batch(timeout=5)
            left -= len(batch)
            assert batch.matrix("<f8").shape == (len(batch), 5)
            assert len(list(batch)) == len(batch.table)

    for _ in range(20):
        once()
    gc.collect()
    blocks, kind = sys.getallocatedblocks(), sys.getrefcount(np.dtype("<f8"))
    tracemalloc.start()
    try:
        once()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(200):
            once()
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] - before < 20_000
    finally:
        tracemalloc.stop()
    assert sys.getallocatedblocks() - blocks < 200
    assert abs(sys.getrefcount(np.dtype("<f8")) - kind) < 10


def test_a_batch_is_a_sequence() -> None:
    batch = make((0, 3, 7, 1, 2, 0, 0), (3, 2, 8, 1, 2, 0, 1))
    assert len(batch) == 2
    assert bytes(batch[0]) == b"abc"
    assert bytes(batch[-1]) == b"de"
    assert [bytes(view) for view in batch[:5]] == [b"abc", b"de"]
    assert batch.table["number"].tolist() == [7, 8]
    assert repr(batch) == "<Batch of 2 messages, 5 bytes>"
    with pytest.raises(IndexError):
        batch[2]
    assert not Batch(b"", b"")
    assert Batch(b"", b"").matrix("u1").shape == (0, 0)


def test_a_batch_is_empty_when_nothing_came(polled: Instance, multicast: str) -> None:
    with polled.receiver(multicast, "T") as receiver:
        assert len(receiver.receive_batch(timeout=0)) == 0
        with pytest.raises(ValueError, match="limit must be 1 to 65536 messages, not 0"):
            receiver.receive_batch(limit=0)
    with pytest.raises(ClosedError):
        receiver.receive_batch(timeout=0)


@pytest.mark.parametrize(
    ("data", "keywords", "text"),
    [
        (b"abc", {"size": 2}, "3 bytes are no whole number of messages of 2 bytes"),
        (b"abc", {"size": 0}, "no whole number"),
        (b"abc", {"size": -1}, "no whole number"),
        (b"abc", {"offsets": array("Q", [0, 4])}, "offset number 1 is beyond the 3 bytes"),
        (b"abc", {"offsets": array("Q", [2, 1])}, "before the one before it"),
        (b"abc", {"offsets": array("I", [0, 3])}, "64 bits"),
        (b"abc", {"offsets": array("d", [0, 3])}, "64 bits"),
        (b"abc", {"offsets": b""}, "64 bits"),
    ],
)
def test_a_packing_that_does_not_fit_is_refused(
    threaded: Instance, multicast: str, data: bytes, keywords: dict[str, object], text: str
) -> None:
    with threaded.transmitter(multicast, "T") as transmitter, pytest.raises(ValueError, match=text):
        transmitter.send_packed(data, **keywords)  # type: ignore[arg-type]


@pytest.mark.parametrize("keywords", [{}, {"size": 1, "offsets": array("Q", [0, 3])}])
def test_a_packing_needs_one_way_to_be_cut(threaded: Instance, multicast: str, keywords: dict[str, object]) -> None:
    with threaded.transmitter(multicast, "T") as transmitter, pytest.raises(TypeError, match="either size or offsets"):
        transmitter.send_packed(b"abc", **keywords)  # type: ignore[arg-type]


def test_a_packing_with_a_message_too_long_tells_how_many_went(threaded: Instance, multicast: str) -> None:
    with (
        threaded.transmitter(multicast, "T", max_message_bytes=2) as transmitter,
        pytest.raises(MessageSizeError) as caught,
    ):
        transmitter.send_packed(b"abcdef", offsets=array("Q", [0, 1, 3, 6]))
    assert caught.value.accepted == 2

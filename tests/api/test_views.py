"""Views of received messages: no copy, and no way to look at memory that the engine has taken back."""

from __future__ import annotations

import gc
import sys
import threading
import tracemalloc
import weakref
from pathlib import Path

import numpy as np
import pytest

from heliograph.engine import ClosedError, Instance, Message, Receiver, Transmitter, UsageError, Views

from .conftest import Script, until

TOPIC = "PRICES.FX"
IN_USE = "in use, by slices or arrays made from them"
RELEASED = "released"


def pair(instance: Instance, endpoint: str) -> tuple[Receiver, Transmitter]:
    return instance.receiver(endpoint, TOPIC), instance.transmitter(endpoint, TOPIC, linger=0.0)


def received(receiver: Receiver, transmitter: Transmitter, *bodies: bytes) -> Views:
    """Views of the messages, which come in one piece because one packet holds them."""
    transmitter.send_many(bodies)
    views = receiver.receive_views(timeout=5)
    assert len(views) == len(bodies)
    return views


def test_views_show_the_messages(instance: Instance, multicast: str) -> None:
    views = received(*pair(instance, multicast), b"abc", b"", b"de")
    assert [bytes(view) for view in views] == [b"abc", b"", b"de"]
    assert (bytes(views[-1]) == b"de", views[0].readonly, views[0].nbytes) == (True, True, 3)
    assert repr(views) == "<Views of 3 messages>"
    with pytest.raises(IndexError):
        views[3]
    with pytest.raises(TypeError):
        views[0][0] = 1
    with pytest.raises(BufferError, match="a buffer of its own"):
        memoryview(views)  # type: ignore[arg-type]
    records = np.frombuffer(views.records, dtype="<u8").reshape(3, 6)
    assert records[:, :3].tolist() == [[0, 3, 0], [0, 0, 1], [0, 2, 2]]


def test_views_of_many_messages_come_in_order(instance: Instance, multicast: str) -> None:
    receiver, transmitter = pair(instance, multicast)
    bodies = [b"%d" % number * (number % 200) for number in range(2000)]
    sender = threading.Thread(target=transmitter.send_many, args=[bodies]) if not instance.polled else None
    if sender:
        sender.start()
    else:
        transmitter.send_many(bodies)
    taken: list[bytes] = []
    while len(taken) < len(bodies):
        with receiver.receive_views(timeout=5, limit=100) as views:
            assert 0 < len(views) <= 100
            taken += map(bytes, views)
        taken += receiver.receive_bytes(timeout=0, limit=3)
    assert taken == bodies
    if sender:
        sender.join()


def test_numpy_reads_a_view_where_it_is(polled: Instance, multicast: str) -> None:
    sent = np.arange(100, dtype="<f8")
    receiver, transmitter = pair(polled, multicast)
    transmitter.send(sent.data)
    with receiver.receive_views(timeout=5) as views:
        row = np.frombuffer(views[0], dtype="<f8")
        again = np.frombuffer(views[0], dtype="<f8")
        assert row.__array_interface__["data"] == again.__array_interface__["data"]
        assert (row == sent).all()
        del row, again


def test_nothing_there_is_no_view_at_once(instance: Instance, multicast: str) -> None:
    receiver, _ = pair(instance, multicast)
    with receiver.receive_views(timeout=0) as views:
        assert not views
        assert (list(views), views.records) == ([], b"")
    views.release()
    with pytest.raises(ValueError, match="limit must be 1 to 65536"):
        receiver.receive_views(timeout=0, limit=0)


# ---- lifetimes ----

ENDINGS = {
    "release": lambda instance, receiver, views: views.release(),
    "with": lambda instance, receiver, views: views.__exit__(None, None, None),
    "receive": lambda instance, receiver, views: receiver.receive(timeout=0),
    "receive_one": lambda instance, receiver, views: receiver.receive_one(timeout=0),
    "receive_views": lambda instance, receiver, views: receiver.receive_views(timeout=0),
    "replay": lambda instance, receiver, views: receiver.replay(0, 0),
    "close": lambda instance, receiver, views: receiver.close(),
    "close instance": lambda instance, receiver, views: instance.close(),
}
endings = pytest.mark.parametrize("ending", ENDINGS)


@endings
def test_a_view_that_outlives_its_batch_is_released(instance: Instance, multicast: str, ending: str) -> None:
    receiver, transmitter = pair(instance, multicast)
    views = received(receiver, transmitter, b"abc", b"de")
    view, slices = views[0], [views[1]]
    ENDINGS[ending](instance, receiver, views)
    for each in (view, *slices):
        with pytest.raises(ValueError, match=RELEASED):
            bytes(each)
    for use in (lambda: views[0], lambda: views.records, views.__enter__):
        with pytest.raises(ValueError, match=RELEASED):
            use()
    assert (len(views), repr(views)) == (2, "<Views of 2 messages, released>")
    views.release()


@endings
def test_what_is_in_use_is_not_taken_away(instance: Instance, multicast: str, ending: str) -> None:
    """The call is refused, nothing is closed, and it works once the array is gone."""
    receiver, transmitter = pair(instance, multicast)
    views = received(receiver, transmitter, b"abc", b"de")
    array, part = np.frombuffer(views[0], dtype="u1"), views[1][:1]
    for _ in range(2):
        with pytest.raises(BufferError, match="views of 2 messages are " + IN_USE):
            ENDINGS[ending](instance, receiver, views)
    assert [each.closed for each in (instance, receiver, transmitter)] == [False] * 3
    assert (array.tobytes(), bytes(part)) == (b"abc", b"d")
    del array
    with pytest.raises(BufferError, match="views of 1 messages are " + IN_USE):
        ENDINGS[ending](instance, receiver, views)
    part.release()
    ENDINGS[ending](instance, receiver, views)
    if not instance.closed and not receiver.closed:
        received(receiver, transmitter, b"more").release()


def test_an_exception_within_the_block_comes_out_as_it_is(instance: Instance, multicast: str) -> None:
    receiver, transmitter = pair(instance, multicast)
    kept = []

    def look() -> None:
        with received(receiver, transmitter, b"abc", b"de") as views:
            kept.append(np.frombuffer(views[0], dtype="u1"))
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        look()
    with pytest.raises(BufferError, match=IN_USE):
        receiver.receive(timeout=0)
    kept.clear()
    with received(receiver, transmitter, b"next") as views:
        assert bytes(views[0]) == b"next"


def test_messages_not_looked_at_are_taken_all_the_same(instance: Instance, multicast: str) -> None:
    receiver, transmitter = pair(instance, multicast)
    transmitter.send_many([b"a", b"b", b"c"])
    assert next(receiver).data == b"a"
    for view in receiver.receive_views(timeout=5, limit=1):
        assert bytes(view) == b"b"
    assert [message.data for message in receiver.receive(timeout=5)] == [b"c"]


def test_views_in_force_keep_their_receiver_and_let_it_go(instance: Instance, multicast: str) -> None:
    receiver, transmitter = pair(instance, multicast)
    kept = [received(receiver, transmitter, b"abc")[0]]
    watch = weakref.ref(receiver)
    del receiver
    gc.collect()
    assert watch() is not None
    assert bytes(kept[0]) == b"abc"
    with pytest.warns(ResourceWarning, match="unclosed <Receiver"):
        kept.clear()
    assert watch() is None


def test_a_cycle_through_views_is_collected(instance: Instance, multicast: str) -> None:
    class Application:
        def __init__(self) -> None:
            self.receiver, transmitter = pair(instance, multicast)
            self.array = np.frombuffer(received(self.receiver, transmitter, b"abc")[0], dtype="u1")
            self.itself = self
            transmitter.close()

    application = Application()
    watches = weakref.ref(application), weakref.ref(application.receiver)
    del application
    with pytest.warns(ResourceWarning, match="unclosed <Receiver"):
        gc.collect()
    assert [watch() for watch in watches] == [None, None]


def test_a_callback_cannot_take_views_away_and_may_raise(
    instance: Instance, multicast: str, unicast: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    errors: list[str] = []
    receiver, transmitter = pair(instance, multicast)
    views = received(receiver, transmitter, b"abc")
    array = np.frombuffer(views[0], dtype="u1")
    caught: list[BaseException] = []

    def on_messages(messages: list[Message]) -> None:
        for call in (receiver.close, instance.close, lambda: receiver.receive_views(timeout=0)):
            try:
                call()
            except (BufferError, UsageError) as error:
                caught.append(error)
        raise RuntimeError("of the callback")

    listening = instance.receiver(unicast, "OTHER", on_messages=on_messages)
    other = instance.transmitter(unicast, "OTHER", linger=0.0)
    monkeypatch.setattr("sys.unraisablehook", lambda shown: errors.append(str(shown.exc_value)))
    other.send(b"x")
    assert until(lambda: listening.callback_errors == 1, instance)
    assert errors == ["of the callback"]
    assert len(caught) == 3
    assert not receiver.closed
    assert array.tobytes() == b"abc"
    del array


def test_a_receiver_with_a_callback_has_no_views(instance: Instance, multicast: str) -> None:
    with pytest.raises(UsageError):
        instance.receiver(multicast, TOPIC, on_messages=print).receive_views(timeout=0)


def test_a_closed_receiver_has_no_views(instance: Instance, multicast: str) -> None:
    receiver, _ = pair(instance, multicast)
    receiver.close()
    with pytest.raises(ClosedError):
        receiver.receive_views(timeout=0)


def test_another_thread_may_close_while_views_are_in_use(threaded: Instance, multicast: str) -> None:
    """It is refused, whichever thread asks, and no closer waits for ever."""
    receiver, transmitter = pair(threaded, multicast)
    array = np.frombuffer(received(receiver, transmitter, b"abc")[0], dtype="u1")
    refused: list[str] = []

    def close(what: Receiver | Instance) -> None:
        try:
            what.close()
        except BufferError as error:
            refused.append(str(error))

    threads = [threading.Thread(target=close, args=[what]) for what in (receiver, threaded) * 4]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
        assert not thread.is_alive()
    assert len(refused) == 8
    assert array.tobytes() == b"abc"
    del array


def test_views_leak_nothing(polled: Instance, multicast: str) -> None:
    receiver, transmitter = pair(polled, multicast)

    def once() -> None:
        transmitter.send_many([b"12345678"] * 3)
        views = receiver.receive_views(timeout=5)
        with views:
            array = np.frombuffer(views[0], dtype="u1")
            with pytest.raises(BufferError):
                views.release()
            assert len([bytes(view) for view in views]) == len(views)
            del array
        dropped = receiver.receive_views(timeout=0)
        assert len(dropped) + len(views) <= 3

    def drained() -> None:
        for _ in range(50):
            once()
        while receiver.receive_views(timeout=0.01):
            pass
        gc.collect()

    drained()
    references = sys.getrefcount(receiver)
    blocks = sys.getallocatedblocks()
    tracemalloc.start()
    try:
        once()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(4):
            drained()
        assert tracemalloc.get_traced_memory()[0] - before < 20_000
    finally:
        tracemalloc.stop()
    assert sys.getrefcount(receiver) == references
    assert sys.getallocatedblocks() - blocks < 200


ENDS: dict[str, str] = {
    "open": "",
    "refused": "try: instance.close()\nexcept BufferError: print('refused', flush=True)\n",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HELIOGRAPH_SEGMENT_DIR", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("mode", ["thread", "poll"])
@pytest.mark.parametrize("end", ENDS)
def test_a_program_may_end_while_views_are_in_use(
    script: Script, multicast: str, folder: Path, mode: str, end: str
) -> None:
    process = script(
        "import sys\n"
        "import numpy as np\n"
        "from heliograph.engine import Instance\n"
        "instance = Instance(mode=sys.argv[2])\n"
        "receiver = instance.receiver(sys.argv[1], 'T')\n"
        "transmitter = instance.transmitter(sys.argv[1], 'T', linger=0.0)\n"
        "transmitter.send(b'abc')\n"
        "array = np.frombuffer(receiver.receive_views(timeout=5)[0], dtype='u1')\n"
        "class Last:\n"
        "    def __del__(self, array=array): print(array.tobytes(), flush=True)\n"
        "last = Last()\n" + ENDS[end],
        multicast,
        mode,
    )
    output, errors = process.communicate(timeout=30)
    assert process.returncode == 0
    assert output.splitlines()[-1] == "b'abc'"
    assert "BufferError" in errors

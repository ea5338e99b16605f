"""On every transport a transmitter knows each of its receivers by name, and how it fares."""

from __future__ import annotations

import time
from contextlib import suppress

from heliograph.engine import ReceiverView, WouldBlock
from tests.conformance.conftest import Join, Pair, Transport

COUNT = 300


def known(pair: Pair, packets: int, seconds: float = 10.0) -> dict[str, ReceiverView]:
    """Receivers by name, once each has reported `packets` packets or more and lags behind by none.

    A stream sends packets of its own beside those of the messages, so the report that completes the count of packets
    may come while a later packet is on its way.
    """
    end = time.monotonic() + seconds
    while True:
        pair.work()
        for receiver in pair.receivers:
            receiver.receive(timeout=0, limit=1000)
        views = pair.transmitter.receivers()
        done = [v for v in views if (v.packets_received or 0) >= packets and v.lag == 0]
        if len(done) == len(pair.receivers) or time.monotonic() > end:
            return {view.name: view for view in views}
        time.sleep(0.001)


def test_each_receiver_is_known_by_name_with_what_it_has_had(join: Join, transport: Transport) -> None:
    names = [f"desk-{number}" for number in range(3)]
    pair = join(fan=3, names=names)
    for number in range(COUNT):
        pair.transmitter.send(b"%d" % number)
        pair.transmitter.flush()
        pair.work()
        for receiver in pair.receivers:
            receiver.receive(timeout=0, limit=1000)
    views = known(pair, COUNT)
    assert sorted(views) == names
    assert len({view.receiver for view in views.values()}) == 3
    for view in views.values():
        assert view.reports
        assert view.state == "ok"
        assert view.packets_received is not None
        assert view.packets_lost == 0
        assert view.lag == 0
        assert view.window is not None
        assert view.window > 0
        assert view.buffer_fill is not None
        assert 0 <= view.buffer_fill <= 1
        assert 0 < view.round_trip < 5
        assert abs(time.time_ns() - view.heard_ns) < 60e9
        assert view.address


def test_a_receiver_that_closes_says_goodbye(join: Join) -> None:
    pair = join(fan=2, names=["stays", "goes"])
    pair.transmitter.send(b"x")
    pair.transmitter.flush()
    assert sorted(known(pair, 1)) == ["goes", "stays"]
    pair.receivers.pop().close()
    end = time.monotonic() + 10
    states: dict[str, str] = {}
    while states != {"stays": "ok", "goes": "left"} and time.monotonic() < end:
        pair.work()
        states = {view.name: view.state for view in pair.transmitter.receivers()}
    assert states == {"stays": "ok", "goes": "left"}


def test_buffers_that_fill_up_are_seen(join: Join) -> None:
    """The application does not take what comes: within a few intervals its transmitter knows."""
    pair = join(receiver={"receive_queue": 65536}, names=["slow"])
    end = time.monotonic() + 10
    fill, sent = 0.0, 0
    while fill < 0.8 and time.monotonic() < end:
        with suppress(WouldBlock):
            while sent < 200:  # more than the queue takes, not more than the window holds
                pair.transmitter.send(b"." * 1000, timeout=0)
                sent += 1
        for _ in range(20):
            pair.work()
        fill = max((view.buffer_fill or 0.0 for view in pair.transmitter.receivers()), default=0.0)
    assert fill >= 0.8
    assert len(pair.receive(sent)) == sent  # nothing was lost for it
    views = pair.transmitter.receivers()
    while views[0].buffer_fill and time.monotonic() < end:
        pair.work()
        assert not pair.receivers[0].receive(timeout=0)  # gives back what it was given last
        views = pair.transmitter.receivers()
    assert [(view.name, view.buffer_fill, view.packets_lost) for view in views] == [("slow", 0.0, 0)]

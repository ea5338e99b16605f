"""A transmitter's look at its receivers: `Transmitter.receivers`."""

from __future__ import annotations

import threading
import time

import pytest

from heliograph.engine import Ack, ClosedError, Instance, OptionError, ReceiverView, Transmitter


def until_reported(transmitter: Transmitter, packets: int = 1, seconds: float = 10.0) -> list[ReceiverView]:
    end = time.monotonic() + seconds
    views = transmitter.receivers()
    while time.monotonic() < end and not any((view.packets_received or 0) >= packets for view in views):
        time.sleep(0.005)
        views = transmitter.receivers()
    return views


def test_nobody_is_known_before_anybody_has_spoken(instance: Instance, endpoint: str) -> None:
    assert instance.transmitter(endpoint, "T").receivers() == []


def test_every_thread_may_look(multicast: str) -> None:
    with Instance(name="looker") as sender, Instance(name="desk") as other:
        desk = other.receiver(multicast, "T", tagged=True)
        transmitter = sender.transmitter(multicast, "T", report_interval=0.02, report_rate=100)
        transmitter.send(b"x")
        (view,) = until_reported(transmitter)
        assert (view.name, view.tagged, view.reports, view.state) == ("desk", True, True, "ok")
        assert len(view.receiver) == 16
        seen: list[list[ReceiverView]] = []
        threads = [
            threading.Thread(target=lambda: seen.extend(transmitter.receivers() for _ in range(50))) for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [[each.name for each in views] for views in seen] == [["desk"]] * 200
        desk.close()


def test_a_callback_may_look(multicast: str) -> None:
    seen: list[list[str]] = []
    transmitters: list[Transmitter] = []

    def look(_: Ack) -> None:
        seen.extend([view.name for view in transmitter.receivers()] for transmitter in transmitters)

    with Instance(name="sender") as sender, Instance(name="desk") as other:
        desk = other.receiver(multicast, "T", ack="auto")
        transmitters.append(sender.transmitter(multicast, "T", on_ack=look))
        transmitters[0].send(b"x")
        end = time.monotonic() + 10
        while not seen and time.monotonic() < end:
            time.sleep(0.001)
        assert seen[-1] == ["desk"]
        assert transmitters[0].callback_errors == 0
        desk.close()


def test_loss_and_requests_are_told_of_who_had_them(multicast: str) -> None:
    with Instance(name="sender") as sender, Instance(name="good") as good, Instance(name="bad") as bad:
        lossless = good.receiver(multicast, "T")
        lossy = bad.receiver(multicast, "T", inject_loss=0.2)
        transmitter = sender.transmitter(multicast, "T", report_interval=0.02)
        for number in range(2000):
            transmitter.send(b"%d" % number)
            if number % 20 == 19:
                transmitter.flush()
                lossy.receive(timeout=0, limit=1000)
                lossless.receive(timeout=0, limit=1000)
        end = time.monotonic() + 10
        views: dict[str, ReceiverView] = {}
        while time.monotonic() < end and (len(views) < 2 or views["bad"].lag):
            lossy.receive(timeout=0.01, limit=1000)
            lossless.receive(timeout=0.01, limit=1000)
            views = {view.name: view for view in transmitter.receivers()}
        assert views["bad"].naks > 0
        assert views["bad"].repairs > 0
        assert views["bad"].repair_bytes > views["bad"].repairs
        assert views["bad"].loss is not None
        assert (views["bad"].packets_missed or 0) > 0
        assert views["good"].naks <= views["bad"].naks


def test_without_an_interval_receivers_tell_with_what_they_send_anyway(multicast: str) -> None:
    with Instance(name="sender") as sender, Instance(name="desk") as other, Instance(name="silent") as silent:
        receivers = [other.receiver(multicast, "T", ack="auto"), silent.receiver(multicast, "T")]
        transmitter = sender.transmitter(multicast, "T", report_interval=0)
        transmitter.send(b"x")
        transmitter.wait_acked(1, timeout=10)
        time.sleep(0.3)
        assert [view.name for view in transmitter.receivers()] == ["desk"]
        assert [len(receiver.receive(timeout=5)) for receiver in receivers] == [1, 1]


def test_a_closed_transmitter_knows_nobody(threaded: Instance, unicast: str) -> None:
    transmitter = threaded.transmitter(unicast, "T")
    transmitter.close()
    with pytest.raises(ClosedError):
        transmitter.receivers()


def test_impossible_intervals_are_refused(threaded: Instance, unicast: str) -> None:
    with pytest.raises(OptionError, match=r"report_interval.* from 0 to 600 seconds, not .-1"):
        threaded.transmitter(unicast, "T", report_interval=-1)
    with pytest.raises(OptionError, match=r"report_rate.* from 1 to 1000000 .*not .0"):
        threaded.transmitter(unicast, "T", report_rate=0)

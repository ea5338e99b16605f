"""What a transmitter does by hand to a receiver that is slow, and that the receiver is told and obeys."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from heliograph.engine import (
    Ack,
    Action,
    Instance,
    Notice,
    OptionError,
    Reason,
    Receiver,
    Transmitter,
    UsageError,
    catalogue,
)
from heliograph.monitor.model import Event
from heliograph.monitor.segment import Segment
from tests.ports import free_port

from .conftest import collect, until

TOPIC = "ORDERS"


@pytest.fixture(params=["multicast", "unicast", "rum", "shm"])
def way(request: pytest.FixtureRequest) -> str:
    """Each kind of endpoint in turn."""
    if request.param == "rum":
        return f"rum://127.0.0.1:{free_port()}"
    if request.param == "shm":
        return f"shm://notices-{os.getpid()}-{free_port()}"
    text: str = request.getfixturevalue(request.param)
    return text


def known(transmitter: Transmitter, receiver: Receiver) -> Ack:
    """The receiver, once the transmitter knows it."""
    acks: list[Ack] = []

    def heard() -> bool:
        transmitter.send(b"hello")
        transmitter.flush()
        receiver.receive(timeout=0.01)
        acks.extend(transmitter.acks())
        return bool(acks)

    assert until(heard)
    return acks[-1]


def told(receiver: Receiver, action: Action) -> Notice:
    """The notice of this action, once it has come."""
    notices: list[Notice] = []

    def heard() -> bool:
        receiver.receive(timeout=0.01)
        notices.extend(notice for notice in receiver.notices() if notice.action is action)
        return bool(notices)

    assert until(heard)
    return notices[-1]


def events(instance: Instance) -> list[str]:
    assert isinstance(instance.segment, Path)
    with Segment(instance.segment) as segment:
        return [event.name for event in segment.events().events]


_AT_RECEIVER = {
    "notify": "warned",
    "shed": "warned",
    "suspend_naks": "suspended",
    "suspend": "suspended",
    "resume": "resumed",
    "expel": "expelled",
}


def _newest(instance: Instance, name: str) -> Event:
    assert isinstance(instance.segment, Path)
    with Segment(instance.segment) as segment:
        return [event for event in segment.events().events if event.name == name][-1]


def test_a_suspended_receiver_is_told_and_resumes(way: str) -> None:
    with Instance() as source, Instance() as sink:
        receiver = sink.receiver(way, TOPIC, ack="auto")
        transmitter = source.transmitter(way, TOPIC, linger=0.05)
        ack = known(transmitter, receiver)
        transmitter.suspend(ack, 60.0, "loss of 12 %")
        notice = told(receiver, Action.SUSPEND)
        assert notice.reason is Reason.LOSS
        assert notice.by_hand
        assert notice.text == "loss of 12 %"
        assert 50 < notice.seconds <= 60
        assert notice.stream == transmitter.stream
        transmitter.resume(ack.receiver, "well again")
        notice = told(receiver, Action.RESUME)
        assert notice.text == "well again"
        assert notice.seconds == 0
        transmitter.send(b"the end")
        transmitter.flush()
        assert until(lambda: any(m.data == b"the end" for m in receiver.receive(timeout=0.05)))
        assert "receiver_action" in events(source)
        assert {"suspended", "resumed"} <= set(events(sink))
        assert sink.segment is not None
        with Segment(sink.segment) as segment:
            (stream,) = (item for item in segment.objects(histograms=False) if item.scope == "rx_stream")
        assert stream.values["notices_received"] == 2


def test_a_suspension_ends_by_itself(unicast: str) -> None:
    with Instance() as source, Instance() as sink:
        receiver = sink.receiver(unicast, TOPIC, ack="auto")
        transmitter = source.transmitter(unicast, TOPIC, linger=0.05)
        transmitter.suspend(known(transmitter, receiver), 0.2, naks_only=True)
        assert told(receiver, Action.SUSPEND_NAKS).reason is Reason.NONE
        told(receiver, Action.RESUME)


def test_an_expelled_receiver_gets_nothing_until_it_is_readmitted(multicast: str) -> None:
    with Instance() as source, Instance() as sink:
        receiver = sink.receiver(multicast, TOPIC, ack="auto")
        transmitter = source.transmitter(multicast, TOPIC, linger=0.05)
        ack = known(transmitter, receiver)
        transmitter.expel(ack, why="lag")
        assert told(receiver, Action.EXPEL).reason is Reason.LAG
        receiver.receive(timeout=0)
        transmitter.send(b"not for all")
        transmitter.flush()
        assert receiver.receive(timeout=0.2) == []
        with pytest.raises(UsageError):
            transmitter.suspend(ack, 1.0)
        transmitter.readmit(ack)
        assert told(receiver, Action.READMIT).text == ""
        transmitter.send(b"again for all")
        assert until(lambda: any(m.data == b"again for all" for m in receiver.receive(timeout=0.05)))


def test_a_cut_off_concerns_all_receivers(multicast: str) -> None:
    with Instance() as source, Instance() as one, Instance() as other:
        receivers = [sink.receiver(multicast, TOPIC, ack="auto") for sink in (one, other)]
        transmitter = source.transmitter(multicast, TOPIC, linger=0.05)
        for receiver in receivers:
            known(transmitter, receiver)
        transmitter.cut_off(60.0, "storm")
        for receiver in receivers:
            assert told(receiver, Action.CUT_OFF).reason is Reason.STORM
        transmitter.cut_off(0.0)
        for receiver in receivers:
            told(receiver, Action.RESUME)


def test_warnings_and_shedding_are_told(instance: Instance, unicast: str) -> None:
    receiver = instance.receiver(unicast, TOPIC, ack="auto")
    transmitter = instance.transmitter(
        unicast,
        TOPIC,
        linger=0.05,
        nak_limit=10_000,
        ack_limit=10_000,
        repair_limit=1_000_000,
        repair_budget=4.0,
    )
    ack = known(transmitter, receiver)
    transmitter.notify(ack, "buffer at 80 %")
    assert told(receiver, Action.NOTIFY).reason is Reason.BUFFER
    transmitter.shed(ack, 30.0, "naks")
    assert told(receiver, Action.SHED).reason is Reason.NAKS
    transmitter.send(b"x")
    assert collect(receiver, 1)


def test_an_action_has_the_number_of_the_catalogue(unicast: str) -> None:
    """In the calls of the binding, in notices, in the events of both ends and in the statistic."""
    with Instance() as source, Instance() as sink:
        receiver = sink.receiver(unicast, TOPIC, ack="auto")
        transmitter = source.transmitter(unicast, TOPIC, linger=0.05)
        who = int(known(transmitter, receiver).receiver, 16)
        for name in ("notify", "shed", "suspend_naks", "suspend", "resume", "expel"):
            transmitter.act(who, catalogue.actions()[name].number, 0.0, "test")
            told(receiver, Action(name))
            for instance, event in (source, "receiver_action"), (sink, _AT_RECEIVER[name]):
                assert _newest(instance, event).arguments["action"] == catalogue.actions()[name].number
        assert isinstance(source.segment, Path)
        with Segment(source.segment) as segment:
            treated = [item.values["action"] for item in segment.objects() if item.scope == "tx_receiver"]
        assert treated == [catalogue.actions()["expel"].number]


def test_who_is_not_there_or_not_so_is_refused(instance: Instance, unicast: str) -> None:
    receiver = instance.receiver(unicast, TOPIC, ack="auto")
    transmitter = instance.transmitter(unicast, TOPIC, linger=0.05)
    ack = known(transmitter, receiver)
    with pytest.raises(UsageError, match="has no receiver 00000000deadbeef"):
        transmitter.suspend("deadbeef", 1.0)
    with pytest.raises(UsageError, match="no such action"):
        transmitter.resume(ack)
    with pytest.raises(UsageError):
        transmitter.readmit(ack)
    with pytest.raises(ValueError):
        transmitter.suspend(ack, -1.0)
    with pytest.raises(ValueError):
        transmitter.cut_off(-1.0)
    with pytest.raises(OptionError):
        transmitter.act(int(ack.receiver, 16), 99, 0.0, "")
    assert receiver.notices() == []

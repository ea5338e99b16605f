"""How the API is typed: checked by mypy with the rest, never run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import assert_type

from heliograph.engine import (
    Ack,
    Action,
    Error,
    Instance,
    Loss,
    Message,
    Notice,
    Receiver,
    ReceiverView,
    Transmitter,
    Views,
    WouldBlock,
)


def uses_everything(endpoint: str) -> Iterator[bytes]:
    with Instance(name="feed", mode="thread", idle="backoff", cpu=1, segment_dir=Path("/tmp")) as instance:
        assert_type(instance, Instance)
        assert_type(instance.name, str)
        assert_type(instance.segment, Path | None)
        assert_type(instance.poll(), int)
        assert_type(instance.set_level(3, 60, topic="PRICES.*", receiver=None, stream="*"), int)
        assert_type(instance.reset_level(topic="PRICES.*"), int)

        transmitter = instance.transmitter(endpoint, "T", ttl=3, linger=0.5)
        assert_type(transmitter, Transmitter)
        transmitter.send(b"bytes")
        transmitter.send(bytearray(b"bytes"), timeout=0)
        transmitter.send(memoryview(b"bytes"), None)
        assert_type(transmitter.send_many([b"a", b"b"], timeout=1.0), int)
        assert_type(transmitter.stream, str)
        transmitter.wait_acked(2, timeout=1.0)
        assert_type(transmitter.acks(), list[Ack])
        transmitter.suspend(transmitter.acks()[0], 5.0, "lag", naks_only=True)
        transmitter.suspend(transmitter.receivers()[0])
        transmitter.expel("00000000deadbeef", why="by hand")
        transmitter.cut_off(1.0)
        assert_type(transmitter.receivers(), list[ReceiverView])
        assert_type(transmitter.receivers()[0].loss, float | None)

        with instance.receiver(endpoint, "T", nak_backoff=0.001) as receiver:
            assert_type(receiver, Receiver)
            assert_type(receiver.receive(timeout=1.0, limit=16), list[Message])
            assert_type(receiver.receive_bytes(timeout=0), list[bytes])
            assert_type(receiver.receive_one(timeout=0), Message | None)
            assert_type(receiver.receive_into(bytearray(64), timeout=0), int | None)
            with receiver.receive_views(timeout=0, limit=16) as views:
                assert_type(views, Views)
                assert_type(views[0], memoryview)
                assert_type(list(views), list[memoryview])
            assert_type(receiver.losses(), list[Loss])
            for notice in receiver.notices():
                assert_type(notice, Notice)
                assert_type(notice.action, Action)
            receiver.acknowledge(7, "0a1b2c3d4e5f:30001")
            for message in receiver:
                assert_type(message, Message)
                assert_type(message.recovered, bool)
                transmitter.send(message)
                receiver.acknowledge(message)
                yield bytes(message)

        instance.receiver(endpoint, "T", on_messages=handle, on_loss=lambda loss: print(loss.last))
        instance.receiver(endpoint, "T", on_messages=handle, interface="127.0.0.1")


def handle(messages: list[Message]) -> None:
    print(sum(map(len, messages)))


def errors_have_codes() -> int:
    try:
        raise WouldBlock("full")
    except Error as error:
        assert_type(error.code, str)
        return error.accepted


def mistakes_are_found(instance: Instance, endpoint: str) -> None:
    Instance(mode="polled")  # type: ignore[arg-type]
    Instance("name")  # type: ignore[call-arg]
    instance.transmitter(endpoint, b"topic")  # type: ignore[arg-type]
    instance.transmitter(endpoint, "T", ttl=[3])  # type: ignore[arg-type]
    instance.receiver(endpoint, "T", on_messages=lambda: None)  # type: ignore[arg-type,misc]

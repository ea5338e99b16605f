"""What is kept of streams that ended does not grow with how many they were (finding L3)."""

from __future__ import annotations

from heliograph.engine import Instance, Receiver
from tests.hostile.forging import HOST, WRAP, Session, attacker, batch, fin, odata, spm
from tests.hostile.looking import resident
from tests.ports import free_port

TOPIC = "SHORT"
AT_ONCE = 25
WARM_UP, MORE = 2_000, 8_000
MOST_BYTES = 1 << 20  # 8,000 streams of 450 bytes would be more than three times that


def meet(receiver: Receiver, port: int, first: int, count: int) -> int:
    """So many streams that send one message and end; how many names they had."""
    found = 0
    with attacker() as forger:
        for start in range(first, first + count, AT_ONCE):
            for number in range(start, start + AT_ONCE):
                session = Session(b"\xf0\xf1" + number.to_bytes(4, "big"), 6000, port)
                for packet in (
                    spm(session, 1, 0, WRAP),
                    odata(session, 0, 0, batch(TOPIC, 0, [b"%d" % number])),
                    fin(session, 2, 0, 0),
                ):
                    forger.sendto(packet, (HOST, port))
            names: list[str] = []
            while len(names) < AT_ONCE:
                messages = receiver.receive(timeout=20)
                assert messages, f"{len(names)} of the streams from {start} on"
                names += [message.stream for message in messages]
            found += len({name for name in names if name})
    return found


def test_l3_a_receiver_that_met_thousands_of_streams_holds_no_more_than_before() -> None:
    port = free_port()
    with Instance(mode="thread") as instance:
        receiver = instance.receiver(f"rmm+unicast://{HOST}:{port}", TOPIC, receive_window=64)
        meet(receiver, port, 0, WARM_UP)  # statistics have their memory by then
        before = resident()
        assert meet(receiver, port, WARM_UP, MORE) == MORE
        grown = resident() - before
        print(f"grown by {grown}")
    assert grown <= MOST_BYTES

"""RUM, reliable unicast over TCP: nothing is lost while a connection stands, and after a break what can be resumed is.

Connections are broken by a small proxy between transmitter and receiver. Where requests are counted, receivers join
live: one that joins the history asks once for what was announced before its connection.
"""

from __future__ import annotations

import contextlib
import os
import random
import socket
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from heliograph.engine import Instance, Message, Receiver, Transmitter
from heliograph.engine.errors import EndpointError, OptionError, TimeoutExpired, WouldBlock
from heliograph.monitor import Segment
from tests.ports import free_port

from .conftest import collect, until

TOPIC = "PRICES.FX"


@pytest.fixture
def rum() -> str:
    """An endpoint of a port nobody else uses."""
    return f"rum://127.0.0.1:{free_port()}"


def port_of(endpoint: str) -> int:
    return int(endpoint.rpartition(":")[2])


def total(instance: Instance, scope: str, name: str) -> int:
    """Sum of a statistic over the objects of a scope."""
    assert instance.segment is not None
    with Segment(instance.segment) as segment:
        return sum(o.values[name] for o in segment.objects(histograms=False) if o.scope == scope)


def events(instance: Instance, name: str) -> list[str]:
    """Texts of the events of a name."""
    assert instance.segment is not None
    with Segment(instance.segment) as segment:
        return [event.text for event in segment.events().events if event.name == name]


def connected(instance: Instance, connections: int = 1) -> bool:
    return until(lambda: total(instance, "instance", "connections") == connections, instance)


class Proxy:
    """Passes bytes on between connections made to its port and a target; can break all, or swallow what comes."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._sockets: list[socket.socket] = []
        self._lock = threading.Lock()
        self._swallows = False
        self._refuses = False
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    @property
    def endpoint(self) -> str:
        return f"rum://127.0.0.1:{self.port}"

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                if self._refuses:
                    client.close()
                    continue
                try:
                    server = socket.create_connection(("127.0.0.1", self._target))
                except OSError:
                    client.close()
                    continue
                self._sockets += [client, server]
            for one, other in ((client, server), (server, client)):
                thread = threading.Thread(target=self._pass_on, args=(one, other), daemon=True)
                self._threads.append(thread)
                thread.start()

    def _pass_on(self, one: socket.socket, other: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := one.recv(65536):
                if not self._swallows:
                    other.sendall(data)
        if self._swallows:
            return  # an end that goes is not missed by the other either
        for end in (one, other):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def cut(self, *, refuse: bool = False) -> None:
        """Break every connection; what is on its way is lost. With `refuse`, later ones are broken too."""
        with self._lock:
            self._refuses = refuse
            for end in self._sockets:
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
                end.close()
            self._sockets.clear()
            self._swallows = False

    def heal(self) -> None:
        with self._lock:
            self._refuses = False

    def swallow(self) -> None:
        """From now on nothing passes, though both connections stand."""
        self._swallows = True

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut(refuse=True)
        for thread in self._threads:
            thread.join(5)


@pytest.fixture
def proxy(rum: str) -> Iterator[Proxy]:
    """A proxy to the receiver's endpoint."""
    proxy = Proxy(port_of(rum))
    yield proxy
    proxy.close()


@pytest.mark.parametrize("idle", ["backoff", "block"])
def test_messages_arrive_in_order(rum: str, instance: Instance, idle: str) -> None:
    count = 100_000
    with Instance(mode="thread", idle=idle) as source:  # type: ignore[arg-type]
        receiver = instance.receiver(rum, TOPIC, join="live")
        transmitter = source.transmitter(rum, TOPIC, linger=0.0)
        messages: list[Message] = []
        for start in range(0, count, 1000):
            transmitter.send_many([b"%d" % number for number in range(start, start + 1000)])
            messages += receiver.receive(timeout=0)
        while len(messages) < count and (more := collect(receiver, min(1000, count - len(messages)))):
            messages += more
        assert [message.data for message in messages] == [b"%d" % number for number in range(count)]
        assert [message.number for message in messages] == list(range(count))
        assert total(instance, "instance", "naks_sent") == 0
        assert total(source, "instance", "repair_packets") == 0
        assert receiver.losses() == []


def connections() -> list[socket.socket]:
    """Copies of this process's descriptors that are connected TCP sockets."""
    found: list[socket.socket] = []
    for name in [int(name) for name in os.listdir("/proc/self/fd")]:
        with contextlib.suppress(OSError):  # closed meanwhile, no socket, not connected
            if os.readlink(f"/proc/self/fd/{name}").startswith("socket:") and name not in map(
                socket.socket.fileno, found
            ):
                copy = socket.socket(fileno=os.dup(name))
                if copy.type == socket.SOCK_STREAM and copy.family == socket.AF_INET and copy.getpeername():
                    found.append(copy)
    return found


def test_no_end_of_a_connection_waits_to_fill_a_segment(rum: str, instance: Instance) -> None:
    """Nagle's algorithm is off at both ends, so it cannot meet a delayed acknowledgement."""
    receiver = instance.receiver(rum, TOPIC)
    transmitter = instance.transmitter(rum, TOPIC, linger=0.0)
    for number in range(100):
        transmitter.send(b"%d" % number)
        assert [message.number for message in collect(receiver, 1)] == [number]
    ends = connections()
    assert len(ends) == 2
    assert [end.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) for end in ends] == [1, 1]
    for end in ends:
        end.close()


def test_one_engine_may_be_both_ends(rum: str, instance: Instance) -> None:
    receiver = instance.receiver(rum, TOPIC)
    transmitter = instance.transmitter(rum, TOPIC, linger=0.0)
    sent = [b"%d" % number for number in range(5000)]
    transmitter.send_many(sent)
    assert [message.data for message in collect(receiver, len(sent))] == sent


def test_messages_sent_before_the_receiver_is_there_wait_for_it(rum: str, instance: Instance) -> None:
    with Instance() as sink:
        transmitter = instance.transmitter(rum, TOPIC, linger=0.0, connect_wait=30.0)
        if instance.polled:
            with pytest.raises(WouldBlock):
                transmitter.send(b"too early", timeout=0)
        else:
            transmitter.send_many([b"one", b"two"])
        receiver = sink.receiver(rum, TOPIC)
        if instance.polled:
            transmitter.send_many([b"one", b"two"])
        assert [message.data for message in collect(receiver, 2)] == [b"one", b"two"]


def test_without_a_receiver_the_wait_ends(rum: str, instance: Instance) -> None:
    transmitter = instance.transmitter(rum, TOPIC, linger=0.0, connect_wait=0.05)
    transmitter.send(b"nobody is there", timeout=10)
    transmitter.flush(timeout=10)
    assert total(instance, "instance", "connections") == 0


def test_a_large_message_arrives_whole(rum: str, instance: Instance) -> None:
    large = random.Random(7).randbytes(64 << 20)
    with Instance() as sink:
        receiver = sink.receiver(rum, TOPIC, join="live")
        transmitter = instance.transmitter(rum, TOPIC, linger=0.0)
        for data in (b"before", large, b"after"):
            transmitter.send(data)
        if instance.polled:
            assert until(lambda: total(sink, "instance", "messages_received") == 3, instance, seconds=30.0)
        messages = collect(receiver, 3, seconds=30.0)
        assert [len(message) for message in messages] == [6, len(large), 5]
        assert messages[1].data == large
        assert total(sink, "instance", "naks_sent") == 0


def test_every_destination_gets_everything() -> None:
    endpoints = [f"rum://127.0.0.1:{free_port()}" for _ in range(2)]
    both = ",".join([endpoints[0], endpoints[1].removeprefix("rum://")])
    sent = [b"%d" % number for number in range(2000)]
    with Instance() as here, Instance() as there, Instance() as source:
        receivers = [here.receiver(endpoints[0], TOPIC), there.receiver(endpoints[1], TOPIC)]
        transmitter = source.transmitter(both, TOPIC, linger=0.0)
        transmitter.send_many(sent)
        for receiver in receivers:
            assert [message.data for message in collect(receiver, len(sent))] == sent
        assert connected(source, 2)


def test_streams_of_an_instance_share_a_connection(rum: str) -> None:
    with Instance() as sink, Instance() as source:
        receivers = [sink.receiver(rum, f"TOPIC{number}") for number in range(4)]
        transmitters = [
            source.transmitter(rum, f"TOPIC{number}", linger=0.01 * number) for number in range(4)
        ]  # other options: other streams
        assert len({transmitter.stream for transmitter in transmitters}) == 4
        for number, transmitter in enumerate(transmitters):
            transmitter.send(b"%d" % number)
        for number, receiver in enumerate(receivers):
            (message,) = collect(receiver, 1)
            assert (message.data, message.stream) == (b"%d" % number, transmitters[number].stream)
        assert connected(source)
        assert connected(sink)
        transmitters[0].close()
        transmitters[3].send(b"still here")
        assert [message.data for message in collect(receivers[3], 1)] == [b"still here"]


def test_many_transmitters_reach_one_receiver(rum: str) -> None:
    with contextlib.ExitStack() as stack:
        sink = stack.enter_context(Instance())
        sources = [stack.enter_context(Instance()) for _ in range(6)]
        receiver = sink.receiver(rum, TOPIC)
        transmitters = [source.transmitter(rum, TOPIC, linger=0.0) for source in sources]
        for transmitter in transmitters:
            transmitter.send_many([b"x" * 100] * 500)
        messages = collect(receiver, 3000)
        for transmitter in transmitters:
            assert [m.number for m in messages if m.stream == transmitter.stream] == list(range(500))
        assert connected(sink, 6)


def exchange(transmitter: Transmitter, receiver: Receiver, first: int, count: int) -> list[Message]:
    """Send and receive `count` numbered messages, each in a packet of its own."""
    messages: list[Message] = []
    for number in range(first, first + count):
        transmitter.send(b"%d" % number)
        transmitter.flush(timeout=10)
    messages += collect(receiver, count)
    return messages


def test_a_stream_resumes_after_its_connection_broke(rum: str, proxy: Proxy) -> None:
    with Instance(idle="block") as sink, Instance(idle="block") as source:
        receiver = sink.receiver(rum, TOPIC, join="live")
        transmitter = source.transmitter(proxy.endpoint, TOPIC, linger=1.0)
        assert len(exchange(transmitter, receiver, 0, 100)) == 100
        assert total(sink, "instance", "naks_sent") == 0

        proxy.cut(refuse=True)
        assert until(lambda: total(source, "instance", "connections") == 0)
        before = total(source, "tx_stream", "window_lead")
        for number in range(100, 150):
            transmitter.send(b"%d" % number)
            transmitter.flush(timeout=10)
        gap = total(source, "tx_stream", "window_lead") - before
        proxy.heal()

        messages = collect(receiver, 50)
        messages += exchange(transmitter, receiver, 150, 50)
        assert [message.data for message in messages] == [b"%d" % number for number in range(100, 200)]
        assert {message.stream for message in messages} == {transmitter.stream}
        assert all(message.recovered for message in messages[:50])
        assert not any(message.recovered for message in messages[50:])
        assert receiver.losses() == []
        asked = total(sink, "rx_stream", "naks_sent") - total(sink, "rx_stream", "naks_retried")
        assert 50 <= asked <= gap
        assert total(source, "instance", "connects") == 2
        assert any("closed" in text or "reset" in text for text in events(sink, "connection_lost"))
        assert len(events(sink, "connection_opened")) == 2


def test_a_stream_goes_on_through_many_breaks(rum: str, proxy: Proxy) -> None:
    count = 20_000
    with Instance() as sink, Instance() as source:
        receiver = sink.receiver(rum, TOPIC)
        transmitter = source.transmitter(proxy.endpoint, TOPIC, linger=1.0)
        messages = exchange(transmitter, receiver, 0, 100)
        for start in range(100, count, 100):
            transmitter.send_many([b"%d" % number + b"." * 200 for number in range(start, start + 100)])
            messages += receiver.receive(timeout=0)
            if start % 4000 == 2000:
                before = total(source, "instance", "connects")
                proxy.cut()
                assert until(lambda b=before: total(source, "instance", "connects") > b)  # type: ignore[misc]
        messages += collect(receiver, count - len(messages), seconds=30.0)
        assert [message.number for message in messages] == list(range(count))
        assert receiver.losses() == []
        assert total(source, "instance", "disconnects") >= 4


def test_what_the_history_no_longer_has_is_told_as_lost(rum: str, proxy: Proxy) -> None:
    with Instance() as sink, Instance() as source:
        receiver = sink.receiver(rum, TOPIC)
        transmitter = source.transmitter(proxy.endpoint, TOPIC, send_window=16, linger=1.0)
        assert len(exchange(transmitter, receiver, 0, 10)) == 10
        proxy.cut(refuse=True)
        assert until(lambda: total(source, "instance", "connections") == 0)
        for number in range(10, 110):
            transmitter.send(b"%d" % number)
            transmitter.flush(timeout=10)
        proxy.heal()
        messages: list[Message] = []

        def has_caught_up() -> bool:
            messages.extend(receiver.receive(timeout=0.01))
            return bool(messages) and messages[-1].number == 109

        assert until(has_caught_up)
        losses = receiver.losses()
        assert [(loss.first, loss.stream) for loss in losses] == [(10, transmitter.stream)]
        assert losses[0].last + 1 == messages[0].number > 90
        assert [message.number for message in messages] == list(range(messages[0].number, 110))
        assert any("window_advanced" in text for text in events(sink, "packets_lost"))
        assert events(sink, "messages_lost")


def test_a_half_open_connection_is_found_and_replaced(rum: str, proxy: Proxy) -> None:
    with Instance() as sink, Instance() as source:
        receiver = sink.receiver(rum, TOPIC, connection_timeout=0.3)
        transmitter = source.transmitter(proxy.endpoint, TOPIC, connection_timeout=0.3, linger=0.0)
        assert len(exchange(transmitter, receiver, 0, 10)) == 10
        proxy.swallow()
        transmitter.send(b"10")
        for instance in (source, sink):
            assert until(lambda i=instance: events(i, "connection_lost"))  # type: ignore[misc]
        assert any("nothing was received for 0.3 seconds" in text for text in events(source, "connection_lost"))
        proxy.cut()
        assert [message.data for message in collect(receiver, 1)] == [b"10"]
        assert receiver.losses() == []


@pytest.mark.parametrize("mode", ["thread", "poll"])
def test_a_slow_receiver_makes_the_transmitter_wait(rum: str, mode: str) -> None:
    with Instance() as sink, Instance(mode=mode) as source:  # type: ignore[arg-type]
        receiver = sink.receiver(rum, TOPIC, join="live", receive_queue=65536)
        transmitter = source.transmitter(
            rum, TOPIC, submit_queue=65536, send_backlog=65536, socket_buffer=65536, linger=0.0
        )
        sent = 0
        with contextlib.suppress(WouldBlock, TimeoutExpired):
            while sent < 100_000:
                transmitter.send(b"%d" % sent + b"." * 1000, timeout=0.2)
                sent += 1
        assert 0 < sent < 100_000
        assert total(source, "instance", "backlog_bytes") > 0
        assert total(source, "instance", "kernel_backlog_bytes") > 0
        assert total(source, "instance", "connections") == 1
        messages: list[Message] = []

        def all_received() -> bool:
            messages.extend(receiver.receive(timeout=0.001))
            return len(messages) == sent

        assert until(all_received, source, seconds=30.0)
        assert [message.number for message in messages] == list(range(sent))
        assert total(sink, "instance", "naks_sent") == 0
        assert total(sink, "rx_stream", "overflows") == 0
        assert total(source, "instance", "send_errors") == 0


def test_a_receiver_may_be_slow_for_longer_than_its_timeouts(rum: str) -> None:
    with Instance() as sink, Instance() as source:
        receiver = sink.receiver(
            rum, TOPIC, join="live", receive_queue=65536, connection_timeout=0.2, stream_expiry=0.2
        )
        transmitter = source.transmitter(rum, TOPIC, connection_timeout=0.2, linger=0.0)
        sent = [b"%d" % number + b"." * 1000 for number in range(2000)]
        transmitter.send_many(sent)
        assert until(lambda: total(sink, "receiver", "queue_full") > 0)
        time.sleep(0.7)  # what is tested is that nothing happens
        assert [message.data for message in collect(receiver, len(sent))] == sent
        assert total(source, "instance", "disconnects") == total(sink, "instance", "disconnects") == 0
        assert total(sink, "instance", "naks_sent") == 0


@pytest.mark.parametrize("mode", ["thread", "poll"])
def test_closing_lets_what_was_sent_arrive(rum: str, mode: str) -> None:
    with Instance() as sink:
        receiver = sink.receiver(rum, TOPIC)
        with Instance(mode=mode) as source:  # type: ignore[arg-type]
            transmitter = source.transmitter(rum, TOPIC, linger=0.0)
            transmitter.send_many([b"." * 1000] * 3000)
            transmitter.close()
        assert len(collect(receiver, 3000)) == 3000
        assert until(lambda: events(sink, "stream_closed"))


@pytest.mark.parametrize("greeting", [b"GET / HTTP/1.1\r\n\r\n", b"\r\n", b"\x81\0\xff\xff", bytes(1000)])
def test_strangers_are_sent_away_and_do_no_harm(rum: str, greeting: bytes) -> None:
    with Instance() as sink, Instance() as source:
        receiver = sink.receiver(rum, TOPIC)
        transmitter = source.transmitter(rum, TOPIC, linger=0.0)
        with socket.create_connection(("127.0.0.1", port_of(rum)), timeout=10) as stranger:
            stranger.sendall(greeting)
            with contextlib.suppress(ConnectionResetError):
                while stranger.recv(4096):
                    pass
        assert until(lambda: events(sink, "foreign_traffic"))
        transmitter.send(b"as ever")
        assert [message.data for message in collect(receiver, 1)] == [b"as ever"]


def test_a_destination_of_another_kind_is_told(rum: str) -> None:
    def answer(listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = listener.accept()
                client.sendall(b"220 mail.example ESMTP\r\n")

    with (
        socket.create_server(("127.0.0.1", port_of(rum))) as listener,
        Instance() as source,
        source.transmitter(rum, TOPIC, linger=0.0, connect_wait=0.0),
    ):
        threading.Thread(target=answer, args=(listener,), daemon=True).start()
        assert until(lambda: events(source, "foreign_traffic"))
        assert "does not use this protocol" in events(source, "foreign_traffic")[0]
        listener.shutdown(socket.SHUT_RDWR)


def test_unlike_packet_sizes_are_told_at_both_ends(rum: str) -> None:
    with (
        Instance() as sink,
        Instance() as source,
        sink.receiver(rum, TOPIC, mtu=1500),
        source.transmitter(rum, TOPIC, mtu=9000, linger=0.0, connect_wait=0.0),
    ):
        for instance in (sink, source):
            assert until(lambda i=instance: events(i, "foreign_traffic"))  # type: ignore[misc]
            assert "the same mtu" in events(instance, "foreign_traffic")[0]


def test_a_port_in_use_is_refused_with_what_to_do(rum: str) -> None:
    with Instance() as one, Instance() as other:
        receivers = [one.receiver(rum, TOPIC), one.receiver(rum, "ANOTHER")]  # they share what listens
        with pytest.raises(EndpointError, match="is in use by another program or by a receiver with other options"):
            other.receiver(rum, TOPIC)
        assert not any(receiver.closed for receiver in receivers)


def test_a_port_is_free_again_after_its_receiver(rum: str, threaded: Instance) -> None:
    for _ in range(2):
        with threaded.receiver(rum, TOPIC) as receiver, threaded.transmitter(rum, TOPIC, linger=0.0) as transmitter:
            transmitter.send(b"x")
            assert len(collect(receiver, 1)) == 1


@pytest.mark.parametrize(
    ("make", "option", "value"),
    [
        (Instance.transmitter, "send_backlog", 1),
        (Instance.transmitter, "connect_wait", -1.0),
        (Instance.receiver, "connection_timeout", 0.0),
    ],
)
def test_options_outside_their_range_are_refused(
    rum: str, threaded: Instance, make: Callable[..., object], option: str, value: float
) -> None:
    with pytest.raises(OptionError, match=option):
        make(threaded, rum, TOPIC, **{option: value})


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="this machine has no IPv6")
def test_hosts_may_have_ipv6_addresses(instance: Instance) -> None:
    endpoint = f"rum://[::1]:{free_port()}"
    receiver = instance.receiver(endpoint, TOPIC)
    transmitter = instance.transmitter(endpoint, TOPIC, linger=0.0)
    transmitter.send_many([b"one", b"two"])
    assert [message.data for message in collect(receiver, 2)] == [b"one", b"two"]

"""What the engine sends is what the documents say, read by a decoder that knows nothing but the documents."""

from __future__ import annotations

import shutil
import subprocess
from collections import Counter, defaultdict
from itertools import product
from pathlib import Path

import pytest

from tests.wire.capture import Capture, record, write_pcap
from tests.wire.decoder import TYPES, UPSTREAM, Batch, Malformed, Notice, Packet, decode_batch, decode_packet, fnv1a


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Capture:
    return record(tmp_path_factory.mktemp("wire"))


@pytest.fixture(scope="module")
def packets(capture: Capture) -> list[Packet]:
    return [decode_packet(data) for _, data in capture.packets]


@pytest.fixture(scope="module")
def batches(packets: list[Packet]) -> list[Batch]:
    """All batches of the stream in order, fragments put together."""
    by_sequence = {p.sequence: p for p in packets if p.kind == "ODATA"}
    found: list[Batch] = []
    whole = b""
    for sequence in sorted(by_sequence):
        packet = by_sequence[sequence]
        if packet.fragment is None:
            found.append(decode_batch(packet.tsdu))
            continue
        first, offset, length = packet.fragment
        assert offset == len(whole)
        assert first <= sequence
        whole += packet.tsdu
        if len(whole) == length:
            found.append(decode_batch(whole))
            whole = b""
    assert whole == b""
    return found


def test_every_kind_of_packet_was_seen(packets: list[Packet]) -> None:
    seen = Counter(packet.kind for packet in packets)
    assert set(seen) == {"SPM", "ODATA", "RDATA", "NAK", "NCF", "SPMR", "ACK"}
    assert any(packet.nak_list for packet in packets if packet.kind == "NAK")
    assert any(packet.is_fin for packet in packets)


def test_packets_go_the_way_their_kind_says(capture: Capture, packets: list[Packet]) -> None:
    for (way, _), packet in zip(capture.packets, packets, strict=True):
        assert (way == "up") == (packet.kind in ("NAK", "SPMR", "ACK"))
        assert packet.endpoint_port == 7500
        assert packet.session[1] == 40001


def test_a_stream_opens_with_three_spms_of_an_empty_window(packets: list[Packet]) -> None:
    assert [p.kind for p in packets[:4]] == ["SPM", "SPM", "SPM", "ODATA"]
    assert all(p.trail == (p.lead + 1) & 0xFFFFFFFF for p in packets[:3])
    assert [p.sequence for p in packets[:3]] == [0, 1, 2]


def test_every_message_is_on_the_wire_once_with_its_number_and_bytes(capture: Capture, batches: list[Batch]) -> None:
    names = {fnv1a(topic.name.encode()): topic.name for batch in batches for topic in batch.topics}
    seen = {
        (names[batch.topic_id], message.number): message.body
        for batch in batches
        if batch.kind == "MESSAGES"
        for message in batch.messages
    }
    assert sorted(seen) == sorted((topic, number) for topic, number, _ in capture.sent)
    for topic, number, length in capture.sent:
        assert seen[topic, number] == bytes((number + i) & 0xFF for i in range(length))


def test_headers_take_the_bytes_the_documents_say(capture: Capture, packets: list[Packet]) -> None:
    """A data packet has 24 bytes of PGM and 40 of batch, 52 with an intended send time; a message has 2."""
    seen = 0
    for (_, data), packet in zip(capture.packets, packets, strict=True):
        if packet.kind not in ("ODATA", "RDATA") or packet.fragment:
            continue
        assert len(data) == 24 + len(packet.tsdu)
        batch = decode_batch(packet.tsdu)
        if batch.kind == "MESSAGES":
            head = 52 if batch.intended_ns else 40
            assert len(data) == 24 + head + sum(2 + len(message.body) for message in batch.messages)
            seen += len(batch.messages)
    assert seen > 100


def test_numbers_are_consecutive_and_stamps_sensible(batches: list[Batch]) -> None:
    expected: dict[int, int] = defaultdict(int)
    for batch in batches:
        if batch.kind == "MESSAGES":
            assert batch.first_message == expected[batch.topic_id]
            expected[batch.topic_id] += len(batch.messages)
            assert batch.closed_after_ns == 1000
            assert batch.submit_ns > 0


def test_an_intended_send_time_goes_with_those_who_told_one_also_in_fragments(batches: list[Batch]) -> None:
    told = [batch for batch in batches if batch.intended_ns]
    assert {batch.topic_id for batch in told} == {fnv1a("orders ä".encode())}
    assert {batch.submit_ns - batch.intended_ns for batch in told} == {7000}
    assert sum(len(batch.messages) for batch in told) == 20
    assert max(len(batch.messages[0].body) for batch in told) == 60_000


def test_topics_are_announced_before_their_first_message_and_at_their_end(batches: list[Batch]) -> None:
    known: dict[int, int] = {}
    sent: dict[int, int] = defaultdict(int)
    closed: dict[str, int] = {}
    for batch in batches:
        for topic in batch.topics:
            assert topic.topic_id == fnv1a(topic.name.encode())
            assert topic.next_message == sent[topic.topic_id]
            known[topic.topic_id] = topic.next_message
            if batch.is_closing:
                closed[topic.name] = topic.next_message
        if batch.kind == "MESSAGES":
            assert batch.topic_id in known
            sent[batch.topic_id] += len(batch.messages)
    assert closed == {"prices": 201, "orders ä": 40}


def test_a_repair_is_the_original_but_for_type_trail_and_checksum(capture: Capture, packets: list[Packet]) -> None:
    original = {p.sequence: data for (_, data), p in zip(capture.packets, packets, strict=True) if p.kind == "ODATA"}
    repairs = [(p, data) for (_, data), p in zip(capture.packets, packets, strict=True) if p.kind == "RDATA"]
    assert repairs
    for packet, data in repairs:
        assert data[16:20] + data[24:] == original[packet.sequence][16:20] + original[packet.sequence][24:]


def test_an_ncf_is_its_nak_turned_around(packets: list[Packet]) -> None:
    asked = {(p.sequence, p.nak_list, p.addresses) for p in packets if p.kind == "NAK"}
    confirmed = [p for p in packets if p.kind == "NCF"]
    assert confirmed
    assert all((p.sequence, p.nak_list, p.addresses) in asked for p in confirmed)


def test_acknowledgements_name_their_stream_receiver_and_range(packets: list[Packet]) -> None:
    said = [p for p in packets if p.kind == "ACK"]
    told = [p.acknowledge for p in said if p.acknowledge is not None]
    assert {(a.receiver, a.name, a.kind) for a in told} == {(0x5EED, "receiver", "transport")}
    assert len({a.incarnation for a in told}) == 1
    assert {p.session for p in said} == {p.session for p in packets if p.kind == "ODATA"}
    ends = [(a.position + 1) & 0xFFFFFFFF for a in told]  # position is first - 1 when nothing is acknowledged yet
    assert ends == sorted(ends)
    assert {a.first for a in told} == {0}  # it came late, and began with what the source waited for
    assert told[-1].is_leaving
    assert told[-1].position == max(p.sequence for p in packets if p.kind == "ODATA")
    acknowledging = [p for p in said if p.acknowledge is not None]
    for packet, ack in zip(acknowledging, told, strict=True):
        # Bit i of the bitmap is RX_MAX - i: all that is acknowledged is there, the first missing one is not.
        if ack.position == 0xFFFFFFFF:
            continue
        for i in range(min(32, packet.sequence - ack.first + 1)):
            if packet.sequence - i <= ack.position:
                assert packet.bitmap >> i & 1
        gap = packet.sequence - ack.position - 1
        assert not 0 <= gap < 32 or not packet.bitmap >> gap & 1


def test_reports_ride_on_what_the_receiver_sends_and_come_alone_when_it_is_silent(packets: list[Packet]) -> None:
    asked = [p.reporting for p in packets if p.kind == "SPM"]
    assert {reporting[0] for reporting in filter(None, asked)} == {20_000}
    assert all(asked)
    feedback = [p for p in packets if p.kind in ("NAK", "ACK")]
    told = [p.told for p in feedback if p.told is not None]
    assert len(told) == len(feedback)
    assert any(p.kind == "ACK" and p.acknowledge is None for p in feedback)
    assert {(t.receiver, t.is_tagged, t.is_obeying) for t in told} == {(0x5EED, False, False)}
    assert len({t.incarnation for t in told}) == 1
    assert {t.name for t in told} == {"receiver", ""}
    assert told[0].name == "receiver"
    for count in ("received", "lost", "unrecoverable"):
        values = [getattr(t, count) for t in told]
        assert values == sorted(values)
    assert told[-1].received == max(p.sequence for p in packets if p.kind == "ODATA") + 1
    assert told[-1].lost > 0
    stamps = {reporting[1] for reporting in filter(None, asked)}
    assert all(t.echo[0] in stamps for t in told if t.echo)
    assert any(t.echo for t in told)


def test_the_source_asks_at_the_end_of_bursts_and_tells_what_it_waits_for(
    packets: list[Packet], batches: list[Batch]
) -> None:
    assert 0 < sum(batch.asks for batch in batches) < len(batches)
    joins = [p.awaited for p in packets if p.kind == "SPM" and not p.is_fin]
    known = [join for join in joins if join is not None]
    assert len(known) == len(joins)
    assert known == sorted(known)


def test_every_packet_there_is_follows_the_documents(capture: Capture) -> None:
    made = [(way, decode_packet(data)) for way, data in capture.made]
    assert all((way == "up") == (packet.kind in UPSTREAM) for way, packet in made)
    packets = [packet for _, packet in made]
    for family in (4, 6):
        of = [p for p in packets if {a.version for a in p.addresses} == {family}]
        assert {p.kind for p in of} == {"SPM", "POLL", "NAK", "NNAK", "NCF"}
        assert [p.reporting for p in of if p.awaits_credit] == [(0, 0, 0, 0)]
        of = [p for p in of if not p.awaits_credit]
        spms = {(p.is_fin, p.is_reset, p.backoff_us, p.join, p.reporting) for p in of if p.kind == "SPM"}
        assert spms == set(
            product((False, True), (False, True), (None, 400), (None, 3), (None, (100000, 77, 1024, 0x5EED)))
        )
        notices = {len(p.notices): p.notices for p in of if p.kind == "SPM"}
        assert set(notices) == {0, 1, 2, 3}
        assert notices[3] == (
            Notice("suspend", "loss", False, 7, 5000, 0x5EED, 0, "loss 12 %"),
            Notice("notify", "lag", True, 8, 0, 0x5EED, 3, "a text of which only the first part fits"),
            Notice("cut_off", "storm", False, 9, 3_600_000, 0, 0, ""),
        )
        naks = {(len(p.nak_list), p.report, p.told and p.told.name) for p in of if p.kind == "NAK"}
        assert naks == set(product((0, 62), (None, (1, 9, 656)), (None, "desk 1")))
        assert {(len(p.nak_list), p.backoff_us) for p in of if p.kind == "NCF"} == set(product((0, 62), (None, 800)))
        assert {p.poll for p in of if p.kind == "POLL"} == {(1, 0, 50000, 0xDEADBEEF, 0xFF)}
    granted = ((0xFEEDFACECAFEBEEF, 42), (7, 0), (8, 2**64 - 1))
    assert {p.grants for p in packets if p.kind == "ACK"} == {(), granted}
    assert {p.poll for p in packets if p.kind == "POLR"} == {(1,)}
    data = {(p.kind, p.fragment) for p in packets if p.kind in ("ODATA", "RDATA")}
    assert data == set(product(("ODATA", "RDATA"), (None, (3, 1000, 2000))))
    assert {p.kind for p in packets} >= {"SPMR", "POLR"}


def test_the_decoder_refuses_what_is_broken(capture: Capture) -> None:
    data = next(data for _, data in capture.packets if data[4] == 4)
    for broken in (data[:-1], data + b"\0", bytes([*data[:40], data[40] ^ 1, *data[41:]])):
        with pytest.raises(Malformed):
            decode_packet(broken)


def test_tshark_finds_nothing_malformed_and_no_bad_checksum(
    capture: Capture, packets: list[Packet], tmp_path: Path
) -> None:
    tshark = shutil.which("tshark")
    if tshark is None:
        pytest.skip("tshark is not installed")
    file = tmp_path / "wire.pcap"
    write_pcap(file, capture.packets + capture.made)
    command = [tshark, "-r", str(file), "-d", "udp.port==7500,pgm", "-d", "udp.port==40001,pgm"]
    packets = packets + [decode_packet(data) for _, data in capture.made]

    def run(*more: str) -> list[str]:
        return subprocess.run([*command, *more], check=True, capture_output=True, text=True).stdout.splitlines()

    assert run("-Y", "_ws.malformed || pgm.bad_checksum") == []
    seen = Counter(run("-Y", "pgm", "-T", "fields", "-e", "pgm.hdr.type"))
    expected = Counter(packet.kind for packet in packets)
    del expected["SPMR"]  # tshark does not dissect it
    counted = Counter({TYPES[int(text, 0)]: count for text, count in seen.items()})
    del counted["SPMR"]
    assert counted == expected

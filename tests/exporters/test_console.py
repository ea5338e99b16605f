"""One line per snapshot."""

from __future__ import annotations

import io

from heliograph.exporters.console import ConsoleExporter
from heliograph.monitor.model import Health, Snapshot
from tests.exporters.making import at, instance, receiver, state


def moment(second: int, sent: int, lost: int) -> Snapshot:
    feed = state("instance", {"instance": "feed"}, {"messages_sent": sent})
    alpha = state("instance", {"instance": "alpha"}, {"messages_received": sent // 2, "naks_sent": second})
    return at(
        second,
        instance("feed", feed),
        instance("alpha", alpha, receiver("alpha", messages_lost=lost)),
        instance("old", health=Health.DEAD),
    )


def test_a_line_tells_who_is_live_and_what_happened_since_the_line_before() -> None:
    stream = io.StringIO()
    exporter = ConsoleExporter(stream)
    exporter.publish(moment(0, 0, 0))
    exporter.publish(moment(2, 20_000, 3))
    exporter.close()
    first, second = stream.getvalue().splitlines()
    assert first.endswith("2 live (old dead)")
    assert second.split("  ")[2:] == ["sent 10,000/s", "delivered 5,000/s", "NAKs 1/s", "lost 3"]

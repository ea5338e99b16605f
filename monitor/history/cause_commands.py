"""`heliograph history stages` and `heliograph history blame`: why a latency is what it is."""

from __future__ import annotations

import argparse

from heliograph.monitor.history.actions import Actions, add_action, needs_pyarrow
from heliograph.monitor.history.studies.options import add_seed_and_json, add_sides, add_source

__all__ = ["add_blame", "add_stages"]


def add_stages(actions: Actions[argparse.ArgumentParser]) -> None:
    """Add ``heliograph history stages``."""
    parser = add_action(
        actions,
        "stages",
        _stages,
        "find the stage of latency that moved between two samples",
        "Compare each stage of latency (batch, pace, network, socket, recovery, order, dispatch, callback) of two\n"
        "samples, such as two builds, hosts, links or periods, and name the stage that explains the change.\n\n"
        "The mean of the whole (submit until the application takes the message) is the sum of the means of its\n"
        "stages, so each stage has a share of the change. Percentiles do not add: p99 is shown for the stage alone.\n"
        "A verdict is slower, not slower (by less than the margin, a part of the whole's mean), or cannot say. Limits\n"
        "are those of `history compare`. Stages need the level of detail 3; at a lower level the answer is: cannot\n"
        "say. So it is for the network when the clocks may be off by more than the change.\n\n"
        "A selection is a list of LABEL=PATTERN with * and ?, and from=TIME and to=TIME, in UTC or with an offset.\n"
        "Labels: instance, topic, stream, metric, tag, host, build, link, incarnation, level. Series that agree in\n"
        "instance, topic and tag are compared; a label that a selection names need not agree. The part of the source\n"
        "is split into batch and pace where the selected builds and times include the topic's transmitters.",
        "heliograph history stages --spool spool --a build=4.1 --b build=4.2",
    )
    add_source(parser)
    add_sides(parser, "a", "b")
    parser.add_argument(
        "--without-stops",
        metavar="DURATION",
        help="leave out intervals in which a receiver's host stopped all processes for this time, such as 5ms "
        "(hiccups), and the next ones, in both samples",
    )


def add_blame(actions: Actions[argparse.ArgumentParser]) -> None:
    """Add ``heliograph history blame``."""
    parser = add_action(
        actions,
        "blame",
        _blame,
        "divide late messages among host, network and transport",
        "For each series: the share of the late messages that were recovered (network), that waited for the repair\n"
        "of earlier ones (waited-for), that come and go with stops of a host (host), and of all others (transport),\n"
        "with 95 % intervals. Stops are the hiccups that instances record (option hiccup_interval). A verdict names\n"
        "the cause of more than half, or is mixed, or cannot say. It needs receivers at level of detail 3, and 30\n"
        "late messages in five independent stretches of time.\n\n"
        "A selection is a list of LABEL=PATTERN with * and ?, and from=TIME and to=TIME, in UTC or with an offset.\n"
        "Labels: instance, topic, stream, metric, tag, host, build, link, incarnation, level.",
        "heliograph history blame --spool spool --select 'topic=PRICES.*' --late 1ms",
    )
    add_source(parser)
    parser.add_argument("--select", default="", metavar="SELECTION", help="labels and times (default: everything)")
    parser.add_argument(
        "--late", metavar="DURATION", help="slower messages are late, such as 250us or 1ms (default: each series' p99)"
    )
    parser.add_argument(
        "--by",
        default="instance,topic,tag",
        metavar="LABELS",
        help="labels that tell series apart, with commas (default: %(default)s)",
    )
    add_seed_and_json(parser)


def _stages(args: argparse.Namespace) -> int:
    needs_pyarrow()
    from heliograph.monitor.history.studies.stages_commands import run_stages

    return run_stages(args)


def _blame(args: argparse.Namespace) -> int:
    needs_pyarrow()
    from heliograph.monitor.history.studies.blame_commands import run_blame

    return run_blame(args)

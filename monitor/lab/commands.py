"""``heliograph lab``: scenarios of congestion on virtual time, their curves, and whether they came out as they must.

The command line reads this file to build its help, so what needs the compiled module is imported when a command runs.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from heliograph.monitor.lab import replay

if TYPE_CHECKING:
    from heliograph.monitor.lab.runs import Trials, Verdict
    from heliograph.monitor.lab.scenario import Scenario

__all__ = ["command"]

Subparsers: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"

_OUT = Path("build/lab")


def command(subparsers: Subparsers) -> None:
    """Add ``heliograph lab``."""
    parser = subparsers.add_parser(
        "lab",
        help="try congestion control and slow consumers on a simulated network",
        description="Run scenarios of congestion on a simulated network, with the engine's own code on virtual time, "
        "and hold what comes out against bounds.",
        epilog="example:\n  heliograph lab run steady --seeds 20\n  heliograph lab run all --seeds 100 --first 1000",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    _add_run(actions)
    listing = actions.add_parser("list", help="list the scenarios that come along")
    listing.set_defaults(run=_list)
    show = actions.add_parser("show", help="show a scenario: what is on its network and what must come out")
    show.add_argument("scenario", metavar="SCENARIO", help="a name of `heliograph lab list`, or a file.toml")
    show.set_defaults(run=_show)
    again = actions.add_parser(
        "replay",
        help="make the decisions of a decision log again",
        description="Give what a decision log recorded (instance option decision_log) to the same policies, or to "
        "others, and compare their decisions with those recorded. Exit code 1 when one does not come out again.",
        epilog="example:\n  heliograph lab replay feed.*.decisions\n  heliograph lab replay LOG --set slow_dwell=1",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    replay.add(again)


def _add_run(actions: Subparsers) -> None:
    run = actions.add_parser(
        "run",
        help="run scenarios",
        description="Run scenarios with several seeds; write NAME.json and NAME.html with the curves for each. Exit "
        "code 1 when a criterion fails.",
    )
    run.add_argument(
        "scenarios",
        nargs="+",
        metavar="SCENARIO",
        help="names of `heliograph lab list`, files.toml, all (those on the simulated network) or real (those on real "
        "sockets, which need root)",
    )
    run.add_argument("--seeds", type=_natural, default=10, metavar="N", help="how many seeds (default: 10)")
    run.add_argument(
        "--first",
        type=_natural,
        default=1,
        metavar="N",
        help="the first seed (default: 1); no constant of the engine was tuned on seeds from 1000 on",
    )
    run.add_argument("--jobs", type=_natural, metavar="N", help="processes (default: one a core)")
    run.add_argument("--out", type=Path, default=_OUT, metavar="FOLDER", help=f"for the files (default: {_OUT})")
    run.add_argument("--json", action="store_true", help="print one JSON object with the criteria")
    run.set_defaults(run=_run)


def _natural(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f'"{text}" is not a whole number above 0')
    return int(text)


def _scenarios(names: list[str]) -> list[Scenario]:
    from heliograph.monitor.lab.scenario import load, shipped

    known = {name: load(name) for name in shipped()} if {"all", "real"} & set(names) else {}
    networks = {"all": "simulated", "real": "namespaces"}
    wanted: dict[str, Scenario] = {}
    for name in names:
        if name in networks:
            wanted |= {one.name: one for one in known.values() if one.network == networks[name]}
        else:
            wanted[name] = load(name)
    return list(wanted.values())


def _told(error: Exception) -> int:
    print(f"heliograph: {error}", file=sys.stderr)
    return 2


class _Progress:
    """A line on standard error that is written over, when people read it."""

    def __init__(self) -> None:
        self.shown = sys.stderr.isatty()
        self.begin = time.monotonic()

    def tell(self, done: int, total: int) -> None:
        if self.shown:
            print(f"\rlab: {done} of {total} runs, {time.monotonic() - self.begin:.0f} s", end="", file=sys.stderr)

    def end(self) -> None:
        if self.shown:
            print("\r\033[K", end="", file=sys.stderr)


def _run(arguments: argparse.Namespace) -> int:
    from heliograph.monitor.lab.runs import cores, run_scenarios
    from heliograph.monitor.lab.scenario import ScenarioError

    progress = _Progress()
    verdicts: list[Verdict] = []
    try:
        scenarios = _scenarios(arguments.scenarios)
        arguments.out.mkdir(parents=True, exist_ok=True)
        jobs = arguments.jobs or cores()
        for trials in run_scenarios(scenarios, arguments.seeds, jobs, progress.tell, arguments.first):
            _write(trials, arguments.out)
            verdicts += trials.verdicts
            if not arguments.json:
                progress.end()
                _print(trials)
    except (ScenarioError, RuntimeError, OSError) as error:
        return _told(error)
    finally:
        progress.end()
    if arguments.json:
        print(json.dumps({"criteria": [verdict.as_json() for verdict in verdicts]}, indent=1))
    else:
        print(f"curves: {arguments.out.resolve()}")
    return 0 if all(verdict.passed for verdict in verdicts) else 1


def _write(trials: Trials, folder: Path) -> None:
    """Both files of a scenario; none is ever there half written."""
    from heliograph.monitor.lab.page import page

    for ending, text in (("json", json.dumps(_facts(trials))), ("html", page(trials))):
        path = folder / f"{trials.scenario.name}.{ending}"
        part = path.with_name(f".{path.name}.part")
        try:
            part.write_text(text, encoding="utf-8")
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)


def _facts(trials: Trials) -> dict[str, Any]:
    scenario, first = trials.scenario, trials.outcomes[0]
    return {
        "scenario": scenario.name,
        "title": scenario.title,
        "shows": scenario.shows,
        "criteria": [verdict.as_json() for verdict in trials.verdicts],
        "variants": {
            variant: {
                "interval_seconds": plan.interval,
                "duration_seconds": plan.duration,
                "seed": first.seed,
                "charts": {
                    chart.key: {
                        "title": chart.title,
                        "unit": chart.unit,
                        "series": {one.name: [float(f"{value:.6g}") for value in one.values] for one in chart.series},
                    }
                    for chart in first.drawn[variant]
                },
                "events": [
                    {"seconds": event.at, "event": event.name, "source": event.source, "text": event.text}
                    for event in first.events[variant]
                ],
            }
            for variant, plan in scenario.plans.items()
        },
    }


def _value(value: float | None) -> str:
    return "never" if value is None else f"{value:.4g}"


def _print(trials: Trials) -> None:
    print(f"{trials.scenario.name}: {trials.scenario.title}")
    for verdict in trials.verdicts:
        facts = verdict.as_json()
        bound = f"{facts['wanted']} {_value(verdict.bound)}" if verdict.bound is not None else "reported"
        print(
            f"  {facts['verdict']:<4}  {verdict.name}: {_value(facts['value'])} {verdict.unit} ({bound}; "
            f"median {_value(facts['median'])}, worst seed {verdict.worst_seed} of {verdict.seeds})"
        )
    sys.stdout.flush()  # a run of many seeds is read while it goes on


def _list(arguments: argparse.Namespace) -> int:
    from heliograph.monitor.lab.scenario import load, shipped

    for name in shipped():
        print(f"{name:<20}  {load(name).title}")
    return 0


def _show(arguments: argparse.Namespace) -> int:
    from heliograph.monitor.lab.measures import MEASURES
    from heliograph.monitor.lab.scenario import ScenarioError, load

    try:
        scenario = load(arguments.scenario)
    except ScenarioError as error:
        return _told(error)
    print(f"{scenario.name}: {scenario.title}\n\n{scenario.shows}\n")
    for variant, plan in scenario.plans.items():
        print(f"{variant or 'network'}: {plan.duration:g} s in intervals of {plan.interval:g} s")
        for pipe in plan.pipes:
            print(f"  pipe {pipe.name}: {pipe.rate:,} B/s, queue {pipe.queue:,} B")
        for source in plan.sources:
            print(f"  source {source.name}: offered {source.offered:,.0f} B/s; {source.options or 'no options'}")
        for group in plan.receivers:
            print(f"  receivers {group.name}: {group.count}, loss {group.loss:.2%}; {group.options or 'no options'}")
        for tcp in plan.tcps:
            print(f"  TCP {tcp.name}: from {tcp.start:g} s")
        for turn in plan.turns:
            print(f"  at {turn.at:g} s: {turn.knob} {turn.which} becomes {turn.value:g}")
    print("\nmust come out:")
    for criterion in scenario.criteria:
        known = MEASURES[criterion.measure]
        wanted = "at most" if known.better == "less" else "at least"
        bound = "is reported" if criterion.bound is None else f"{wanted} {criterion.bound:g} {known.unit}"
        print(f"  {criterion.name}: {bound}\n      {known.help}")
    return 0

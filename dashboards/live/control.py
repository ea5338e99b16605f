"""Commands of readers to the engines of this host: who may send them, and a record of each.

Every command needs the control token, which the server reads from ``--control-token-file``. The receivers, rates,
levels and times are those of `heliograph ctl`. Each command becomes an event of each instance it was sent to, with the
name and address of its sender, also when the engine refuses it. The name is as the sender gave it; the address is that
of the connection.
"""

from __future__ import annotations

import argparse
import hmac
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from heliograph.dashboards.live.access import Token
from heliograph.engine.catalogue.outside import outside
from heliograph.monitor.commands import levels
from heliograph.monitor.commands.arguments import tell
from heliograph.monitor.commands.ctl import duration, rate
from heliograph.monitor.control import Answer, CommandRing, command_text
from heliograph.monitor.errors import UserError
from heliograph.monitor.model import Event, Health, InstanceState

__all__ = ["COMMANDS", "EVERY", "LEVELS", "PATTERNS", "Command", "Control", "Outcome", "key_of"]

_SECONDS = 2.0
_ALL_SECONDS = 10.0
"""No further instance gets a command for all of them after this time."""
_LONGEST_NAME = 40
_LONGEST = 200
_NAMED = 3
EVERY = "*"
"""Value in place of an instance: all that run. Only for levels of detail: a topic is measured at both ends."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command that the page offers."""

    help: str
    must: tuple[str, ...] = ()
    """Fields that it needs."""
    may: tuple[str, ...] = ()


COMMANDS: Mapping[str, Command] = {
    "suspend": Command("stop repairs for a receiver for a time", ("receiver", "for"), ("why",)),
    "resume": Command("end a suspension", ("receiver",), ("why",)),
    "expel": Command("ignore a receiver", ("receiver",), ("for", "why")),
    "readmit": Command("accept an expelled receiver again", ("receiver",), ("why",)),
    "set-rate": Command("limit the sending rate; 0 removes the limit", ("rate",)),
    "cutoff": Command("stop all repairs for a time", ("for",), ("why",)),
    "freeze": Command("keep the flight recording", (), ("why",)),
}

LEVELS: Mapping[str, Command] = {
    "level": Command("set a level of detail for a time", ("level", "for")),
    "end-level": Command("end a level of detail now"),
}
"""Commands of the page of the levels of detail. A level is for `of` (of `PATTERNS`) and `pattern`, or for all."""
PATTERNS = ("topic", "receiver", "stream")
_LEVEL = ("0", "1", "2", "3")


@dataclass(frozen=True, slots=True)
class Outcome:
    """The answer to a reader."""

    is_done: bool
    text: str


def key_of(instance: InstanceState) -> str:
    """Return the name of an instance that differs from other instances with this name."""
    return f"{instance.name} ({instance.pid})"


def _ring(path: Path, text: str) -> Answer:
    with CommandRing(path) as ring:
        return ring.give(text, _SECONDS)


class Control:
    """Checks and sends commands; safe to use from many threads."""

    def __init__(
        self,
        token: Token,
        instances: Callable[[], Sequence[InstanceState]],
        record: Callable[[Event], None],
        *,
        clock: Callable[[], int] = time.time_ns,
        say: Callable[[str], None] = tell,
        send: Callable[[Path, str], Answer] = _ring,
    ) -> None:
        """Create the gate.

        Args:
            token: The control token.
            instances: Returns the instances of this host.
            record: Gets the event of each command.
            clock: Wall clock in ns since 1970.
            say: Gets a line for the log of the server.
            send: Sends a command to the engine of a segment.
        """
        self._token = token
        self._instances = instances
        self._record = record
        self._clock = clock
        self._say = say
        self._send = send

    def running(self) -> list[InstanceState]:
        """Return the instances that can take commands, by name."""
        found = [item for item in self._instances() if item.health in (Health.LIVE, Health.STALE)]
        return sorted(found, key=lambda item: (item.name, item.pid))

    def carry_out(self, request: Mapping[str, object], remote: str) -> Outcome:
        """Send a command.

        Args:
            request: Texts by name: token, who, instance, command, and the fields of the command.
            remote: Address of the sender.
        """
        fields = {name: value.strip() for name, value in request.items() if isinstance(value, str)}
        if not hmac.compare_digest(fields.get("token", "").encode("utf-8", "replace"), self._token):
            self._say(f"a command from {remote} was refused: wrong control token")
            return Outcome(False, "This is not the control token. Nothing was sent.")
        try:
            who, targets, text = self._checked(fields)
        except (UserError, argparse.ArgumentTypeError) as error:
            return Outcome(False, f"Nothing was sent: {error}.")
        sender = f"{who} at {remote or 'an unknown address'}, on the live page"
        end = time.monotonic() + _ALL_SECONDS
        found: list[Outcome] = []
        for target in targets:
            if found and time.monotonic() >= end:
                break
            found.append(self._give(target, text, sender))
        if len(targets) == 1:
            return found[0]
        failed = [one.text for one in found if not one.is_done]
        said = f"{len(found) - len(failed)} of {len(targets)} instances: done"
        if len(found) < len(targets):
            failed.append(f"no time was left for {len(targets) - len(found)} instances")
        return Outcome(not failed, "; ".join([said, *failed[:_NAMED]]))

    def _give(self, target: InstanceState, text: str, sender: str) -> Outcome:
        """Send a command to one instance and record its event."""
        try:
            answer = self._send(Path(target.path), text)
            is_done, said = answer.error is None, answer.text
        except UserError as error:
            is_done, said = False, str(error)
        event = Event(
            target.name,
            target.incarnation,
            0,
            self._clock(),
            "command" if is_done else "command_refused",
            "info" if is_done else "warning",
            {},
            {},
            outside(f"{sender}: {text}: {said}"),
        )
        self._record(event)
        self._say(f"{target.name}: {event.text}")
        return Outcome(is_done, f"{target.name}: {said}" if is_done else f"{target.name} refused: {said}")

    def _checked(self, fields: Mapping[str, str]) -> tuple[str, list[InstanceState], str]:
        """Return the sender, the instances and the text of the command."""
        who = fields.get("who", "")
        if not who or len(who) > _LONGEST_NAME or not who.isprintable():
            raise UserError(f"your name is needed, with at most {_LONGEST_NAME} characters")
        verb = fields.get("command", "")
        if (command := COMMANDS.get(verb) or LEVELS.get(verb)) is None:
            raise UserError("choose a command")
        # By name and process only: a path from a browser must never be opened.
        is_all = verb in LEVELS and fields.get("instance") == EVERY
        found = [item for item in self.running() if is_all or key_of(item) == fields.get("instance")]
        if not found or (len(found) != 1 and not is_all):
            raise UserError("choose an instance that runs")
        values: dict[str, object] = {}
        for name in (*command.must, *command.may):
            value = fields.get(name, "")[:_LONGEST]
            if not value and name in command.must:
                raise UserError(f"{verb} needs the field {name}")
            if value:
                values[name] = duration(value) if name == "for" else rate(value) if name == "rate" else value
        if verb in LEVELS:
            return who, found, command_text("level", _level(verb, values, fields))
        if "why" in command.may:
            why = values.get("why")
            values["why"] = f"{who}: {why}" if why else f"by {who}"
        return who, found, command_text(verb, values)


def _level(verb: str, values: Mapping[str, object], fields: Mapping[str, str]) -> dict[str, object]:
    """Return the fields of a command about a level of detail."""
    of, pattern = fields.get("of", ""), fields.get("pattern", "")[:_LONGEST]
    if of and of not in PATTERNS:
        raise UserError("choose a topic, a receiver or a stream, or nothing for the whole instance")
    if bool(of) != bool(pattern):
        raise UserError(f"the pattern of the {of} is needed" if of else "choose what the pattern is of")
    given: dict[str, object] = {of: pattern} if of else {}
    if verb == "end-level":
        return levels.values(given | {"level": "off"})
    if values["level"] not in _LEVEL:
        raise UserError(f"choose a level from {_LEVEL[0]} to {_LEVEL[-1]}")
    return levels.values({**given, **values})

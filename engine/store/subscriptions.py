"""Durable subscriptions: the positions of subscribers, kept by stores.

A store keeps a file for each subscription, ``subscriptions/NAME.json`` in its directory. Of several stores, the one
with the highest revision is right.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Self

from heliograph.engine.errors import Error, OptionError, UsageError
from heliograph.engine.options import refusal
from heliograph.engine.store.protocol import Ask
from heliograph.engine.store.reader import Where, is_remote, text_of
from heliograph.engine.store.remote import ask_json
from heliograph.engine.store.whole_file import write_json

__all__ = ["Position", "Subscription", "answer_to", "forget", "kept_in", "move", "subscriptions"]

_FOLDER = "subscriptions"
_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}")
_STREAM = re.compile(r"[0-9a-f]{12}:\d{1,5}")
_STREAMS_MAX = 4096
_SUBSCRIPTIONS_MAX = 1000
_TRIES = 10


@dataclass(frozen=True)
class Position:
    """How far a durable subscription has come.

    Attributes:
        name: Its name: 1 to 64 letters, digits, ``.``, ``_`` and ``-``; no dot first.
        topic: Its topic.
        revision: Number of changes.
        owner: Random text of the subscriber that has it.
        positions: By stream, the number of the next message.
        saved_ns: Wall clock time of the last change, ns since 1970.
    """

    name: str
    topic: str
    revision: int
    owner: str
    positions: dict[str, int]
    saved_ns: int

    @classmethod
    def of(cls, found: Any) -> Self:
        """From JSON.

        Raises:
            OptionError: It is not a subscription.
        """
        try:
            one = cls(**found)
            if not all(isinstance(text, str) for text in (one.topic, one.owner)) or not 1 <= len(one.topic) <= 255:
                raise ValueError("topic and owner are texts")
            if not _is_count(one.revision) or not _is_count(one.saved_ns) or len(one.positions) > _STREAMS_MAX:
                raise ValueError("a number is out of range")
            if not all(_is_stream(stream) and _is_count(number) for stream, number in one.positions.items()):
                raise ValueError("the positions are not numbers of streams")
        except (TypeError, ValueError, AttributeError) as error:
            raise refusal(f"not a subscription: {error}") from error
        _check_name(one.name)
        return one


def subscriptions(where: Where) -> list[Position]:
    """The subscriptions that a store keeps, by name.

    Raises:
        Error: The store cannot be read, or a file is not a subscription.
    """
    return [Position.of(one) for one in _ask(where, Ask.SUBSCRIPTIONS, {})]


def move(where: Where, name: str, positions: Mapping[str, int]) -> Position:
    """Set positions of a subscription; a subscriber that runs stops with an error at its next save.

    Args:
        where: Directory of the store, or ``store://HOST:PORT``.
        name: Name of the subscription.
        positions: By stream, the number of the next message; other streams stay.

    Raises:
        OptionError: There is no such subscription, or a position is not valid.
        Error: The store cannot be read or written.
    """
    found = _found(where, name)
    moved = replace(
        found,
        revision=found.revision + 1,
        owner="moved",
        positions={**found.positions, **positions},
        saved_ns=time.time_ns(),
    )
    return _saved(where, Position.of(asdict(moved)))


def forget(where: Where, name: str) -> None:
    """Delete a subscription.

    Raises:
        OptionError: There is no such subscription.
        Error: The store cannot be read or written.
    """
    _found(where, name)
    _ask(where, Ask.FORGET, {"name": name})


class Subscription:
    """A durable subscription that this process has.

    It belongs to the process that opened it last; the one before has an error at its next `save`. Open it, give
    `positions` to a `StoreFollower`, and `save` what has been dealt with.
    """

    def __init__(self, name: str, topic: str, stores: Sequence[Where]) -> None:
        """Take over the subscription, which is created when there is none.

        Args:
            name: Its name: 1 to 64 letters, digits, ``.``, ``_`` and ``-``; no dot first.
            topic: Its topic.
            stores: Directories or addresses of stores. One of them must be reached. The sequence may change meanwhile.

        Raises:
            OptionError: The name is not valid, or the subscription has another topic.
            Error: No store can be reached.
        """
        _check_name(name)
        self._stores = stores
        owner = secrets.token_hex(8)
        for left in reversed(range(_TRIES)):  # the subscriber before may save meanwhile
            self._now = replace(self._newest(name, topic), owner=owner)
            try:
                self.save(self._now.positions)
                return
            except UsageError:
                if not left:
                    raise

    def _newest(self, name: str, topic: str) -> Position:
        found = [Position.of(one) for one in self._each(Ask.SUBSCRIBE, {"name": name}) if one]
        newest = max(found, key=lambda one: one.revision, default=Position(name, topic, 0, "", {}, 0))
        if newest.topic != topic:
            raise refusal(f"the subscription {name} has the topic {newest.topic}, not {topic}")
        return newest

    @property
    def positions(self) -> dict[str, int]:
        """By stream, the number of the next message, as saved last."""
        return dict(self._now.positions)

    def save(self, positions: Mapping[str, int]) -> None:
        """Save positions in all stores that can be reached.

        Raises:
            UsageError: Another process has taken over or moved the subscription.
            Error: No store can be reached.
        """
        now = replace(self._now, revision=self._now.revision + 1, positions=dict(positions), saved_ns=time.time_ns())
        for answer in self._each(Ask.SAVE, asdict(now)):
            if not answer["saved"]:
                raise UsageError(f"another subscriber has taken over the subscription {now.name}, or it was moved")
        self._now = now

    def _each(self, kind: Ask, body: object) -> list[Any]:
        """The answers of the stores that can be reached."""
        answers, failure = [], None
        for store in self._stores:
            try:
                answers.append(_ask(store, kind, body))
            except Error as error:
                failure = error
        if not answers and failure:
            raise failure
        return answers


def answer_to(path: Path, kind: Ask, body: Any) -> Any:
    """The answer of the store in a directory to a request about subscriptions, for JSON.

    Raises:
        OptionError: The request is not valid.
        OSError: A file cannot be read or written.
    """
    folder = path / _FOLDER
    if kind is Ask.SUBSCRIPTIONS:
        names = sorted(file.stem for file in folder.glob("*.json")) if folder.is_dir() else []
        return [one for one in (_load(folder, name) for name in names if _NAME.fullmatch(name)) if one]
    name = _check_name(body.get("name") if isinstance(body, dict) else None)
    if kind is Ask.SUBSCRIBE:
        return _load(folder, name)
    folder.mkdir(exist_ok=True)
    # Without a context manager: an interrupt between its lock and the block would leave the directory locked.
    lock = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return _change(folder, name, kind, body)
    finally:
        os.close(lock)


def kept_in(path: Path, before: Mapping[str, tuple[int, Position | None]]) -> dict[str, tuple[int, Position | None]]:
    """The subscriptions of a directory by name, each with the time of its file's last change; None: it is damaged.

    Args:
        path: Directory of the store.
        before: The last result, for files that have not changed.
    """
    found: dict[str, tuple[int, Position | None]] = {}
    try:
        entries = [one for one in os.scandir(path / _FOLDER) if one.name.endswith(".json")]
    except OSError:  # no subscription yet
        return found
    for entry in entries[:_SUBSCRIPTIONS_MAX]:
        name = entry.name.removesuffix(".json")
        try:
            changed = entry.stat().st_mtime_ns
            same = before.get(name)
            found[name] = same if same and same[0] == changed else (changed, _position(path / _FOLDER, name))
        except OSError:  # deleted meanwhile
            continue
    return found


def _position(folder: Path, name: str) -> Position | None:
    try:
        one = _load(folder, name) if _NAME.fullmatch(name) else None
    except OptionError:
        return None
    return Position.of(one) if one else None


def _change(folder: Path, name: str, kind: Ask, body: Any) -> Any:
    """The answer to a request that changes a subscription."""
    if kind is Ask.FORGET:
        (folder / f"{name}.json").unlink(missing_ok=True)
        return {}
    new, old = Position.of(body), _load(folder, name)
    same = old is not None and (old["revision"], old["owner"]) == (new.revision, new.owner)
    is_newer = old is None or new.revision > old["revision"] or same
    if old is None and len(list(folder.glob("*.json"))) >= _SUBSCRIPTIONS_MAX:
        raise refusal(f"the store keeps {_SUBSCRIPTIONS_MAX} subscriptions; delete one")
    if is_newer:
        _write(folder, new)
    return {"saved": is_newer}


def _ask(where: Where, kind: Ask, body: object) -> Any:
    if is_remote(where):
        return ask_json(text_of(where), kind, body)
    try:
        return answer_to(Path(where), kind, body)
    except OSError as error:
        raise Error(f"the subscriptions of {text_of(where)} cannot be used: {error}") from error


def _found(where: Where, name: str) -> Position:
    known = {one.name: one for one in subscriptions(where)}
    if name not in known:
        raise refusal(f"{text_of(where)} has no subscription {name!r}; it has {', '.join(known) or 'none'}")
    return known[name]


def _saved(where: Where, one: Position) -> Position:
    if not _ask(where, Ask.SAVE, asdict(one))["saved"]:
        raise UsageError(f"the subscription {one.name} has changed meanwhile; try again")
    return one


def _check_name(name: object) -> str:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise refusal(f"the name of a subscription is 1 to 64 of A-Z a-z 0-9 . _ - without a dot first, not {name!r}")
    return name


def _is_stream(text: str) -> bool:
    return bool(_STREAM.fullmatch(text)) and int(text.rpartition(":")[2]) < 1 << 16


def _is_count(number: object) -> bool:
    return isinstance(number, int) and not isinstance(number, bool) and 0 <= number < 1 << 64


def _load(folder: Path, name: str) -> dict[str, Any] | None:
    try:
        return asdict(Position.of(json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))))
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise refusal(f"the file of the subscription {name} is damaged: {error}") from error


def _write(folder: Path, one: Position) -> None:
    write_json(folder / f"{one.name}.json", asdict(one))

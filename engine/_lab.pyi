from typing import TypedDict

Event = tuple[float, int, int, tuple[int, int, int, int], str]
"""When, id, source (-1: a receiver), arguments, text."""
Receiver = tuple[int, int, int, int, float]
"""Group, who, messages delivered, messages lost, when the first was lost (infinity: none)."""

Decision = tuple[int, int, int, tuple[int, ...] | None, str, tuple[int, ...] | None, str, bool]
"""Monotonic and wall clock ns of its interval, kind, as recorded (numbers or none, why), as made again, both agree."""

class Rerun(TypedDict):
    instance: str
    stream: str
    policy: str
    begun_ns: int
    intervals: int
    recorded: int
    made: int
    reproduced: int
    damaged: bool
    decisions: list[Decision]

def check_options(owner: str, options: str | None, /) -> None:
    """Raise ValueError unless they are options of an owner: "instance", "transmitter", "receiver"."""

def decision_costs(receivers: int, intervals: int, /) -> dict[str, float]: ...
def rerun(log: bytes, options: str | None = ..., /) -> Rerun: ...

class Trial:
    def __new__(cls, seed: int, interval: float, watches: bool = ...) -> Trial: ...
    def add_pipe(self, rate: int, queue: int, overhead: int = ..., loss: float = ..., delay: float = ...) -> int: ...
    def add_source(
        self,
        options: str | None,
        pipe: int,
        offered: float,
        message_bytes: int,
        queue: int,
        even: bool,
        start: float,
        feedback_delay: float,
        feedback_loss: float,
    ) -> int: ...
    def add_group(
        self,
        options: str | None,
        count: int,
        join: float,
        delay: float,
        jitter: float,
        loss: float,
        burst: tuple[float, float, float],
        drain: float,
        queue: int,
        access_rate: int,
        access_queue: int,
        overhead: int,
    ) -> int: ...
    def add_tcp(self, pipe: int, start: float, stop: float, delay: float, feedback_delay: float) -> int: ...
    def plan(self, at: float, knob: str, which: int, value: float = ..., second: float = ..., /) -> None: ...
    def run(self, duration: float, /) -> tuple[list[str], bytes, list[Event], list[Receiver], bytes]: ...

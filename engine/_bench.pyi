from typing import Any

from typing_extensions import Buffer

BOARD_BYTES: int
STAMP_BYTES: int

def rank(total: int, share: float, /) -> int: ...
def send(
    instance_options: str,
    endpoint: str,
    topic: str,
    options: str,
    size: int,
    rate: float,
    seconds: float,
    warmup: float,
    spin: bool,
    board: Buffer,
    fd: int = -1,
) -> dict[str, Any]: ...
def receive(
    instance_options: str,
    endpoint: str,
    topic: str,
    options: str,
    size: int,
    rate: float,
    seconds: float,
    warmup: float,
    spin: bool,
    board: Buffer,
    fd: int = -1,
) -> dict[str, Any]: ...
def levels(order: Buffer, batch: int, slot_seconds: float, warmup_seconds: float) -> list[float]: ...

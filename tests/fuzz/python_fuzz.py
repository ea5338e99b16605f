"""Runs one fuzz target of the Python decoders (python_targets.py) for some seconds, as libFuzzer does for those in C.

    python -m tests.fuzz.python_fuzz TARGET --seconds 60 --corpus FOLDER --found FOLDER [--seed N] [--input FILE]

Inputs are mutated from the target's seeds and from what the corpus holds; one whose outcome was not seen before (what
was read, or why it was refused, numbers left out) joins the corpus. A finding is an exception other than the target's
own refusals, an input that takes longer than 5 s or more than 512 MB, or a process that dies. It is left in the
folder `found`, and the line that is printed repeats it.

The work is done in a child process, so that one that dies, hangs or takes the memory can be told of.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import re
import resource
import signal
import subprocess
import sys
import time
import traceback
from pathlib import Path
from types import FrameType

from tests.fuzz.python_targets import TARGETS, Target

SECONDS_MAX = 5.0
"""Of processor time, for one input: what a busy machine takes longer is no finding."""
MEMORY_MAX = 512 << 20
"""Beyond what the process has when it begins."""
CORPUS_MAX = 2000
_FOUND = 77
_TOP = Path(__file__).resolve().parents[2]


class TooLongError(BaseException):
    """One input takes too long. No decoder may catch it."""


def outcome(target: Target, data: bytes) -> str:
    """Feed one input and say what became of it, without its numbers.

    Raises:
        BaseException: A finding.
    """

    def stop(number: int, frame: FrameType | None) -> None:
        raise TooLongError(f"it takes longer than {SECONDS_MAX:g} s")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, SECONDS_MAX)
    try:
        said = target.run(data)
    except target.refusals as refusal:
        said = f"{type(refusal).__name__}: {refusal}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    return re.sub(r"'[^']*'|[0-9a-f]{6,}|[0-9]+", "#", said)[:300]


def _limit_memory() -> None:
    size = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + MEMORY_MAX, resource.RLIM_INFINITY))


def work(target: Target, seconds: float, seed: int, corpus: Path, current: Path) -> int:
    """Mutate and feed until the time is over, the input at hand in `current`; 0, or 77: something was found."""
    chance = random.Random(seed)
    pool = [*target.seeds(), *(path.read_bytes() for path in sorted(corpus.iterdir()))]
    seen: set[str] = set()
    count = 0
    _limit_memory()
    end = time.monotonic() + seconds
    memory = os.open(current, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
    queue = list(pool)
    while time.monotonic() < end:
        data = queue.pop(0) if queue else target.mutate(chance, chance.choice(pool), chance.choice(pool))
        os.ftruncate(memory, 0)
        os.pwrite(memory, data, 0)
        count += 1
        try:
            said = outcome(target, data)
        except BaseException:
            traceback.print_exc()
            return _FOUND
        if said not in seen:
            seen.add(said)
            if len(pool) < CORPUS_MAX:
                pool.append(data)
                (corpus / hashlib.sha1(data).hexdigest()).write_bytes(data)
    print(f"stat::number_of_executed_units: {count}")
    print(f"stat::outcomes: {len(seen)}")
    return 0


def watch(name: str, seconds: float, seed: int, corpus: Path, found: Path) -> int:
    """Have a child work and tell what it found."""
    corpus.mkdir(parents=True, exist_ok=True)
    found.mkdir(parents=True, exist_ok=True)
    current = found / f".{name}-{os.getpid()}"
    places = ["--corpus", str(corpus), "--found", str(found)]
    line = [sys.executable, "-X", "faulthandler", "-m", "tests.fuzz.python_fuzz", name, "--work", str(current), *places]
    child = subprocess.Popen([*line, "--seconds", str(seconds), "--seed", str(seed)], cwd=_TOP)
    try:
        code = child.wait(timeout=seconds + 60 + 4 * SECONDS_MAX)
    except subprocess.TimeoutExpired:
        child.kill()
        code = child.wait()
    except BaseException:
        child.kill()
        child.wait()
        current.unlink(missing_ok=True)
        raise
    if code == 0:
        current.unlink(missing_ok=True)
        return 0
    data = current.read_bytes() if current.exists() else b""
    artifact = found / f"{name}-{hashlib.sha1(data).hexdigest()}"
    if current.exists():
        current.rename(artifact)
    print(f"{name}: found with seed {seed} (status {code}); once more: ", end="")
    print(f"{sys.executable} -m tests.fuzz.python_fuzz {name} --input {artifact}")
    return 1


def main() -> int:
    """Run a target; 0 when nothing was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", choices=[*TARGETS, "list"], help="list: say the targets' names")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=None, help="of the mutations; default: another every time")
    parser.add_argument("--corpus", type=Path, default=Path("build/fuzz/corpus"))
    parser.add_argument("--found", type=Path, default=Path("build/fuzz/found"))
    parser.add_argument("--input", type=Path, help="feed this file only")
    parser.add_argument("--work", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.target == "list":
        print("\n".join(TARGETS))
        return 0
    target = TARGETS[args.target]
    if args.input:
        print(outcome(target, args.input.read_bytes()))
        return 0
    seed = random.SystemRandom().getrandbits(32) if args.seed is None else args.seed
    if args.work:
        return work(target, args.seconds, seed, args.corpus, args.work)
    print(f"{args.target}: seed {seed}", flush=True)
    return watch(args.target, args.seconds, seed, args.corpus, args.found)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)

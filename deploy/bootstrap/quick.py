"""Run the tests that the changes since main are most likely to break, and print the reason for each.

A C test is chosen if it includes a changed header, or a header of the room of a changed source, also through headers.
A Python test is chosen if it changed or imports a changed module. CONTRACT always runs. Without changes BASIC runs.
`make test` runs everything; it is the condition for a merge.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
NAMES = ("base", "pgm", "window", "repairer", "queues", "segment", "options", "udp")
BASIC = {f"test_{name}": "basic selection" for name in NAMES}
BASIC_PY = {f"tests/{name}.py": "basic selection" for name in ("api/test_messages", "monitor/test_segment")}
CONTRACT = [
    f"tests/contract/test_{name}.py"
    for name in ("bootstrap", "catalogue_complete", "floors", "generated_files", "house", "include_order")
]
SLOW_C = {"test_tcp", "sim_blame", "sim_reports"}  # 10 to 30 seconds each
SLOW = ("bench", "contract", "e2e", "faults", "fuzz", "history", "hostile", "interop", "lab")
MOST = 8  # Python test files
INCLUDE = re.compile(r'^\s*#\s*include\s*["<]([^">]+\.h)[">]', re.MULTILINE)
ROOTS = ("engine/core/", "engine/lab/", "engine/include/", "tests/engine/")
"""Folders where the compiler looks for headers. A header is known by its path from one of them."""

BEHIND_API = ("io", "options", "queue", "runtime")  # rooms that programs reach through <heliograph/...>


def changes(top: Path) -> list[str]:
    """Files that differ from the point where the branch left main, with files that git does not track yet."""

    def git(*arguments: str) -> list[str]:
        return subprocess.run(["git", *arguments], cwd=top, capture_output=True, text=True).stdout.split()

    base = git("merge-base", "main", "HEAD") or ["HEAD"]
    return sorted({*git("diff", "--name-only", base[0]), *git("ls-files", "--others", "--exclude-standard")})


def included_name(name: str) -> str:
    """The name by which sources include a file."""
    return name.removeprefix(next((root for root in ROOTS if name.startswith(root)), ""))


def is_reached(name: str, included: Iterable[str]) -> bool:
    """Whether a change of the file may change a program with these headers: for a source, with one of its room."""
    file = Path(included_name(name))
    if file.suffix == ".c" and file.parent != Path():
        rooms = {Path(header).parent.name for header in included}
        return file.parent.name in rooms or (file.parent.name in BEHIND_API and "heliograph" in rooms)
    return file.with_suffix(".h").as_posix() in included


def closure(text: str, headers: Mapping[str, str]) -> set[str]:
    """Names of the headers that a source includes, directly or through headers."""
    found: set[str] = set()
    waiting = INCLUDE.findall(text)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += INCLUDE.findall(headers.get(name, ""))
    return found


def c_tests(changed: Iterable[str], tests: Mapping[str, str], headers: Mapping[str, str]) -> dict[str, str]:
    """Chosen C tests, each with the changed file that chose it. A slow test is chosen only if it changed."""
    chosen: dict[str, str] = {}
    included = {test: closure(text, headers) for test, text in tests.items()}
    for name in (name for name in changed if name.endswith((".c", ".h"))):
        for test in tests:
            if Path(name).stem == test or (is_reached(name, included[test]) and test not in SLOW_C):
                chosen.setdefault(test, name)
    return chosen


def python_tests(changed: Iterable[str], tests: Mapping[str, str]) -> dict[str, str]:
    """Chosen Python tests, each with the changed file that chose it."""
    chosen: dict[str, str] = {}
    for name in (name for name in changed if name.endswith(".py")):
        package, _, module = name.removesuffix(".py").removesuffix("/__init__").replace("/", ".").rpartition(".")
        package = re.escape(f"heliograph.{package}".rstrip("."))
        used = re.compile(rf"\b{package}\.{module}\b|^from {package} import .*\b{module}\b", re.MULTILINE)
        for test, text in tests.items():
            if name == test or used.search(text):
                chosen.setdefault(test, name)
    return chosen


def texts(*patterns: str) -> dict[Path, str]:
    """Texts of the files that fit the patterns, by their paths in the repository."""
    return {
        path.relative_to(TOP): path.read_text(encoding="utf-8")
        for pattern in patterns
        for path in sorted(TOP.glob(pattern))
    }


def main() -> int:
    """Choose, build and run."""
    changed = changes(TOP)
    headers = {included_name(str(path)): text for path, text in texts("engine/**/*.h", "tests/engine/*.h").items()}
    programs = {path.stem: text for path, text in texts("tests/engine/test_*.c", "tests/sim/*.c").items()}
    fast = {str(path): text for path, text in texts("tests/*/test_*.py").items() if path.parts[1] not in SLOW}
    in_c = c_tests(changed, programs, headers) or BASIC
    in_python = python_tests(changed, fast) or BASIC_PY
    for test, reason in [*in_c.items(), *list(in_python.items())[:MOST]]:
        print(f"quick: {test}: {reason}")
    for test in list(in_python)[MOST:]:
        print(f"quick: {test}: left out, at most {MOST} Python files run")
    print(f"quick: {len(CONTRACT)} contract tests: always", flush=True)
    match = f"^({'|'.join(in_c)})$"
    commands = [
        ["sh", "deploy/bootstrap/native.sh", "build/release"],
        ["ctest", "--test-dir", "build/release", "--output-on-failure", "--no-tests=error", "-j2", "-R", match],
        [sys.executable, "-m", "pytest", "-q", "-n2", "--dist=loadfile", *CONTRACT, *list(in_python)[:MOST]],
    ]
    return next((1 for command in commands if subprocess.run(command, cwd=TOP).returncode != 0), 0)


if __name__ == "__main__":
    sys.exit(main())

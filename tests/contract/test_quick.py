"""The choice of `make test-quick`: what a change reaches, and nothing else."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
sys.path.append(str(TOP / "deploy/bootstrap"))

import quick  # noqa: E402

PROGRAMS = {
    "test_a": '#include "pair.h"\n',
    "test_b": '#include "wire/b.h"\n',
    "test_api": "#include <heliograph/api.h>\n",
    "test_tcp": '#include "pair.h"\n',
}
HEADERS = {
    "pair.h": '#include "send/a.h"\n',
    "send/a.h": '#include "send/c.h"\n',
    "send/c.h": '#include "send/a.h"\n',
    "receive/a.h": "",
    "wire/b.h": "",
    "heliograph/api.h": "",
}
PYTHON = {
    "tests/monitor/test_one.py": "from heliograph.monitor import rates, window\n",
    "tests/monitor/test_two.py": "from heliograph.monitor.rates import Rate\n",
    "tests/monitor/test_three.py": "import heliograph.monitor.rates_of_all\n",
}


@pytest.mark.parametrize(
    ("changed", "chosen"),
    [
        ("engine/core/send/a.c", {"test_a"}),
        ("engine/core/send/c.h", {"test_a"}),
        ("engine/core/send/inside.c", {"test_a"}),  # a source of the room
        ("engine/core/receive/a.h", set()),  # another header of the same name
        ("engine/core/receive/a.c", set()),
        ("engine/core/wire/b.h", {"test_b"}),
        ("engine/include/heliograph/api.h", {"test_api"}),
        ("engine/core/runtime/lane.c", {"test_api"}),
        ("tests/engine/pair.c", {"test_a"}),
        ("tests/engine/test_tcp.c", {"test_tcp"}),
        ("engine/README.md", set()),
    ],
)
def test_a_c_test_is_chosen_by_what_it_includes(changed: str, chosen: set[str]) -> None:
    assert quick.c_tests([changed], PROGRAMS, HEADERS) == dict.fromkeys(chosen, changed)


def test_a_python_test_is_chosen_by_what_it_imports() -> None:
    changed = ["monitor/rates.py", "tests/monitor/test_three.py"]
    assert quick.python_tests(changed, PYTHON) == dict(zip(PYTHON, [changed[0], changed[0], changed[1]], strict=True))
    assert quick.python_tests(["monitor/window.py"], PYTHON).keys() == {"tests/monitor/test_one.py"}


def test_every_fixed_choice_exists() -> None:
    assert all((TOP / path).exists() for path in [*quick.CONTRACT, *quick.BASIC_PY])
    assert all((TOP / f"tests/engine/{name}.c").exists() for name in quick.BASIC)
    assert all(list(TOP.glob(f"tests/*/{name}.c")) for name in quick.SLOW_C)


def test_changes_since_main_and_new_files_are_found(tmp_path: Path) -> None:
    def git(*arguments: str) -> None:
        settings = ["-c", "user.name=n", "-c", "user.email=e@example.org"]
        subprocess.run(["git", *settings, *arguments], cwd=tmp_path, check=True, capture_output=True)

    git("init", "-b", "main")
    for name in ("old", "committed", "edited"):
        (tmp_path / name).write_text("1", encoding="utf-8")
    git("add", ".")
    git("commit", "-m", "start")
    git("checkout", "-b", "branch")
    (tmp_path / "committed").write_text("2", encoding="utf-8")
    git("commit", "-am", "change")
    (tmp_path / "edited").write_text("2", encoding="utf-8")
    (tmp_path / "new").write_text("1", encoding="utf-8")
    assert quick.changes(tmp_path) == ["committed", "edited", "new"]

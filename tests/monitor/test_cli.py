"""The command line: help, suggestions, and mistakes told in one line."""

from __future__ import annotations

import argparse
import subprocess
import sys
from importlib.metadata import EntryPoint, version
from pathlib import Path

import pytest

from heliograph import monitor
from heliograph.monitor.cli import GROUP, main
from heliograph.monitor.errors import UserError
from tests.fleet import sample_fleet


def _point(name: str, value: str) -> EntryPoint:
    return EntryPoint(name, value, GROUP)


def _adds(name: str, error: BaseException | None) -> argparse.Namespace:
    """A stand-in for a command whose run raises `error`."""

    def command(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
        def run(_: argparse.Namespace) -> int:
            if error is not None:
                raise error
            print("ran")
            return 7

        subparsers.add_parser(name, help=f"does {name}").set_defaults(run=run)

    return argparse.Namespace(command=command)


class _Engine:
    """Stands for the module of the engine's errors."""

    class Error(Exception):
        pass


works = _adds("works", None)
refuses = _adds("refuses", UserError("the folder is not there"))
interrupted = _adds("interrupted", KeyboardInterrupt())
engine_error = _adds("engine_error", _Engine.Error("the port is in use"))
bug = _adds("bug", ZeroDivisionError("a bug"))
lazy = _adds("lazy", ModuleNotFoundError("No module named 'dash'", name="dash"))
lost = _adds("lost", ModuleNotFoundError("No module named 'mine'", name="mine"))

COMMANDS = [
    _point(name, f"{__name__}:{name}.command")
    for name in ("works", "refuses", "interrupted", "engine_error", "bug", "lazy", "lost")
]
BROKEN = [
    _point("live", "tests.monitor.no_such_place:command"),
    _point("nothing", f"{__name__}:nothing_here"),
]


def test_a_command_runs_and_its_code_is_the_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["works"], COMMANDS) == 7
    assert capsys.readouterr().out == "ran\n"


def test_without_arguments_the_help_teaches(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([], COMMANDS) == 0
    out = capsys.readouterr().out
    assert "heliograph sub" in out
    assert "does works" in out
    assert "HELIOGRAPH_SEGMENT_DIR" in out


def test_the_help_lists_commands_that_cannot_be_loaded_with_the_reason(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([], COMMANDS + BROKEN) == 0
    assert "not available" in capsys.readouterr().out


def test_an_unknown_command_is_answered_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["wroks"], COMMANDS) == 2
    assert capsys.readouterr().err == "heliograph: unknown command 'wroks'; did you mean 'works'?\n"
    assert main(["zzz"], COMMANDS) == 2
    assert "--help" in capsys.readouterr().err


def test_mistakes_of_users_are_one_line_and_exit_2(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["refuses"], COMMANDS) == 2
    assert capsys.readouterr().err == "heliograph: the folder is not there\n"
    monkeypatch.setitem(sys.modules, "heliograph.engine.errors", _Engine)
    assert main(["engine_error"], COMMANDS) == 2
    assert capsys.readouterr().err == "heliograph: the port is in use\n"


def test_a_bug_is_not_hidden() -> None:
    with pytest.raises(ZeroDivisionError):
        main(["bug"], COMMANDS)
    with pytest.raises(ModuleNotFoundError):
        main(["lost"], COMMANDS)


def test_a_missing_extra_is_named_with_what_to_install(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lazy"], COMMANDS) == 2
    assert "pip install 'heliograph[live]'" in capsys.readouterr().err


def test_a_command_that_cannot_be_loaded_is_told_without_a_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["live"], BROKEN) == 2
    assert "'live' cannot be loaded" in capsys.readouterr().err
    assert main(["nothing"], BROKEN) == 2
    assert "nothing_here" in capsys.readouterr().err


def test_an_interrupt_is_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["interrupted"], COMMANDS) == 130
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "")


def test_the_version_is_the_products(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"heliograph {version('heliograph')}\n"


def test_a_reader_that_goes_away_ends_the_command_quietly(segments: Path) -> None:
    sample_fleet(segments)
    process = subprocess.Popen(
        [sys.executable, "-m", "heliograph.monitor.cli", "stats", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.wait(30) == 141
    assert process.stderr.read() == b""
    process.stderr.close()


def test_the_front_door_loads_no_heavy_library() -> None:
    heavy = ("dash", "pyspark", "pyarrow", "pandas", "grafana_api", "numpy")
    code = f"import heliograph.monitor.cli, heliograph.monitor, sys; print([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_the_shop_window_shows_what_it_names() -> None:
    for name in monitor.__all__:
        assert getattr(monitor, name).__name__ == name
    assert dir(monitor) == sorted(monitor.__all__)
    with pytest.raises(AttributeError):
        monitor.no_such_thing  # noqa: B018 (the access is the test)

"""Histories and spools in an object store are read as if they were local, also from a store that fails."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path, PurePosixPath

import pytest

from heliograph.monitor.errors import UserError
from heliograph.monitor.history import remote
from heliograph.monitor.history.actions import place
from heliograph.monitor.history.days import compact
from heliograph.monitor.history.hours import read_history
from heliograph.monitor.history.remote import RemotePath, globbed, opened
from heliograph.monitor.history.retention import prune
from heliograph.monitor.history.rollup import Threads, rollup
from tests.history.object_store import FailingProxy, forget_connections, store_of_commands
from tests.history.recordings import sample_spool
from tests.history.test_commands import run
from tests.history.test_days import NO_AGE

BUCKET = "latency"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A spool, and a history of two days, one of them pruned."""
    top = tmp_path_factory.mktemp("local")
    sample_spool(top / "spool", files=2, hours=16, per_file=4)
    rollup(Threads(), top / "spool", top / "history")
    compact(top / "history", NO_AGE)
    first = min(path.name for path in (top / "history" / "1d").iterdir())
    end = datetime.fromisoformat(first.removeprefix("date=")).replace(tzinfo=UTC) + timedelta(days=1)
    prune(top / "history", NO_AGE, now=end)
    return top / "spool", top / "history"


@pytest.fixture(scope="module")
def store(made: tuple[Path, Path]) -> Iterator[tuple[FailingProxy, str]]:
    """The same in a store; yields its proxy and the address of the bucket."""
    pytest.importorskip("moto.server", reason="moto is not installed")
    with store_of_commands(BUCKET) as proxy:
        client = proxy.client()
        for folder in made:
            for path in sorted(folder.rglob("*")):
                if path.is_file():
                    key = f"{folder.name}/{path.relative_to(folder)}"
                    client.put_object(Bucket=BUCKET, Key=key, Body=path.read_bytes())
        yield proxy, f"s3://{BUCKET}"


COMMANDS = (
    ("history", "calendar", "--json"),
    ("spool", "merge", "--hourly", "--json"),
    ("spool", "compare", "--a", "topic=PRICES.A", "--b", "topic=PRICES.B", "--json"),
    ("spool", "verify"),
)


def test_reports_and_studies_of_a_store_that_fails_are_those_of_the_directory(
    made: tuple[Path, Path], store: tuple[FailingProxy, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    proxy, bucket = store
    local = {path.name: path for path in made}
    proxy.every, before = 10, proxy.failed
    try:
        for kind, action, *options in COMMANDS:
            found = []
            for place_text in (local[kind], f"{bucket}/{kind}"):
                found.append((run(action, f"--{kind}", place_text, *options), capsys.readouterr()))
            assert found[0] == found[1], action
            assert found[0][1].out
        pages = []
        for name, place_text in (("a.html", local["history"]), ("b.html", f"{bucket}/history")):
            assert run("report", "--history", place_text, "--out", tmp_path / name) == 0
            pages.append((tmp_path / name).read_text(encoding="utf-8"))
        assert pages[0] == pages[1]
    finally:
        proxy.every = 0
    assert proxy.failed >= before + 5


def test_a_damaged_or_missing_object_is_named_by_its_address(
    made: tuple[Path, Path], store: tuple[FailingProxy, str], capsys: pytest.CaptureFixture[str]
) -> None:
    proxy, bucket = store
    client = proxy.client()
    history = RemotePath("s3", PurePosixPath(BUCKET, "history"))
    objects = [path for path in globbed(history, "*.parquet", deep=True) if "/1h/" in str(path)]
    key = str(objects[0]).removeprefix(f"{bucket}/")
    whole = objects[0].read_bytes()
    try:
        client.put_object(Bucket=BUCKET, Key=key, Body=b"junk")
        table, broken = read_history(history)
        assert [one.path for one in broken] == [str(objects[0].parent)]
        assert table.num_rows == read_history(made[1])[0].num_rows - 1
        client.delete_object(Bucket=BUCKET, Key=key)
        with pytest.raises(FileNotFoundError):
            opened(str(objects[0]))
        assert run("calendar", "--history", f"{bucket}/history") == 1
        assert f"heliograph: {objects[0].parent}: left out completely" in capsys.readouterr().err
    finally:
        client.put_object(Bucket=BUCKET, Key=key, Body=whole)


def test_a_store_that_has_or_answers_nothing_is_an_error(
    store: tuple[FailingProxy, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy, bucket = store
    monkeypatch.setattr(remote, "ATTEMPTS", 1)
    forget_connections()
    for address in (f"{bucket}/nothing", "s3://no-such-bucket/history"):
        with pytest.raises(UserError, match=f"no history in {address}"):
            run("report", "--history", address)
        with pytest.raises(UserError, match=f"no spool in {address}"):
            run("merge", "--spool", address)
    proxy.every = 1
    try:
        with pytest.raises(UserError, match=f"{bucket}/history/1h cannot be read: "):
            run("report", "--history", f"{bucket}/history")
    finally:
        proxy.every = 0
        forget_connections()


@pytest.mark.parametrize(
    "arguments",
    [
        ("rollup", "--history", "gs://b/h"),
        ("import", "x.hlog", "--spool", "gs://b/s"),
        ("compact", "--history", "hdfs://b/h"),
        ("prune", "--older-than", "1d", "--history", "hdfs://b/h"),
    ],
)
def test_an_action_that_writes_refuses_stores_without_conditional_writes(
    arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        run(*arguments)
    assert f"{arguments[-1]}: this action writes, and " in capsys.readouterr().err


@pytest.mark.parametrize("text", ["ftp://host/x", "s3://", "s3:///x", "s3://b/x?region=y"])
def test_an_address_that_names_no_directory_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match=r"the address of a directory is s3://|directories are paths"):
        place(text)
    assert place("s3://b/x/") == RemotePath("s3", PurePosixPath("b/x"))
    assert place("file:///a%20b") == Path("/a b")

"""Percentile distributions as text: line for line what the Java reference writes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from heliograph.monitor.errors import UserError
from heliograph.monitor.history.files import write_spool
from heliograph.monitor.history.hgrm import distribution, series_line
from heliograph.monitor.history.importer import import_hlog
from heliograph.monitor.history.merge import merge_spool
from heliograph.monitor.history.rollup import Threads, rollup
from heliograph.monitor.history.rows import rows
from heliograph.monitor.model import Histogram
from tests.history.java_reference import distributed, require_java
from tests.history.recordings import NOON, counts_of, interval, latencies
from tests.history.test_commands import run
from tests.history.test_importer import LOGS, plain_line, write

SHAPE = (2, 1, 3_600_000_000_000)

JAVA = """\
       Value     Percentile TotalCount 1/(1-Percentile)

        0.00 0.000000000000          1           1.00
        0.13 0.250000000000         10           1.33
        0.50 0.500000000000         20           2.00
        0.78 0.625000000000         25           2.67
        1.13 0.750000000000         30           4.00
        1.37 0.812500000000         33           5.33
        1.53 0.875000000000         35           8.00
        1.71 0.906250000000         37          10.67
        1.81 0.937500000000         38          16.00
        1.91 0.953125000000         39          21.33
        1.91 0.968750000000         39          32.00
        2.01 0.976562500000         40          42.67
        2.01 1.000000000000         40
#[Mean    =         0.69, StdDeviation   =         0.61]
#[Max     =         2.01, Total count    =           40]
#[Buckets =           35, SubBuckets     =          256]
"""
JAVA_CSV = """\
"Value","Percentile","TotalCount","1/(1-Percentile)"
1.26,0.000000000000,1,1.00
501.76,0.500000000000,20,2.00
1130.50,0.750000000000,30,4.00
1531.90,0.875000000000,35,8.00
1810.43,0.937500000000,38,16.00
1908.74,0.968750000000,39,32.00
2007.04,0.984375000000,40,64.00
2007.04,1.000000000000,40,Infinity
"""
"""Version 2.1.11: outputPercentileDistribution of 1250 * i * i for i from 1 to 40."""


def squares() -> Histogram:
    counts = counts_of([i * i * 1250 for i in range(1, 41)], SHAPE)
    return Histogram(counts, SHAPE[1], SHAPE[2], SHAPE[0])


def test_a_distribution_is_the_text_that_java_writes() -> None:
    assert "\n".join(distribution(squares(), unit="ms", ticks=2)) + "\n" == JAVA
    assert "\n".join(distribution(squares(), unit="us", ticks=1, csv=True)) + "\n" == JAVA_CSV


def test_an_empty_histogram_has_no_steps() -> None:
    lines = list(distribution(Histogram(np.zeros_like(squares().counts), SHAPE[1], SHAPE[2], SHAPE[0])))
    assert lines[1:3] == ["", "#[Mean    =         0.00, StdDeviation   =         0.00]"]
    assert lines[3] == "#[Max     =         0.00, Total count    =            0]"


def test_a_series_is_named_in_one_comment() -> None:
    assert series_line({"instance": "a", "topic": "", "tag": "x, y"}) == "#[instance=a, tag='x, y']"
    assert "\n" not in series_line({"topic": "a\nb"})


def test_distributions_of_logs_are_those_of_the_java_processor(tmp_path: Path) -> None:
    require_java()
    made = write(tmp_path / "made.hlog", *(plain_line(at, latencies(at, 700)) for at in range(3)))
    for log in (made, *sorted(LOGS.glob("jHiccup*.hlog"))):
        import_hlog(log, tmp_path / log.stem)
        (row,) = rows(merge_spool(tmp_path / log.stem, None)[0])
        for unit, ratio in (("ns", 1), ("us", 1_000), ("ms", 1_000_000)):
            assert list(distribution(row.counts(), unit=unit)) == distributed(log, ratio)


def test_the_command_writes_a_file_for_each_series(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    spool, history, plots = tmp_path / "spool", tmp_path / "history", tmp_path / "plots"
    made = [interval(latencies(seq, 50), at_s=1800 * seq, seq=seq, topic="AB/"[seq % 3]) for seq in range(6)]
    made.append(interval([7], seq=6, topic="A", metric="receiver_order_latency"))
    write_spool(spool, made, "s0", 0)
    rollup(Threads(), spool, history)
    assert run("percentiles", "--history", history, "--hgrm", plots, "--metric", "receiver_total_latency") == 0
    names = [f"alpha-{topic}-receiver_total_latency.hgrm" for topic in "AB_"]
    assert sorted(path.name for path in plots.iterdir()) == names
    assert sorted(capsys.readouterr().out.splitlines()) == [f"{plots / name}: 100 values" for name in names]
    lines = (plots / names[0]).read_text().splitlines()
    assert lines[0] == "#[instance=alpha, topic=A, metric=receiver_total_latency]"
    assert lines[-2].endswith("Total count    =          100]")

    of_spool = ("percentiles", "--spool", spool, "--by", "metric", "--unit", "ns", "--ticks", "1")
    assert run(*of_spool, "--select", "from=2025-11-21T13:00") == 0
    out = capsys.readouterr().out.splitlines()
    assert (NOON, out[0], out[3].split()[2:]) == (NOON, "#[metric=receiver_total_latency]", ["1", "1.00"])
    assert out[-2].endswith("Total count    =          200]")
    with pytest.raises(UserError, match="no hour of any metric is selected by 'topic=C'"):
        run("percentiles", "--history", history, "--select", "topic=C")
    with pytest.raises(UserError, match="there is no label color"):
        run("percentiles", "--history", history, "--by", "color")

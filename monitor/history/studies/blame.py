"""Who made messages late: the host, the network, or the transport and the application?

A message is late when its total latency is above a limit, by default the p99 of the sample. Its extra delay is at least
the limit less the median. Each interval's late messages are divided with the records of the same interval:

- **network**: the late ones among the recovered messages, whose packet was lost and repaired. They have a histogram of
  their own, so this count is exact.
- **waited-for**: not recovered, but in order only after a wait as long as the extra delay: it waited for the repair of
  an earlier packet. At most as many as are late.
- **host**: of the rest, as many as come with the host's stops. A host that stops all processes for half the extra
  delay or more in a share of the time should delay this share of the messages (the hiccup histogram is filled so that a
  share of its values is a share of time; half, because a hiccup is measured short by up to its sleep). The worse of the
  receiver's and the senders' hosts counts, as far as they are recorded.
- **transport**: all others: queues, batches, the rate, the sending application. The wait for the receiving application
  (dispatch) is after the total latency.

Host and transport are told apart by coincidence: the rest of an interval is a constant part of its messages and a
multiple of those that its stops should delay. Both are fitted by weighted least squares. The multiple is 1 where stops
delay messages as expected, 0 where they have nothing to do with late messages, however many there are of both, and it
is unknown where all intervals are alike. It counts from 0 to 2. The uncertainty of all shares comes from the circular
block bootstrap of `bootstrap`.

Verdicts: a cause has more than half of the late messages with confidence (network and waited-for, which are both
losses, count together), or ``mixed`` when none of them can have, or ``cannot say``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from heliograph.monitor.history.studies.bootstrap import (
    MIN_BLOCKS,
    RESAMPLES,
    block_length,
    block_weights,
    t_limit,
)
from heliograph.monitor.history.studies.samples import Sample, pairs
from heliograph.monitor.latency import ranks_of

__all__ = ["CAUSES", "HICCUPS", "METRICS", "SENDERS", "TOTAL", "Blamed", "Late", "Share", "blame", "late_of"]

TOTAL = "receiver_total_latency"
RECOVERED = "receiver_total_latency_recovered"
ORDER = "receiver_order_latency"
ORDER_RECOVERED = "receiver_order_latency_recovered"
METRICS = (TOTAL, RECOVERED, ORDER, ORDER_RECOVERED)
HICCUPS = "instance_host_hiccup"
SENDERS = "transmitter_batch_latency"
"""Says on which hosts a topic is sent."""

CAUSES = ("network", "waited-for", "host", "transport")
MIN_LATE = 30
"""Fewest late messages."""
COVERED = 0.9
"""Least part of the late messages in whose intervals hiccups are recorded."""
EXPLAINS = 0.5
"""Part of the extra delay that a hiccup must be as long as; also the share of a cause that is named."""
APART_LEVEL = 3
"""Level of detail at which recovered messages are apart."""

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Late:
    """Late messages of one series by interval."""

    series: Labels
    limit_ns: int
    median_ns: int
    messages: Floats
    late: Floats
    recovered: Floats
    """Late and recovered."""
    waited: Floats
    """Not recovered, with a wait in order as long as the extra delay."""
    stopped: Floats
    """Share of the time in stops of a host, 0 to 1; NaN: not recorded."""
    hosts: tuple[str, ...]
    """Hosts whose stops are known."""
    unknown: tuple[str, ...]
    """Which hosts are not known: ``receiver``, ``senders``."""
    reason: str
    """Why the messages cannot be divided; else empty."""


@dataclass(frozen=True, slots=True)
class Share:
    """One cause."""

    cause: str
    share: float
    """Of the late messages, 0 to 1."""
    low: float
    """Lower end of the 95 % interval."""
    high: float


@dataclass(frozen=True, slots=True)
class Blamed:
    """The causes of one series."""

    of: Late
    shares: tuple[Share, ...]
    """In the order of `CAUSES`; empty when there is a reason."""
    multiple: float
    """Late messages that come with stops, as a multiple of those that stops should cause; NaN: no stops."""
    blocks: int
    verdict: str
    """``host``, ``network``, ``transport``, ``mixed`` or ``cannot say``."""
    reason: str
    """Why it cannot say; else empty."""


# -- from rows to counts ----------------------------------------------------------------------------------------------


def late_of(
    received: pa.Table, hiccups: pa.Table, senders: pa.Table, limit_ns: int | None, by: Iterable[str]
) -> list[Late]:
    """Return the late messages of each series.

    Args:
        received: Rows of `METRICS`.
        hiccups: Rows of `HICCUPS`, one per period, instance and host.
        senders: Rows of `SENDERS`, with their hosts.
        limit_ns: Messages above are late; None: the p99 of each series.
        by: Labels that name a series.
    """
    names = list(by)
    found = []
    keys = received.select(names).group_by(names).aggregate([]).to_pylist() if received.num_rows else []
    for labels in sorted(keys, key=lambda one: [str(one[name]) for name in names]):
        mine = _where(received, labels)
        totals = _sample(_where(mine, {"metric": TOTAL}))
        if totals is None:
            continue
        topic = {name: value for name, value in labels.items() if name == "topic"}
        series = tuple((name, str(labels[name])) for name in names)
        found.append(_late(series, mine, totals, hiccups, _hosts(_where(senders, topic)), limit_ns))
    return found


def _late(
    series: Labels, mine: pa.Table, totals: Sample, hiccups: pa.Table, sending: set[str], limit_ns: int | None
) -> Late:
    pooled = totals.counts.sum(axis=0)
    cumulated = np.cumsum(pooled)
    ranks = ranks_of([0.5, 0.99], np.array([round(float(cumulated[-1]))]))[0]
    median, p99 = (int(totals.values[(cumulated >= rank).argmax()]) for rank in ranks)
    limit = p99 if limit_ns is None else limit_ns
    extra = limit - median
    starts = totals.starts_us
    late = _above(starts, totals, limit)
    recovered = np.minimum(late, _above(starts, _sample(_where(mine, {"metric": RECOVERED})), limit))
    waits = _above(starts, _sample(_where(mine, {"metric": ORDER})), extra)
    waits -= _above(starts, _sample(_where(mine, {"metric": ORDER_RECOVERED})), extra)
    receiving = _hosts(_where(mine, {"metric": TOTAL}))
    known = _hosts(hiccups)
    stopped = np.full(starts.size, np.nan)
    for host in sorted((receiving | sending) & known):
        stopped = np.fmax(stopped, _stopped(starts, _where(hiccups, {"host": host}), extra))
    reason = ""
    if extra <= 0:
        reason = "the limit is not above the median: most messages are late"
    elif _level(mine) < APART_LEVEL:
        reason = f"recovered messages are apart at level {APART_LEVEL}, not at level {_level(mine)}"
    unknown = [name for name, hosts in (("receiver", receiving), ("senders", sending)) if not hosts & known]
    return Late(
        series,
        limit,
        median,
        totals.counts.sum(axis=1),
        late,
        recovered,
        np.clip(waits, 0.0, late - recovered),
        stopped,
        tuple(sorted((receiving | sending) & known)),
        tuple(unknown),
        reason,
    )


def _where(table: pa.Table, labels: Mapping[str, object]) -> pa.Table:
    mask = pa.chunked_array([np.ones(table.num_rows, dtype=bool)])
    for name, value in labels.items():
        mask = pc.and_(mask, pc.equal(table[name], value))
    return table.filter(mask)


def _hosts(table: pa.Table) -> set[str]:
    return {host for host in pc.unique(table["host"]).to_pylist() if host}


def _level(table: pa.Table) -> int:
    """Return the lowest level of detail; 0 when a row has none."""
    return min(int(level) if level.isdigit() else 0 for level in pc.unique(table["level"]).to_pylist())


def _sample(table: pa.Table) -> Sample | None:
    """Return all rows as one sample, of the layout with most values."""
    if not table.num_rows:
        return None
    found = [pair.a for pair in pairs(table, table.slice(0, 0), ("instance", "topic", "tag")) if pair.a is not None]
    return max(found, key=lambda one: one.n)


def _above(starts: Integers, sample: Sample | None, limit_ns: int) -> Floats:
    """Return the values above a limit in each of the intervals."""
    result = np.zeros(starts.size)
    if sample is not None:
        known = np.isin(sample.starts_us, starts)
        above = sample.counts[:, sample.values > limit_ns].sum(axis=1)
        result[np.searchsorted(starts, sample.starts_us[known])] = above[known]
    return result


def _stopped(starts: Integers, hiccups: pa.Table, extra_ns: int) -> Floats:
    """Return the share of the time in hiccups of half the extra delay and more; NaN where none are recorded."""
    sample = _sample(hiccups)
    result = np.full(starts.size, np.nan)
    if sample is not None:
        known = np.isin(sample.starts_us, starts)
        above = sample.counts[:, sample.values > extra_ns * EXPLAINS].sum(axis=1) / sample.counts.sum(axis=1)
        result[np.searchsorted(starts, sample.starts_us[known])] = above[known]
    return result


# -- shares -----------------------------------------------------------------------------------------------------------


def blame(late: Late, seed: int = 0) -> Blamed:
    """Divide the late messages of a series among the causes.

    Args:
        late: As `late_of` returns it.
        seed: Of the bootstrap; equal seeds give equal results.
    """
    reason = late.reason or _thin(late)
    if reason:
        return Blamed(late, (), math.nan, 0, "cannot say", reason)
    rest = late.late - late.recovered - late.waited
    due = np.nan_to_num(late.messages * late.stopped)
    sums = _sums(late, rest, due)
    shares, multiple = _shares(sums.sum(axis=0)[None, :])
    fitted, usual = multiple[0], _usual(sums.sum(axis=0), float(multiple[0]))
    # How each interval moves the shares, and the multiple.
    of_share = sums[:, :3] - shares[0, :3] * late.late[:, None]
    residual = sums[:, 5] * (due - due.mean()) * (rest - usual * late.messages - fitted * due)
    length = max(block_length(column) for column in (*of_share.T, residual))
    blocks = late.late.size // length
    filled = int((np.add.reduceat(late.late, np.arange(0, late.late.size, length)) > 0).sum())
    if min(blocks, filled) < MIN_BLOCKS:
        reason = f"late messages are in {min(blocks, filled)} independent stretches of time; {MIN_BLOCKS} are needed"
        return Blamed(late, (), math.nan, blocks, "cannot say", reason)
    weights = block_weights(np.random.default_rng(seed), late.late.size, length, RESAMPLES)
    drawn, _ = _shares(weights @ sums)
    reach = t_limit(blocks - 1) * np.std(drawn, axis=0, ddof=1)
    low, high = np.clip(shares[0] - reach, 0.0, 1.0), np.clip(shares[0] + reach, 0.0, 1.0)
    each = zip((*CAUSES, "network"), shares[0], low, high, strict=True)
    found = [Share(cause, float(share), float(least), float(most)) for cause, share, least, most in each]
    verdict, reason = _decide(found[-1], *found[2:4])
    return Blamed(late, tuple(found[:-1]), float(fitted) if due.any() else math.nan, blocks, verdict, reason)


def _sums(late: Late, rest: Floats, due: Floats) -> Floats:
    """Return what shares are computed from, one row per interval; rows add."""
    usual = rest.sum() / late.messages.sum()
    # Counts vary as much as their mean.
    weight = 1.0 / np.maximum(1e-9, usual * late.messages + due)
    n = late.messages
    squares = (weight * n * n, weight * n * due, weight * due * due, weight * n * rest, weight * due * rest)
    return np.stack([late.recovered, late.waited, rest, late.late, due, weight, *squares], axis=1)


def _shares(sums: Floats) -> tuple[Floats, Floats]:
    """Return the shares of `CAUSES` and of all losses, and the multiple, for each row of sums."""
    recovered, waited, rest, late, due, _, nn, nd, dd, ny, dy = sums.T
    determinant = nn * dd - nd * nd
    is_known = determinant > 1e-9 * nn * dd
    multiple = np.where(is_known, (nn * dy - nd * ny) / np.where(is_known, determinant, 1.0), 0.0)
    multiple = np.clip(multiple, 0.0, 1 / EXPLAINS)
    host = np.minimum(rest, multiple * due)
    total = np.maximum(1.0, late)
    return np.stack([recovered, waited, host, rest - host, recovered + waited], axis=1) / total[:, None], multiple


def _usual(sums: Floats, multiple: float) -> float:
    """Return the part of the messages that is late without stops."""
    return float((sums[9] - multiple * sums[7]) / max(1e-9, sums[6]))


def _thin(late: Late) -> str:
    total = late.late.sum()
    if total < MIN_LATE:
        return f"{total:,.0f} late messages; {MIN_LATE} are needed"
    if "receiver" in late.unknown:
        return "no hiccups of the receiver's host are recorded (option hiccup_interval): host or transport"
    seen = late.late[~np.isnan(late.stopped)].sum() / total
    if seen < COVERED:
        return f"hiccups are recorded for {seen:.0%} of the late messages"
    stopped = late.stopped[~np.isnan(late.stopped)]
    if stopped.size and stopped.min() > 0 and np.ptp(stopped) < 1e-3 * stopped.max():
        return "the host stops as much in each interval: host or transport"
    return ""


def _decide(*causes: Share) -> tuple[str, str]:
    for one in causes:
        if one.low > EXPLAINS:
            return one.cause, ""
    if all(one.high < EXPLAINS for one in causes):
        return "mixed", ""
    possible = " or ".join(one.cause for one in causes if one.high >= EXPLAINS)
    return "cannot say", f"the intervals leave open whether {possible} has more than half"

"""A skipped test fails the run where every test can run.

With ``HELIOGRAPH_STRICT=1`` (set by ``.ci/run``) a test that skips itself is reported as failed, unless its reason is
in `ALLOWED`: what no machine of ours can offer, or what is not part of the repository.
"""

from __future__ import annotations

import os
import re
from collections.abc import Generator

import pytest

__all__ = ["ALLOWED", "is_allowed", "pytest_runtest_makereport"]

ALLOWED = (
    r"\bdata set\b|\bnot part of the project\b",  # optional recordings and descriptions kept outside the repository
    r"\bGrafana server\b",  # none can be had; the test takes a URL and a token
    r"\bneeds root\b|\bnot permitted\b|\bpermission\b",  # namespaces and nftables
)


def is_allowed(reason: str) -> bool:
    """Whether a skip with this reason is accepted in strict mode."""
    return any(re.search(pattern, reason, re.IGNORECASE) for pattern in ALLOWED)


def _reason(report: pytest.TestReport) -> str:
    if isinstance(report.longrepr, tuple):
        return report.longrepr[2].removeprefix("Skipped: ")
    return str(report.longrepr)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Turn a skip into a failure that keeps its reason."""
    report = yield
    if os.environ.get("HELIOGRAPH_STRICT") == "1" and report.skipped and not hasattr(report, "wasxfail"):
        reason = _reason(report)
        if not is_allowed(reason):
            report.outcome = "failed"
            report.longrepr = f"{item.nodeid} skipped in strict mode: {reason}"
    return report

"""The picture of a study's page, `deploy/images/study.png`: `make picture-study`.

The study names the stage that moved between two builds, from generated intervals. The picture carries the hash of its
page (PNG text `page`), so that a test without a browser knows when the page has changed.
"""

from __future__ import annotations

import hashlib
import struct
import sys
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

from heliograph.monitor.history.files import write_spool
from tests.history.test_commands import run
from tests.history.test_stages import rows_of

__all__ = ["page", "page_hash", "texts"]

PICTURE = Path(__file__).resolve().parents[2] / "deploy/images/study.png"
_KEY = b"page"


def page(folder: Path) -> str:
    """Return the page of the study, which is made in an empty folder."""
    for number, (build, network) in enumerate((("4.1", 30.0), ("4.2", 33.0))):
        rows = rows_of(build, 24 * number, network=network, recovered=2)
        write_spool(folder / "spool", rows, build, number)
    with redirect_stdout(StringIO()):
        out = folder / "study.html"
        run("stages", "--spool", folder / "spool", "--a", "build=4.1", "--b", "build=4.2", "--out", out)
    return out.read_text(encoding="utf-8")


def page_hash(html: str) -> str:
    """Return the hash of a page."""
    return hashlib.sha256(html.encode("utf-8")).hexdigest()


def texts(png: bytes) -> Iterator[tuple[bytes, str]]:
    """Yield the texts of a picture by their keys.

    Raises:
        ValueError: It is no PNG.
    """
    if png[:8] != b"\x89PNG\r\n\x1a\n":
        raise ValueError("no PNG")
    at = 8
    while at + 12 <= len(png):
        (length,) = struct.unpack(">I", png[at : at + 4])
        if png[at + 4 : at + 8] == b"tEXt":
            key, _, text = png[at + 8 : at + 8 + length].partition(b"\0")
            yield key, text.decode("latin-1")
        at += 12 + length


def _with_text(png: bytes, key: bytes, text: str) -> bytes:
    """Return a picture with a text behind its head."""
    body = b"tEXt" + key + b"\0" + text.encode("latin-1")
    chunk = struct.pack(">I", len(body) - 4) + body + struct.pack(">I", zlib.crc32(body))
    head = 8 + 12 + 13  # signature and IHDR
    return png[:head] + chunk + png[head:]


def main() -> None:
    """Write the picture."""
    from tests.dashboards.browsing import chromium
    from tests.dashboards.pictures import picture

    with tempfile.TemporaryDirectory() as place:
        html = page(Path(place))
        with chromium(Path(place) / "profile") as driver:
            png = picture(driver, (Path(place) / "study.html").as_uri(), "light", 1180)
    PICTURE.write_bytes(_with_text(png, _KEY, page_hash(html)))
    print(PICTURE)


if __name__ == "__main__":
    sys.exit(main())

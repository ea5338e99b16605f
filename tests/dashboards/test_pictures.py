"""The pictures of the live pages are those of the present pages, and each page has them."""

from __future__ import annotations

from pathlib import Path

from heliograph.dashboards.live.pages.head import PAGES as ADDRESSES
from tests.dashboards.pictures import INPUTS, LOOKS, PAGES, file_of, inputs

IMAGES = Path(__file__).resolve().parents[2] / "deploy/images"


def test_every_page_has_a_picture_in_every_look_and_no_other_is_kept() -> None:
    assert {f"/{path.partition('?')[0]}" for path in PAGES.values()} == set(ADDRESSES)
    wanted = {file_of(name, look) for name in PAGES for look in LOOKS}
    assert {path.name for path in IMAGES.glob("live*.png")} == wanted


def test_the_pictures_are_made_from_the_present_pages() -> None:
    assert (IMAGES / INPUTS).read_text() == inputs() + "\n", "run: make pictures"

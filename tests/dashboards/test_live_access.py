"""Access to the live page: tokens, sessions, origins and headers, over WSGI and with the running command."""

from __future__ import annotations

import http.client
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest
from werkzeug.test import Client, TestResponse

from heliograph.dashboards.live.access import SESSION_SECONDS, Access, content_policy, read_token, with_headers
from heliograph.dashboards.live.app import create
from heliograph.monitor.errors import UserError
from heliograph.monitor.web import AllowedHosts, guarded
from tests.dashboards.browsing import first_line, start
from tests.dashboards.views import Fleet
from tests.ports import free_port

TOKEN = b"0123456789abcdef-token"
HOST = "localhost:8050"
OWN = {"Origin": f"http://{HOST}"}
BEARER = {"Authorization": f"Bearer {TOKEN.decode()}"}
FORM = "application/x-www-form-urlencoded"


class Page:
    """The application behind its checks, and the time of its sessions."""

    def __init__(self, fleet: Fleet, token: bytes | None) -> None:
        self.seconds = 1_800_000_000.0
        app = create(fleet.store)
        checked = guarded(Access(app.server, token, lambda: self.seconds), AllowedHosts("127.0.0.1"))
        self.client = Client(with_headers(checked, content_policy(app.csp_hashes())))

    def ask(self, path: str, method: str = "GET", host: str = HOST, **how: object) -> TestResponse:
        return self.client.open(path, method=method, base_url=f"http://{host}/", **how)

    def sign_in(self, token: bytes = TOKEN, back: str = "/") -> TestResponse:
        body = urlencode({"token": token.decode(), "next": back})
        return self.ask("/login", "POST", headers=OWN, data=body, content_type=FORM)


@pytest.fixture
def page(fleet: Fleet) -> Iterator[Page]:
    fleet.at(0)
    return Page(fleet, None)


@pytest.fixture
def locked(fleet: Fleet) -> Page:
    fleet.at(0)
    return Page(fleet, TOKEN)


PATHS = (
    "/",
    "/live/view",
    "/_dash-layout",
    "/_dash-dependencies",
    "/assets/state.js",
    "/_dash-component-suites/dash/deps/x.js",
)


@pytest.mark.parametrize("path", [*PATHS, "/nowhere"])
def test_every_answer_has_the_security_headers(path: str, page: Page) -> None:
    found = page.ask(path).headers
    policy = dict(part.split(" ", 1) for part in found["Content-Security-Policy"].split("; "))
    assert policy["default-src"] == policy["base-uri"] == policy["frame-ancestors"] == "'none'"
    assert "unsafe" not in policy["script-src"]
    assert not re.search(r"https?:|\*", found["Content-Security-Policy"])
    assert found["X-Frame-Options"] == "DENY"
    assert found["X-Content-Type-Options"] == "nosniff"
    assert found["Referrer-Policy"] == "same-origin"


def test_refusals_have_the_security_headers(locked: Page) -> None:
    for answer in (locked.ask("/"), locked.ask("/", host="evil.example"), locked.ask("/", "POST")):
        assert answer.status_code in (401, 403)
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]


def test_another_host_name_is_refused(page: Page) -> None:
    assert page.ask("/", host="evil.example").status_code == 403
    assert page.ask("/").status_code == 200


CALLBACK = "/_dash-update-component"
FOREIGN = {
    "no origin": {},
    "another site": {"Origin": "http://evil.example"},
    "an opaque origin": {"Origin": "null"},
    "another port": {"Origin": "http://localhost:9999"},
    "a longer name": {"Origin": f"http://{HOST}.evil.example"},
    "a user name": {"Origin": f"http://{HOST}@evil.example"},
    "not an address": {"Origin": "http://[::1"},
    "a file": {"Origin": f"file://{HOST}"},
}


@pytest.mark.parametrize("origin", FOREIGN)
@pytest.mark.parametrize("path", [CALLBACK, "/", "/login"])
def test_a_post_from_elsewhere_is_refused(path: str, origin: str, page: Page, locked: Page) -> None:
    for one in (page, locked):
        answer = one.ask(path, "POST", headers=FOREIGN[origin], json={})
        assert (answer.status_code, "Origin and Host" in answer.text) == (403, True)


def test_a_post_of_the_page_reaches_dash_also_behind_tls(page: Page) -> None:
    for origin in (f"http://{HOST}", f"https://{HOST}"):
        answer = page.ask(CALLBACK, "POST", headers={"Origin": origin}, json={"output": "x"})
        assert answer.status_code not in (401, 403)


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"])
def test_other_methods_are_refused(method: str, page: Page) -> None:
    assert page.ask("/", method, headers=OWN).status_code == 405


@pytest.mark.parametrize("path", [*PATHS, "/live/stream"])
def test_without_the_token_nothing_is_shown(path: str, locked: Page) -> None:
    answer = locked.ask(path)
    assert answer.status_code == 401
    assert answer.headers["WWW-Authenticate"] == "Bearer"
    wrong = {"Authorization": "Bearer " + "0" * 22}
    assert locked.ask(path, headers=wrong).status_code == 401
    assert locked.ask(CALLBACK, "POST", headers=OWN | wrong, json={}).status_code == 401


def test_a_program_reads_with_the_token_and_needs_no_origin(locked: Page) -> None:
    assert locked.ask("/_dash-layout", headers=BEARER).status_code == 200
    assert locked.ask(CALLBACK, "POST", headers=BEARER, json={"output": "x"}).status_code not in (401, 403)


def test_a_reader_signs_in_and_returns_to_the_address_asked_for(locked: Page) -> None:
    form = locked.ask("/lab?windows=all", headers={"Accept": "text/html"})
    assert form.status_code == 401
    assert 'name="next" value="/lab?windows=all"' in form.text
    answer = locked.sign_in(back="/lab?windows=all")
    assert (answer.status_code, answer.headers["Location"]) == (303, "/lab?windows=all")
    cookie = answer.headers["Set-Cookie"]
    assert {"HttpOnly", "SameSite=Lax", "Path=/"} <= set(cookie.split("; "))
    assert TOKEN.decode() not in cookie
    assert locked.ask("/_dash-layout").status_code == 200


def test_a_session_ends(locked: Page) -> None:
    locked.sign_in()
    locked.seconds += SESSION_SECONDS - 1
    assert locked.ask("/").status_code == 200
    locked.seconds += 2
    assert locked.ask("/").status_code == 401


def test_a_session_survives_a_restart_and_not_another_token(fleet: Fleet, locked: Page) -> None:
    name, _, value = locked.sign_in().headers["Set-Cookie"].split(";")[0].partition("=")
    for token, status in ((TOKEN, 200), (b"another-token-entirely", 401)):
        restarted = Page(fleet, token)
        restarted.client.set_cookie(name, value, domain="localhost")
        assert restarted.ask("/").status_code == status


@pytest.mark.parametrize("value", ["", ".", "1.x", "99999999999.", "99999999999.aaaa", "٣.x", "9" * 400 + ".x", "-1.x"])
def test_a_forged_session_is_refused(value: str, locked: Page) -> None:
    locked.client.set_cookie("heliograph-8050", value, domain="localhost")
    assert locked.ask("/").status_code == 401


def test_a_wrong_token_shows_the_form_again(locked: Page) -> None:
    answer = locked.sign_in(b"not the token at all")
    assert (answer.status_code, "This is not the token." in answer.text) == (401, True)
    assert "Set-Cookie" not in answer.headers


@pytest.mark.parametrize("back", ["//evil.example/", "https://evil.example/", "/\\evil.example", "/x\r\nX: y", ""])
def test_signing_in_never_leads_elsewhere(back: str, locked: Page) -> None:
    assert locked.sign_in(back=back).headers["Location"] == "/"


def test_the_form_shows_hostile_addresses_as_text(locked: Page) -> None:
    hostile = '/"><script>alert(1)</script>'
    assert "<script" not in locked.ask(hostile, headers={"Accept": "text/html"}).text
    assert "<script" not in locked.ask('/?"><script>', headers={"Accept": "text/html"}).text


def test_a_form_that_is_too_large_or_not_text_is_refused(locked: Page) -> None:
    for data, status in ((b"token=" + b"a" * 5000, 413), (b"\xff\xfe", 400), (b"a=1&" * 100, 400)):
        assert locked.ask("/login", "POST", headers=OWN, data=data, content_type=FORM).status_code == status


def test_a_token_is_read_from_a_closed_file(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_bytes(TOKEN + b"\n")
    file.chmod(0o640)
    assert read_token(file) == TOKEN
    for mode in (0o644, 0o602):
        file.chmod(mode)
        with pytest.raises(UserError, match=f"open to all users of this host; correct this: chmod o= {file}"):
            read_token(file)


@pytest.mark.parametrize(
    "content", [b"", b"short\n", b"a" * 300, b"two words are no token", b"0123456789abcdef\nsecond"]
)
def test_a_file_without_a_token_is_refused(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_bytes(content)
    file.chmod(0o600)
    with pytest.raises(UserError, match="must hold one line of 16 to 256 printable"):
        read_token(file)


def test_a_token_file_that_is_absent_or_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be read: No such file"):
        read_token(tmp_path / "absent")
    with pytest.raises(UserError, match="is not a regular file"):
        read_token(tmp_path)


@pytest.mark.parametrize("host", ["0.0.0.0", "[::]", "10.1.2.3", "somewhere.example"])
def test_other_machines_need_a_token(host: str) -> None:
    process = start("--listen", f"{host}:8050")
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 2
    assert f"--listen {host}:8050 opens the page to other machines; pass --token-file FILE" in errors
    assert "--listen 127.0.0.1:8050" in errors


def test_the_command_serves_readers_with_the_token_only(tmp_path: Path) -> None:
    file, port = tmp_path / "token", free_port()
    file.write_bytes(TOKEN)
    file.chmod(0o600)
    process = start("--listen", f"0.0.0.0:{port}", "--segments", str(tmp_path), "--token-file", str(file))
    try:
        assert "heliograph live on" in first_line(process)
        for headers, status in (({}, 401), (BEARER, 200)):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
            connection.request("GET", "/", headers=headers)
            answer = connection.getresponse()
            assert answer.status == status
            assert answer.headers["X-Frame-Options"] == "DENY"
            connection.close()
    finally:
        process.terminate()
        try:
            process.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()

"""Access to the live page: tokens, sessions, the origin of POST requests, and the security headers of every answer.

Without a token, everybody who reaches the page may read it; `commands.py` then listens on this machine only. With one,
a reader signs in once: POST /login exchanges the token for a cookie. The cookie holds an expiry and a signature made
with the token, so it ends when the token changes and survives a restart. Programs send ``Authorization: Bearer TOKEN``.

A page of another site can make a reader's browser send requests. It cannot read the answers. Therefore GET changes
nothing, and a POST needs the page's own address as its Origin. A request with a valid bearer token needs no Origin,
because a browser never adds the token automatically.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import html
import os
import stat
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, quote, urlsplit

from heliograph.monitor.errors import UserError

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

__all__ = ["SESSION_SECONDS", "Access", "Token", "content_policy", "read_token", "with_headers"]

SESSION_SECONDS = 12 * 3600
_SHORTEST = 16
_LONGEST = 256
_FORM_BYTES = 4096
_METHODS = ("GET", "HEAD", "POST")
_LOGIN = "/login"


Token = bytes


def read_token(path: Path) -> Token:
    """Read a token from the only line of a file.

    Raises:
        UserError: The file cannot be read, is open to all users, or its content is not a token.
    """
    try:
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise UserError(f"token file {path} cannot be read: {error.strerror}") from None
    try:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode):
            raise UserError(f"token file {path} is not a regular file")
        if found.st_mode & stat.S_IRWXO:
            raise UserError(f"token file {path} is open to all users of this host; correct this: chmod o= {path}")
        token = os.read(file, _LONGEST + 2).strip()
    finally:
        os.close(file)
    if not _SHORTEST <= len(token) <= _LONGEST or not all(0x21 <= byte <= 0x7E for byte in token):
        raise UserError(
            f"token file {path} must hold one line of {_SHORTEST} to {_LONGEST} printable ASCII characters without "
            f"spaces; `head -c 24 /dev/urandom | base64 > {path}` makes a token"
        )
    return token


def content_policy(script_hashes: Iterable[str] = ()) -> str:
    """Return the Content-Security-Policy of the page.

    Scripts come from the page's own files, or are inline scripts with a known hash. Inline styles are allowed, because
    Dash and Plotly write them while they draw; a style cannot run code, and no source outside the page can be reached.
    """
    return "; ".join(
        (
            "default-src 'none'",
            " ".join(("script-src 'self'", *script_hashes)),
            "style-src 'self' 'unsafe-inline'",
            "img-src 'self' data: blob:",
            "font-src 'self' data:",
            "connect-src 'self'",
            "form-action 'self'",
            "base-uri 'none'",
            "frame-ancestors 'none'",
        )
    )


def with_headers(application: WSGIApplication, policy: str) -> WSGIApplication:
    """Add the security headers to every answer of an application."""
    # "no-referrer" would make browsers send "Origin: null" with the form of the sign-in page.
    added = [
        ("Content-Security-Policy", policy),
        ("X-Frame-Options", "DENY"),
        ("X-Content-Type-Options", "nosniff"),
        ("Referrer-Policy", "same-origin"),
        ("Cross-Origin-Opener-Policy", "same-origin"),
        ("Cross-Origin-Resource-Policy", "same-origin"),
    ]

    def answer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        def start(status: str, headers: list[tuple[str, str]], *rest: object) -> Callable[[bytes], object]:
            return start_response(status, [*headers, *added], *rest)  # type: ignore[arg-type]

        return application(environ, start)

    return answer


@dataclass(frozen=True, slots=True)
class _Answer:
    status: str
    body: str
    headers: Sequence[tuple[str, str]] = ()
    kind: str = "text/plain"

    def send(self, start_response: StartResponse) -> list[bytes]:
        data = self.body.encode()
        head = [("Content-Type", f"{self.kind}; charset=utf-8"), ("Content-Length", str(len(data)))]
        start_response(self.status, [*head, ("Cache-Control", "no-store"), *self.headers])
        return [data]


@dataclass(frozen=True)
class Access:
    """An application behind the check of method, origin and token."""

    application: WSGIApplication
    token: Token | None = None
    clock: Callable[[], float] = field(default=time.time)

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Answer a request, or pass it on to the application."""
        refused = self._refusal(environ)
        return refused.send(start_response) if refused else self.application(environ, start_response)

    def _refusal(self, environ: WSGIEnvironment) -> _Answer | None:
        """Return the answer to a request that the application must not see; None: pass it on."""
        method, path = environ["REQUEST_METHOD"], environ.get("PATH_INFO", "")
        if method not in _METHODS:
            return _Answer("405 Method Not Allowed", "Only GET, HEAD and POST.\n", [("Allow", ", ".join(_METHODS))])
        bearer = self._has_bearer(environ)
        if method == "POST" and not bearer and not _is_own_origin(environ):
            return _Answer(
                "403 Forbidden",
                "This request came from another site, or a proxy changed its Host header: Origin and Host must name "
                "the same host and port.\n",
            )
        if self.token is None:
            return None
        if path == _LOGIN:
            return self._login(environ) if method == "POST" else _form("200 OK", "/")
        if bearer or self._has_session(environ):
            return None
        if method == "GET" and "text/html" in environ.get("HTTP_ACCEPT", ""):
            query = environ.get("QUERY_STRING", "")
            return _form("401 Unauthorized", quote(path.encode("latin-1")) + (f"?{query}" if query else ""))
        return _Answer(
            "401 Unauthorized",
            "This page needs a token: sign in at /login, or send Authorization: Bearer TOKEN.\n",
            [("WWW-Authenticate", "Bearer")],
        )

    def _has_bearer(self, environ: WSGIEnvironment) -> bool:
        scheme, _, given = environ.get("HTTP_AUTHORIZATION", "").partition(" ")
        return scheme.lower() == "bearer" and self._is_token(given.strip())

    def _is_token(self, given: str) -> bool:
        return self.token is not None and hmac.compare_digest(given.encode("utf-8", "replace"), self.token)

    def _login(self, environ: WSGIEnvironment) -> _Answer:
        size = environ.get("CONTENT_LENGTH") or "0"
        if not size.isdecimal() or int(size) > _FORM_BYTES:
            return _Answer("413 Content Too Large", "The form is too large.\n")
        try:
            fields = parse_qs(environ["wsgi.input"].read(int(size)).decode(), max_num_fields=8)
        except ValueError:
            return _Answer("400 Bad Request", "The request is not a form.\n")
        back = fields.get("next", ["/"])[0]
        if not self._is_token(fields.get("token", [""])[0].strip()):
            return _form("401 Unauthorized", back, "This is not the token.")
        cookie = f"{_cookie(environ)}={self._session()}; Path=/; Max-Age={SESSION_SECONDS}; HttpOnly; SameSite=Lax"
        if environ["wsgi.url_scheme"] == "https":
            cookie += "; Secure"
        return _Answer("303 See Other", "", [("Location", _local(back)), ("Set-Cookie", cookie)])

    def _session(self) -> str:
        end = int(self.clock()) + SESSION_SECONDS
        return f"{end}.{self._signature(end)}"

    def _has_session(self, environ: WSGIEnvironment) -> bool:
        try:
            found = SimpleCookie(environ.get("HTTP_COOKIE", "")).get(_cookie(environ))
        except CookieError:
            return False
        end, _, signature = found.value.partition(".") if found else ("", "", "")
        if not end.isdecimal() or not end.isascii() or len(end) > 12 or not signature.isascii():
            return False
        return hmac.compare_digest(signature, self._signature(int(end))) and int(end) > self.clock()

    def _signature(self, end: int) -> str:
        assert self.token is not None
        found = hmac.digest(self.token, f"heliograph live session {end}".encode(), hashlib.sha256)
        return base64.urlsafe_b64encode(found).decode().rstrip("=")


def _cookie(environ: WSGIEnvironment) -> str:
    """Return the name of the cookie. Cookies of one host are shared by all its ports, so the name has the port."""
    return f"heliograph-{environ['SERVER_PORT']}"


def _is_own_origin(environ: WSGIEnvironment) -> bool:
    """Whether a request comes from a page of this server. The scheme may differ: a proxy can add TLS."""
    origin, host = environ.get("HTTP_ORIGIN", ""), environ.get("HTTP_HOST", "")
    try:
        found = urlsplit(origin)
    except ValueError:
        return False
    return found.scheme in ("http", "https") and bool(host) and found.netloc.lower() == host.lower()


def _local(address: str) -> str:
    """Return an address of this server unchanged; otherwise the first page."""
    plain = address.startswith("/") and not address.startswith("//") and "\\" not in address
    return address if plain and address.isascii() and address.isprintable() else "/"


def _form(status: str, back: str, error: str = "") -> _Answer:
    """Return the sign-in page."""
    said = f'<p role="alert"><strong>{html.escape(error)}</strong></p>' if error else ""
    body = f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Heliograph live: sign in</title>
<style>:root {{ color-scheme: light dark }} body {{ font: 15px/1.5 sans-serif; max-width: 26em; margin: 4em auto;
padding: 0 1em }} label {{ display: block; margin: 1em 0 }}
input {{ display: block; width: 100%; font: inherit }}</style>
</head><body><main><h1>Heliograph live</h1>{said}
<form method="post" action="{_LOGIN}">
<label>Access token <input type="password" name="token" required autofocus autocomplete="current-password"></label>
<input type="hidden" name="next" value="{html.escape(_local(back))}">
<button>Sign in</button></form></main></body></html>
"""
    return _Answer(status, body, kind="text/html")

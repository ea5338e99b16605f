"""The Grafana port over `grafana-api`, the only file that imports it.

The package has had no release since 2022. This module adds what it lacks:

- An empty body (204) is a success: the package raises a JSON error after a successful call.
- A failure whose body is not an object (the HTML page of a proxy, null) is reported by its status: the package fails on
  it.
- A redirect is an error: `requests` would turn a redirected POST into a GET and report success.
- Calls to busy or failing servers are retried: reads always, writes only when the server reports that it did nothing.
- Data sources are read and updated by uid, through the generic client of the package: it has wrappers by numeric id
  only, and newer servers have that route switched off.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any, Literal, NoReturn, cast
from urllib.parse import quote, urlsplit

import requests
from grafana_api.grafana_api import GrafanaException
from grafana_api.grafana_face import GrafanaFace

from heliograph.dashboards.grafana.port import (
    Conflict,
    Forbidden,
    GrafanaError,
    Json,
    NotFound,
    Refused,
    ServerFailure,
    Unauthorized,
    Unreachable,
)
from heliograph.monitor.errors import UserError

__all__ = ["GrafanaApiBackend"]

_BUSY = frozenset({429, 503})
"""The server reports that it did nothing."""
_BROKEN = frozenset({500, 502, 504})
"""The server may have carried out the call."""

_ALERTING = "/v1/provisioning"
_EDITABLE = {"X-Disable-Provenance": "true"}
"""Without this header Grafana locks the object for editors."""


class GrafanaApiBackend:
    """A Grafana server at `url`, with the token of a service account."""

    def __init__(
        self,
        url: str,
        token: str,
        *,
        timeout: float = 10.0,
        attempts: int = 4,
        backoff: float = 0.5,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Prepare the client; sends nothing.

        Args:
            url: Address of Grafana, with its sub-path if it has one.
            token: Token of a service account that may write dashboards (and data sources, if one is to be created).
            timeout: Longest wait for an answer in seconds.
            attempts: Largest number of attempts per call, at least 1.
            backoff: Seconds before the second attempt; doubles with each attempt.
            sleep: Waits a number of seconds.

        Raises:
            UserError: The URL is not valid.
        """
        parts = urlsplit(url)
        try:
            port = parts.port
        except ValueError:
            port = -1
        if parts.scheme not in {"http", "https"} or not parts.hostname or port == -1 or parts.query or parts.fragment:
            raise UserError(f"{url!r} is not the address of a Grafana server, such as http://127.0.0.1:3000")
        prefix = parts.path.strip("/")
        host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        self._url = url
        self._attempts, self._backoff, self._sleep = attempts, backoff, sleep
        self._face = GrafanaFace(
            auth=token,
            host=host,
            port=port,
            url_path_prefix=f"{prefix}/" if prefix else "",  # the package appends "api" to it
            protocol=parts.scheme,
            timeout=timeout,
        )
        self._answers: list[requests.Response] = []
        """Answers to the present call: none or one."""
        session: requests.Session = self._face.api.s
        session.max_redirects = 0
        session.hooks["response"].append(self._remember)

    def dashboard(self, uid: str) -> Json | None:
        what = f"dashboard {uid!r}"
        found = self._found(lambda: self._face.dashboard.get_dashboard(quote(uid, safe="")), what)
        if found is not None and not isinstance(found.get("dashboard"), dict):
            raise self._strange(what)
        return found

    def save_dashboard(self, dashboard: Mapping[str, Any], folder_uid: str, message: str) -> None:
        body = {"dashboard": dict(dashboard), "folderUid": folder_uid, "message": message, "overwrite": False}
        self._call(
            lambda: self._face.dashboard.update_dashboard(body), f"saving dashboard {dashboard['uid']!r}", write=True
        )

    def delete_dashboard(self, uid: str) -> None:
        self._delete(lambda: self._face.dashboard.delete_dashboard(quote(uid, safe="")), f"deleting dashboard {uid!r}")

    def folder(self, uid: str) -> Json | None:
        return self._found(lambda: self._face.folder.get_folder(quote(uid, safe="")), f"folder {uid!r}")

    def folders(self) -> Sequence[Json]:
        what = "the list of folders"
        found = self._call(self._face.folder.get_all_folders, what)
        if not isinstance(found, list):
            raise self._strange(what)
        return cast("list[Json]", found)

    def create_folder(self, title: str, uid: str) -> None:
        self._call(lambda: self._face.folder.create_folder(title, uid), f"creating folder {title!r}", write=True)

    def data_source(self, uid: str) -> Json | None:
        return self._found(
            lambda: self._face.api.GET(f"/datasources/uid/{quote(uid, safe='')}"), f"data source {uid!r}"
        )

    def save_data_source(self, body: Mapping[str, Any], *, exists: bool) -> None:
        uid = body["uid"]
        if exists:
            path = f"/datasources/uid/{quote(uid, safe='')}"
            self._call(lambda: self._face.api.PUT(path, json=dict(body)), f"updating data source {uid!r}", write=True)
        else:
            self._call(
                lambda: self._face.datasource.create_datasource(dict(body)), f"creating data source {uid!r}", write=True
            )

    def alerting(self, path: str) -> Any:
        lists = path == "contact-points"
        what = f"the alerting {path}"
        try:
            found = self._call(lambda: self._face.api.GET(f"{_ALERTING}/{quote(path)}"), what)
        except NotFound:
            if "/" in path:
                return None
            raise
        if not isinstance(found, list if lists else dict) or (lists and not all(isinstance(i, dict) for i in found)):
            raise self._strange(what)
        return found

    def save_alerting(self, method: Literal["POST", "PUT"], path: str, body: Mapping[str, Any]) -> None:
        call = self._face.api.POST if method == "POST" else self._face.api.PUT
        name = f"{path}/{body['uid']}" if method == "POST" else path
        self._call(
            lambda: call(f"{_ALERTING}/{quote(path)}", json=dict(body), headers=_EDITABLE),
            f"saving the alerting {name}",
            write=True,
        )

    def delete_alerting(self, path: str) -> None:
        self._delete(
            lambda: self._face.api.DELETE(f"{_ALERTING}/{quote(path)}", headers=_EDITABLE),
            f"deleting the alerting {path}",
        )

    def _remember(self, answer: requests.Response, *_: object, **__: object) -> None:
        self._answers = [answer]

    def _found(self, call: Callable[[], Any], what: str) -> Json | None:
        try:
            found = self._call(call, what)
        except NotFound:
            return None
        if not isinstance(found, dict):
            raise self._strange(what)
        return cast("Json", found)

    def _delete(self, call: Callable[[], Any], what: str) -> None:
        with contextlib.suppress(NotFound):
            self._call(call, what, write=True)

    def _strange(self, what: str) -> ServerFailure:
        return ServerFailure(f"{self._url} answered {what}, but not as Grafana does: check --url")

    def _call(self, call: Callable[[], Any], what: str, *, write: bool = False) -> Any:
        """Make a call, retry it where that can help, and turn every failure into an error of the port."""
        for attempt in range(1, self._attempts + 1):
            try:
                return self._once(call, what, write=write)
            except (ServerFailure, Unreachable, Refused) as error:
                if attempt == self._attempts or not self._again(error, write=write):
                    raise
            self._sleep(self._backoff * 2 ** (attempt - 1))
        raise AssertionError("attempts is at least 1")

    def _again(self, error: GrafanaError, *, write: bool) -> bool:
        if isinstance(error, Unreachable):
            return not write
        return any(
            answer.status_code in _BUSY or (not write and answer.status_code in _BROKEN) for answer in self._answers
        )

    def _once(self, call: Callable[[], Any], what: str, *, write: bool) -> Any:
        self._answers = []
        doubt = " It may have been carried out: check with `heliograph grafana plan`." if write else ""
        try:
            return call()
        except requests.TooManyRedirects:
            places = [answer.headers.get("Location", "elsewhere") for answer in self._answers]
            raise Refused(f"{self._url} redirects to {' '.join(places)}; use that address for --url") from None
        except requests.JSONDecodeError:
            if write and any(not answer.content for answer in self._answers):
                return {}
            raise self._strange(what) from None
        except requests.exceptions.ChunkedEncodingError:
            raise Unreachable(f"Grafana at {self._url} broke off its answer to {what}.{doubt}") from None
        except requests.Timeout:
            raise Unreachable(f"Grafana at {self._url} did not answer in time for {what}.{doubt}") from None
        except requests.RequestException as error:
            raise Unreachable(
                f"cannot reach Grafana at {self._url} ({_cause(error)}) for {what}; "
                f"check that it runs and that --url is correct.{doubt if _cause(error) not in _UNSENT else ''}"
            ) from None
        except (GrafanaException, TypeError) as error:
            # TypeError: the package looked for "message" in an answer that is not an object.
            for answer in self._answers:
                self._refuse(answer, what, error)
            raise

    def _refuse(self, answer: requests.Response, what: str, cause: Exception) -> NoReturn:
        status, said = answer.status_code, _said(answer)
        if status == HTTPStatus.UNAUTHORIZED:
            raise Unauthorized(
                f"Grafana at {self._url} does not accept the token for {what} (401: {said}); "
                "create a token for a service account and pass it as --token or GRAFANA_TOKEN"
            ) from cause
        if status == HTTPStatus.FORBIDDEN:
            raise Forbidden(
                f"the token does not permit {what} (403: {said}); its service account needs the role Editor, "
                "or Admin for data sources and alerts"
            ) from cause
        if status == HTTPStatus.NOT_FOUND:
            raise NotFound(f"Grafana did not find {what} (404: {said})") from cause
        if status in {HTTPStatus.CONFLICT, HTTPStatus.PRECONDITION_FAILED}:
            raise Conflict(
                f"{what}: it changed in the meantime, or its name is taken ({status}: {said}); "
                "check with `heliograph grafana plan`"
            ) from cause
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            raise ServerFailure(
                f"Grafana at {self._url} failed at {what} ({status}: {said}); try again later"
            ) from cause
        raise Refused(f"Grafana did not accept {what} ({status}: {said})") from cause


def _said(answer: requests.Response) -> str:
    """Return the error text of the server, shortened."""
    try:
        body = answer.json()
    except ValueError:
        body = None
    if isinstance(body, dict) and isinstance(body.get("message"), str):
        return str(body["message"])
    return answer.reason or "no reason given"


_UNSENT = ("connection refused", "name or service not known", "no route to host", "certificate verify failed")
"""Causes by which a request cannot have reached the server."""


def _cause(error: requests.RequestException) -> str:
    text = str(error).lower()
    for words in _UNSENT:
        if words in text:
            return words
    return type(error).__name__

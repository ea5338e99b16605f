"""A Grafana server on loopback, as far as the provisioner uses one, with the habits that hurt.

It keeps dashboards by uid with versions (412 for an old one), folders and data sources (409 when they exist), and knows
one token. It adds what a real server adds: ids, versions, defaults. `mishaps` are answers to give before the real one,
first in first out; every request is recorded in `requests` for comparison with the published description of the API.
"""

from __future__ import annotations

import json
import threading
from collections import deque
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

Json = dict[str, Any]

TOKEN = "glsa_good"


@dataclass(frozen=True, slots=True)
class Request:
    """What a client sent; the path without the server's prefix."""

    method: str
    path: str
    body: Any


@dataclass(frozen=True, slots=True)
class Mishap:
    """An answer instead of the real one; `after` gives it once the request has been carried out. Status 0: none."""

    status: int
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    after: bool = False
    break_off: bool = False
    """Announces twice the body and closes the connection after half of the announced bytes."""
    wait: threading.Event | None = None
    """The answer waits for this event, which lets the client time out."""


class FakeGrafana:
    """A context manager that serves on `url` while it is open."""

    def __init__(self, prefix: str = "") -> None:
        self.prefix = prefix
        self.dashboards: dict[str, tuple[Json, str]] = {}
        self.folders: dict[str, Json] = {}
        self.data_sources: dict[str, Json] = {}
        self.contact_points: dict[str, Json] = {}
        self.rules: dict[str, Json] = {}
        self.intervals: dict[str, int] = {}
        self.policies: Json = {"receiver": "default", "group_by": ["x"], "routes": [{"receiver": "default"}]}
        self.requests: list[Request] = []
        self.mishaps: deque[Mishap] = deque()
        self.may_write = True
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)

    @property
    def url(self) -> str:
        """Where it is served."""
        return f"http://127.0.0.1:{self._server.server_address[1]}{self.prefix}"

    @property
    def writes(self) -> list[Request]:
        """The requests that were to change something."""
        return [request for request in self.requests if request.method != "GET"]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        """The real answer to a request."""
        if method != "GET" and not self.may_write:
            return 403, {"message": "You'll need additional permissions to perform this action."}
        match [method, *path.strip("/").split("/")]:
            case ["GET", "dashboards", "uid", uid]:
                if uid not in self.dashboards:
                    return 404, {"message": "Dashboard not found"}
                stored, folder = self.dashboards[uid]
                return 200, {"dashboard": stored, "meta": {"folderUid": folder, "slug": "x", "isStarred": False}}
            case ["POST", "dashboards", "db"]:
                return self._save(body)
            case ["DELETE", "dashboards", "uid", uid]:
                if uid not in self.dashboards:
                    return 404, {"message": "Dashboard not found"}
                stored, _ = self.dashboards.pop(uid)
                return 200, {"title": stored["title"], "message": "Dashboard deleted", "id": stored["id"]}
            case ["GET", "folders"]:
                return 200, list(self.folders.values())
            case ["GET", "folders", uid]:
                return (200, self.folders[uid]) if uid in self.folders else (404, {"message": "folder not found"})
            case ["POST", "folders"]:
                if body["uid"] in self.folders:
                    return 409, {"message": "a folder with that uid exists already"}
                self.folders[body["uid"]] = {"id": len(self.folders) + 1, "uid": body["uid"], "title": body["title"]}
                return 200, self.folders[body["uid"]]
            case ["GET", "datasources", "uid", uid]:
                found = self.data_sources.get(uid)
                return (200, found) if found else (404, {"message": "Data source not found"})
            case ["POST", "datasources"]:
                if body["uid"] in self.data_sources:
                    return 409, {"message": "data source with the same name already exists"}
                return 200, self._keep_data_source(body, version=1)
            case ["PUT", "datasources", "uid", uid]:
                if uid not in self.data_sources:
                    return 404, {"message": "Data source not found"}
                return 200, self._keep_data_source(body, version=self.data_sources[uid]["version"] + 1)
            case [_, "v1", "provisioning", *rest]:
                return self._provision(method, rest, body)
        return 404, {"message": "Not found"}

    def _provision(self, method: str, path: list[str], body: Any) -> tuple[int, Any]:
        match [method, *path]:
            case ["GET", "contact-points"]:
                return 200, list(self.contact_points.values())
            case ["GET", "policies"]:
                return 200, self.policies
            case ["PUT", "policies"]:
                names = {point["name"] for point in self.contact_points.values()}
                if any(leaf["receiver"] not in names for one in body["routes"] for leaf in one.get("routes", [])):
                    return 400, {"message": "receiver does not exist"}
                self.policies = body
                return 202, {"message": "policies updated"}
            case ["GET", "folder", folder, "rule-groups", name]:
                rules = [rule for rule in self.rules.values() if rule["ruleGroup"] == name]
                interval = self.intervals.get(name, 60)
                group = {"title": name, "folderUid": folder, "interval": interval, "rules": rules}
                return (200, group) if rules else (404, {"message": "rule group not found"})
            case ["PUT", "folder", _, "rule-groups", name]:
                self.intervals[name] = body["interval"]
                self.rules = {uid: rule for uid, rule in self.rules.items() if rule["ruleGroup"] != name}
                self.rules |= {rule["uid"]: rule for rule in body["rules"]}
                return 200, body
        store = {"contact-points": self.contact_points, "alert-rules": self.rules}[path[0]]
        uid = path[1] if len(path) > 1 else body["uid"]
        if method == "POST" and uid in store:
            return 409, {"message": "the uid exists already"}
        if method != "POST" and uid not in store:
            return 404, {"message": "not found"}
        if method == "DELETE":
            del store[uid]
            return 204, None
        if method != "GET":
            if body.get("folderUID", "heliograph") not in {*self.folders, "heliograph"}:
                return 422, {"message": "unknown folder"}
            store[uid] = body | {"provenance": ""} | ({"id": 5, "updated": "now"} if store is self.rules else {})
        return 200, store[uid]

    def _save(self, body: Json) -> tuple[int, Any]:
        wanted = json.loads(json.dumps(body["dashboard"]))
        uid = wanted["uid"]
        stored = self.dashboards.get(uid)
        if stored is not None and not body.get("overwrite") and wanted.get("version") != stored[0]["version"]:
            text = "The dashboard has been changed by someone else"
            return 412, {"message": text, "status": "version-mismatch"}
        if body.get("folderUid") and body["folderUid"] not in self.folders:
            return 400, {"message": "folder not found"}
        version = stored[0]["version"] + 1 if stored else 1
        served = wanted | {
            "id": 40 + len(self.dashboards),
            "version": version,
            "liveNow": False,
            "fiscalYearStartMonth": 0,
        }
        for panel in served.get("panels", []):
            panel.setdefault("pluginVersion", "12.0.0")
        self.dashboards[uid] = (served, body.get("folderUid", ""))
        return 200, {
            "id": served["id"],
            "uid": uid,
            "status": "success",
            "version": version,
            "slug": "x",
            "url": "/d/x",
        }

    def _keep_data_source(self, body: Json, version: int) -> Json:
        stored = body | {"id": 7, "orgId": 1, "readOnly": False, "basicAuth": False, "version": version}
        self.data_sources[body["uid"]] = stored
        return {"id": 7, "name": body["name"], "message": "Datasource added", "datasource": stored}

    def _handler(fake) -> type[BaseHTTPRequestHandler]:
        class Handler(BaseHTTPRequestHandler):
            def log_message(self, format: str, *args: object) -> None:
                """Quiet."""

            def _serve(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                text = self.rfile.read(length)
                body = json.loads(text) if text else None
                path = self.path.removeprefix(f"{fake.prefix}/api")
                fake.requests.append(Request(self.command, path, body))
                mishap = fake.mishaps.popleft() if fake.mishaps else None
                if mishap is not None and not mishap.status:
                    mishap = None
                if mishap is not None and mishap.wait is not None:
                    mishap.wait.wait(30)
                if mishap is not None and mishap.break_off:
                    self.send_response(mishap.status)
                    self.send_header("Content-Length", str(2 * len(mishap.body)))
                    self.end_headers()
                    self.wfile.write(mishap.body)
                    self.close_connection = True
                elif mishap is not None and not mishap.after:
                    self._send(mishap.status, mishap.body, mishap.headers)
                elif not self.path.startswith(f"{fake.prefix}/api/"):
                    self._send(200, b"<html>Grafana</html>", {"Content-Type": "text/html"})
                elif self.headers.get("Authorization") != f"Bearer {TOKEN}":
                    self._send(401, b'{"message":"Invalid API key"}')
                elif "/provisioning/" in path and body and self.headers.get("X-Disable-Provenance") != "true":
                    self._send(400, b'{"message":"this would lock the object for editors"}')
                else:
                    status, answer = fake.answer(self.command, path, body)
                    if mishap is not None:
                        self._send(mishap.status, mishap.body, mishap.headers)
                    else:
                        self._send(status, json.dumps(answer).encode())

            def _send(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
                self.send_response(status)
                for name, value in (headers or {"Content-Type": "application/json"}).items():
                    self.send_header(name, value)
                if status != 204:
                    self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if status != 204:
                    self.wfile.write(body)

            do_GET = do_POST = do_PUT = do_DELETE = _serve

        return Handler

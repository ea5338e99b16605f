"""TLS and users of the endpoint: what the file may say, who is let in, and what happens when a file changes."""

from __future__ import annotations

import base64
import http.client
import os
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from heliograph.exporters.prometheus import PrometheusExporter
from heliograph.exporters.web_config import WebConfig
from heliograph.monitor.cli import main
from heliograph.monitor.errors import UserError
from tests.exporters.certificates import authority, certificate
from tests.exporters.making import at, instance, receiver
from tests.prometheus import serve

bcrypt = pytest.importorskip("bcrypt")

PASSWORD = "light, not wire"
HASH = bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(4)).decode()
USERS = f"basic_auth_users:\n  reader: {HASH}\n"
TLS = "tls_server_config:\n  cert_file: server.pem\n  key_file: server.key\n"
MUTUAL = TLS + "  client_ca_file: ca.pem\n  client_auth_type: RequireAndVerifyClientCert\n"


def basic(user: str, password: str) -> dict[str, str]:
    return {"Authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


RIGHT = basic("reader", PASSWORD)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an authority, and a certificate of a server and of a client."""
    folder = tmp_path_factory.mktemp("certificates")
    issuer = authority(folder)
    certificate(folder, "server", issuer)
    certificate(folder, "client", issuer)
    certificate(folder, "stranger", authority(folder, "other"))
    return folder


Start = Callable[[str], PrometheusExporter]


@pytest.fixture
def start(made: Path, tmp_path: Path) -> Iterator[Start]:
    """Start an exporter with the text of a web-config file; the certificates are beside it."""
    running: list[PrometheusExporter] = []

    def started(text: str) -> PrometheusExporter:
        for path in made.iterdir():
            (tmp_path / path.name).write_bytes(path.read_bytes())
        (tmp_path / "web.yml").write_text(text)
        running.append(PrometheusExporter("127.0.0.1:0", web_config=tmp_path / "web.yml"))
        running[-1].publish(at(1, instance("alpha", receiver("alpha", messages_delivered=5))))
        return running[-1]

    yield started
    for exporter in running:
        exporter.close()


def trusting(folder: Path, client: str | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=folder / "ca.pem")
    if client:
        context.load_cert_chain(folder / f"{client}.pem", folder / f"{client}.key")
    return context


def get(
    exporter: PrometheusExporter, context: ssl.SSLContext | None = None, headers: dict[str, str] | None = None
) -> tuple[int, bytes, http.client.HTTPMessage]:
    if context is None:
        connection = http.client.HTTPConnection(*exporter.address, timeout=30)
    else:
        connection = http.client.HTTPSConnection(*exporter.address, timeout=30, context=context)
    try:
        connection.request("GET", "/metrics", headers=headers or {})
        response = connection.getresponse()
        return response.status, response.read(), response.headers
    finally:
        connection.close()


def test_only_the_right_name_and_password_are_answered(start: Start) -> None:
    exporter = start(USERS)
    assert exporter.url.startswith("http://")
    for headers in (
        {},
        basic("reader", "wrong"),
        basic("stranger", PASSWORD),
        basic("reader", ""),
        basic("", PASSWORD),
        {"Authorization": "Basic !"},
        {"Authorization": "Basic " + base64.b64encode(b"reader").decode()},
        {"Authorization": "Bearer " + RIGHT["Authorization"].split()[1]},
        basic("reader", PASSWORD + "\0"),
        basic("reader", "x" * 5000),
    ):
        status, body, answered = get(exporter, headers=headers)
        assert status == 401
        assert answered["WWW-Authenticate"].startswith("Basic realm=")
        assert b"heliograph_receiver" not in body
    status, body, _ = get(exporter, headers=RIGHT)
    assert status == 200
    assert b'heliograph_exporter_requests_refused_total{cause="auth"} 10.0' in body


def test_a_password_is_checked_with_bcrypt_once(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    exporter = start(USERS)
    checks = []
    check = bcrypt.checkpw
    monkeypatch.setattr(bcrypt, "checkpw", lambda *pair: checks.append(pair) or check(*pair))
    assert [get(exporter, headers=RIGHT)[0] for _ in range(5)] == [200] * 5
    assert len(checks) == 1
    assert get(exporter, headers=basic("nobody", PASSWORD))[0] == 401
    assert len(checks) == 2, "an unknown name costs as much as a known one"


def test_a_long_password_counts_to_72_bytes_as_bcrypt_has_it(tmp_path: Path) -> None:
    long = "p" * 80
    hashed = bcrypt.hashpw(long[:72].encode(), bcrypt.gensalt(4)).decode()
    (tmp_path / "web.yml").write_text(f"basic_auth_users: {{reader: '{hashed}'}}\n")
    web = WebConfig(tmp_path / "web.yml")
    assert web.check(basic("reader", long)["Authorization"])
    assert not web.check(basic("reader", long[:71])["Authorization"])


def test_users_change_with_the_file_and_a_damaged_file_changes_nothing(
    start: Start, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    exporter = start(USERS)
    assert get(exporter, headers=RIGHT)[0] == 200
    other = bcrypt.hashpw(b"other", bcrypt.gensalt(4)).decode()
    (tmp_path / "web.yml").write_text(f"basic_auth_users:\n  reader: {other}\n  # changed\n")
    assert get(exporter, headers=RIGHT)[0] == 401
    assert get(exporter, headers=basic("reader", "other"))[0] == 200
    (tmp_path / "web.yml").write_text("basic_auth_users:\n  reader: plain text\n")
    assert get(exporter, headers=basic("reader", "other"))[0] == 200
    told = capsys.readouterr().err
    assert told.count("web.yml: basic_auth_users.reader: the value is not a bcrypt hash") == 1
    assert "the settings before the change stay in force" in told


def test_tls_is_spoken_and_nothing_else(start: Start, tmp_path: Path) -> None:
    exporter = start(TLS)
    assert exporter.url.startswith("https://")
    assert get(exporter, trusting(tmp_path))[0] == 200
    with pytest.raises((OSError, http.client.HTTPException)):
        get(exporter)
    old = trusting(tmp_path)
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    assert get(exporter, old)[0] == 200
    end = time.monotonic() + 30
    while b'requests_refused_total{cause="tls"} 1.0' not in get(exporter, trusting(tmp_path))[1]:  # answers are shared
        assert time.monotonic() < end
        time.sleep(0.1)


def test_min_version_is_kept(start: Start, tmp_path: Path) -> None:
    exporter = start(TLS + "  min_version: TLS13\n")
    old = trusting(tmp_path)
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises(OSError):
        get(exporter, old)
    assert get(exporter, trusting(tmp_path))[0] == 200


@pytest.mark.parametrize("kind", ["RequireAndVerifyClientCert", "VerifyClientCertIfGiven"])
def test_certificates_of_clients_are_verified(start: Start, tmp_path: Path, kind: str) -> None:
    exporter = start(MUTUAL.replace("RequireAndVerifyClientCert", kind) + USERS)
    assert get(exporter, trusting(tmp_path, "client"), RIGHT)[0] == 200
    assert get(exporter, trusting(tmp_path, "client"))[0] == 401
    with pytest.raises(OSError):
        get(exporter, trusting(tmp_path, "stranger"), RIGHT)
    if kind == "VerifyClientCertIfGiven":
        assert get(exporter, trusting(tmp_path), RIGHT)[0] == 200
    else:
        with pytest.raises(OSError):
            get(exporter, trusting(tmp_path), RIGHT)


def serial(exporter: PrometheusExporter, folder: Path) -> object:
    plain = socket.create_connection(exporter.address, timeout=30)
    with trusting(folder).wrap_socket(plain, server_hostname="127.0.0.1") as secured:
        found = secured.getpeercert()
        assert found
        return found["serialNumber"]


def test_a_new_certificate_is_used_without_a_restart(
    start: Start, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    exporter = start(TLS)
    first = serial(exporter, tmp_path)
    (tmp_path / "new").mkdir()
    made, key = certificate(tmp_path / "new", "server", tmp_path / "ca.pem")
    os.replace(made, tmp_path / "server.pem")
    assert serial(exporter, tmp_path) == first, "a certificate without its key changes nothing"
    assert "are not a certificate and its unencrypted key" in capsys.readouterr().err
    os.replace(key, tmp_path / "server.key")
    second = serial(exporter, tmp_path)
    assert second != first
    (tmp_path / "web.yml").write_text(USERS)
    assert serial(exporter, tmp_path) == second
    assert "only be switched on or off by a restart" in capsys.readouterr().err


MISTAKES = {
    "not YAML": ("{", "web.yml is not YAML"),
    "not a table": ("[1]", "web.yml: must be a table"),
    "unknown": ("rate_limit: 5\n", "web.yml: rate_limit: this key is unknown or not supported"),
    "unknown below": (TLS + "  ciphers: x\n", r"web.yml: tls_server_config\.ciphers: this key is unknown"),
    "users": ("basic_auth_users: reader\n", "basic_auth_users: must be a table"),
    "plain password": ("basic_auth_users: {reader: secret}\n", r"basic_auth_users\.reader: .* not a bcrypt hash"),
    "no certificate": ("tls_server_config: {key_file: server.key}\n", r"tls_server_config\.cert_file: the name"),
    "missing file": (TLS.replace("server.pem", "none.pem"), r"cert_file: .*none\.pem cannot be read: No such file"),
    "key of another": (TLS.replace("server.key", "client.key"), "are not a certificate and its unencrypted key"),
    "version": (TLS + "  min_version: TLS10\n", r"min_version: 'TLS10' is not one of TLS12, TLS13"),
    "versions": (TLS + "  min_version: TLS13\n  max_version: TLS12\n", "max_version: it is below min_version"),
    "client auth": (TLS + "  client_auth_type: Sometimes\n", "client_auth_type: 'Sometimes' is not one of"),
    "no authority": (TLS + "  client_auth_type: RequireAndVerifyClientCert\n", "client_ca_file: it belongs to"),
    "authority alone": (TLS + "  client_ca_file: ca.pem\n", "client_ca_file: it belongs to"),
    "no authority in it": (MUTUAL.replace("ca.pem", "web.yml"), r"client_ca_file: .*web\.yml has no certificate"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_named_with_its_file_and_key(start: Start, mistake: str) -> None:
    text, told = MISTAKES[mistake]
    with pytest.raises(UserError, match=told):
        start(text)


def test_the_command_takes_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", "prometheus", "--web-config", str(tmp_path / "none.yml")]) == 2
    assert "none.yml cannot be read: No such file" in capsys.readouterr().err
    assert main(["export", "console", "--web-config", "web.yml"]) == 2
    assert "--web-config belongs to prometheus" in capsys.readouterr().err


def test_wrong_passwords_delay_no_scraper_that_is_known(start: Start, tmp_path: Path) -> None:
    costly = bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(12)).decode()
    exporter = start(f"basic_auth_users:\n  reader: {costly}\n")
    assert get(exporter, headers=RIGHT)[0] == 200
    wrong = []
    for number in range(60):
        guess = socket.create_connection(exporter.address, timeout=60)
        head = basic("reader", f"guess {number}")["Authorization"]
        guess.sendall(f"GET /metrics HTTP/1.1\r\nHost: localhost\r\nAuthorization: {head}\r\n\r\n".encode())
        wrong.append(guess)
    assert get(exporter, headers=RIGHT)[0] == 200
    statuses = [guess.recv(100).split()[1] for guess in wrong]
    assert set(statuses) == {b"401", b"503"}, "an address has a few checks at a time"
    for guess in wrong:
        guess.close()


def test_a_real_prometheus_scrapes_with_tls_a_certificate_and_a_password(start: Start, tmp_path: Path) -> None:
    exporter = start(MUTUAL + USERS)
    (tmp_path / "prometheus.yml").write_text(f"""\
global: {{scrape_interval: 1s, scrape_timeout: 1s}}
scrape_configs:
- job_name: heliograph
  scheme: https
  basic_auth: {{username: reader, password: "{PASSWORD}"}}
  tls_config: {{ca_file: ca.pem, cert_file: client.pem, key_file: client.key}}
  static_configs: [{{targets: ["127.0.0.1:{exporter.address[1]}"]}}]
- job_name: without a certificate
  scheme: https
  basic_auth: {{username: reader, password: "{PASSWORD}"}}
  tls_config: {{ca_file: ca.pem}}
  static_configs: [{{targets: ["127.0.0.1:{exporter.address[1]}"]}}]
- job_name: without a password
  scheme: https
  tls_config: {{ca_file: ca.pem, cert_file: client.pem, key_file: client.key}}
  static_configs: [{{targets: ["127.0.0.1:{exporter.address[1]}"]}}]
""")
    with serve(tmp_path / "prometheus.yml", tmp_path / "data") as server:
        server.wait_until('heliograph_receiver_messages_delivered_total{job="heliograph"} == 5')
        server.wait_until('up{job="without a certificate"} == 0')
        server.wait_until('up{job="without a password"} == 0')
        end = time.monotonic() + 30
        while time.monotonic() < end:
            found = {row["labels"]["job"]: row for row in server.get("targets")["activeTargets"]}
            if all(row["health"] != "unknown" for row in found.values()):
                break
        assert (found["heliograph"]["health"], found["heliograph"]["lastError"]) == ("up", "")
        assert found["without a certificate"]["lastError"] != ""
        assert "401" in found["without a password"]["lastError"]

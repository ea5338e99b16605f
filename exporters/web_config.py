"""TLS and basic authentication of the endpoint, from a file in Prometheus' web-config format.

https://prometheus.io/docs/prometheus/latest/configuration/https/ describes the format. Certificates and users are read
again when their file or the web-config file has changed; if the new content is unusable, the old one stays in force.
Unsupported keys are errors, so that no setting is silently without effect.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import re
import secrets
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from heliograph.monitor.errors import UserError
from heliograph.monitor.modules.lane import to_stderr

__all__ = ["WebConfig"]

_VERSIONS = {"TLS12": ssl.TLSVersion.TLSv1_2, "TLS13": ssl.TLSVersion.TLSv1_3}
_CLIENT_AUTH = {
    "NoClientCert": ssl.CERT_NONE,
    "VerifyClientCertIfGiven": ssl.CERT_OPTIONAL,
    "RequireAndVerifyClientCert": ssl.CERT_REQUIRED,
}
_TLS_KEYS = ("cert_file", "key_file", "client_ca_file", "client_auth_type", "min_version", "max_version")
_BCRYPT = re.compile(r"\$2[abxy]\$(0[4-9]|[12]\d|3[01])\$[./A-Za-z0-9]{53}")
_BCRYPT_BYTES = 72
"""bcrypt uses no further bytes of a password."""
_REMEMBERED = 1000

_Stamp = tuple[tuple[int, int, int] | None, ...]


@dataclass(frozen=True, slots=True)
class _Settings:
    """The content of the files."""

    users: Mapping[str, bytes]
    """Names and bcrypt hashes."""
    context: ssl.SSLContext | None
    files: tuple[Path, ...]
    """All files it came from."""


class WebConfig:
    """TLS and users of a web server. `check` may run on another thread than the rest."""

    def __init__(self, path: Path, on_error: Callable[[str], None] = to_stderr) -> None:
        """Read the files.

        Args:
            path: The web-config file.
            on_error: Gets a line when a changed file cannot be used.

        Raises:
            UserError: A file cannot be used; the text names the file and the key.
        """
        self._path = path
        self._on_error = on_error
        self._settings = _read(path)
        self._stamp = _stamp(self._settings.files)
        self._secret = secrets.token_bytes(32)
        self._accepted: set[bytes] = set()

    @property
    def is_secure(self) -> bool:
        """Whether the server speaks TLS."""
        return self._settings.context is not None

    def refresh(self) -> None:
        """Read the files again if one has changed."""
        stamp = _stamp(self._settings.files)
        if stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            found = _read(self._path)
            if (found.context is None) != (self._settings.context is None):
                raise UserError(f"{self._path}: tls_server_config: TLS can only be switched on or off by a restart")
        except (UserError, ModuleNotFoundError) as error:
            self._on_error(f"heliograph: {error}; the settings before the change stay in force")
            return
        self._settings = found
        self._stamp = _stamp(found.files)

    def context(self) -> ssl.SSLContext | None:
        """Return the TLS settings for a new connection; None without TLS."""
        return self._settings.context

    def known(self, authorization: str) -> bool | None:
        """Return whether an Authorization header is right; None if only `check` can decide."""
        settings = self._settings
        if not settings.users:
            return True
        if (pair := _credentials(authorization)) is None:
            return False
        # A digest with a secret key: the time of the search says nothing about the password.
        return True if self._digest(settings, *pair) in self._accepted else None

    def check(self, authorization: str) -> bool:
        """Return whether an Authorization header is right. It takes as long for an unknown user as for a known one."""
        import bcrypt

        settings = self._settings
        if (pair := _credentials(authorization)) is None or not settings.users:
            return not settings.users
        user, password = pair
        digest = self._digest(settings, user, password)
        hashed = settings.users.get(user, next(iter(settings.users.values())))
        is_right = bcrypt.checkpw(password[:_BCRYPT_BYTES], hashed) and user in settings.users
        if is_right:
            if len(self._accepted) >= _REMEMBERED:
                self._accepted.clear()
            self._accepted.add(digest)
        return is_right

    def _digest(self, settings: _Settings, user: str, password: bytes) -> bytes:
        name, hashed = user.encode(), settings.users.get(user, b"")
        return hmac.digest(self._secret, b"%d:%b:%b:%b" % (len(name), name, hashed, password), "sha256")


def _credentials(authorization: str) -> tuple[str, bytes] | None:
    scheme, _, encoded = authorization.partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        name, colon, password = base64.b64decode(encoded.strip(), validate=True).partition(b":")
        return (name.decode(), password) if colon else None
    except (binascii.Error, ValueError):
        return None


def _stamp(files: tuple[Path, ...]) -> _Stamp:
    def one(path: Path) -> tuple[int, int, int] | None:
        try:
            found = path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino

    return tuple(map(one, files))


def _read(path: Path) -> _Settings:
    import yaml

    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UserError(f"{path} is not YAML: {' '.join(str(error).split())}") from error
    table = _table(path, "", content, ("tls_server_config", "basic_auth_users"))
    users = _users(path, table.get("basic_auth_users"))
    if "tls_server_config" not in table:
        return _Settings(users, None, (path,))
    tls = _table(path, "tls_server_config", table["tls_server_config"], _TLS_KEYS)
    return _Settings(users, *_tls(path, tls))


def _table(path: Path, key: str, found: object, known: tuple[str, ...] | None) -> dict[str, object]:
    """Return a table; unknown keys are an error."""
    where = f"{path}: {key}" if key else f"{path}"
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise UserError(f"{where}: must be a table of keys and values")
    for name in found:
        if known is not None and name not in known:
            full = f"{key}.{name}" if key else name
            raise UserError(f"{path}: {full}: this key is unknown or not supported; supported: {', '.join(known)}")
    return {str(name): value for name, value in found.items()}


def _users(path: Path, found: object) -> dict[str, bytes]:
    users = {}
    for name, hashed in _table(path, "basic_auth_users", found, None).items():
        if not isinstance(hashed, str) or not _BCRYPT.fullmatch(hashed):
            raise UserError(
                f"{path}: basic_auth_users.{name}: the value is not a bcrypt hash; `htpasswd -nB {name}` makes one"
            )
        users[name] = hashed.encode()
    if users:
        import bcrypt  # noqa: F401 - a missing library is reported at the start
    return users


def _tls(path: Path, table: Mapping[str, object]) -> tuple[ssl.SSLContext, tuple[Path, ...]]:
    """Return the TLS settings and the files they came from."""

    def file(key: str) -> Path:
        value = table.get(key)
        if not isinstance(value, str) or not value:
            raise UserError(f"{path}: tls_server_config.{key}: the name of a file is needed")
        found = path.parent / value
        try:
            found.read_bytes()
        except OSError as error:
            raise UserError(f"{path}: tls_server_config.{key}: {found} cannot be read: {error.strerror}") from error
        return found

    def choice(key: str, choices: Mapping[str, ssl.TLSVersion | ssl.VerifyMode], default: str) -> str:
        value = table.get(key, default)
        if value not in choices:
            raise UserError(f"{path}: tls_server_config.{key}: {value!r} is not one of {', '.join(choices)}")
        return str(value)

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.options |= ssl.OP_NO_RENEGOTIATION
    context.minimum_version = _VERSIONS[choice("min_version", _VERSIONS, "TLS12")]
    context.maximum_version = _VERSIONS[choice("max_version", _VERSIONS, "TLS13")]
    if context.minimum_version > context.maximum_version:
        raise UserError(f"{path}: tls_server_config.max_version: it is below min_version")
    certificate, key = file("cert_file"), file("key_file")
    try:
        context.load_cert_chain(certificate, key, password="")  # an encrypted key is an error, not a question
    except (ssl.SSLError, OSError, ValueError) as error:
        raise UserError(
            f"{path}: tls_server_config.cert_file and key_file: {certificate} and {key} are not a certificate "
            f"and its unencrypted key: {error}"
        ) from error
    mode = choice("client_auth_type", _CLIENT_AUTH, "NoClientCert")
    files: tuple[Path, ...] = (path, certificate, key)
    if (_CLIENT_AUTH[mode] is ssl.CERT_NONE) != ("client_ca_file" not in table):
        raise UserError(
            f"{path}: tls_server_config.client_ca_file: it belongs to a client_auth_type that verifies, "
            f"which is VerifyClientCertIfGiven or RequireAndVerifyClientCert"
        )
    if "client_ca_file" in table:
        authorities = file("client_ca_file")
        try:
            context.load_verify_locations(authorities)
        except (ssl.SSLError, OSError) as error:
            text = f"{path}: tls_server_config.client_ca_file: {authorities} has no certificate: {error}"
            raise UserError(text) from error
        context.verify_mode = _CLIENT_AUTH[mode]
        files = (*files, authorities)
    return context, files

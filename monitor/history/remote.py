"""Directories of object stores: ``s3://BUCKET/PREFIX``, and by the same code ``gs://`` and ``hdfs://``.

`RemotePath` has the part of `pathlib.Path` that the readers of a spool or a history use, on `pyarrow.fs`. Tested with
S3. Credentials and the region are those of the AWS command line: environment, profile, or the machine's role; an
`AWS_ENDPOINT_URL` (or `AWS_ENDPOINT_URL_S3`) names another store that speaks S3.

Writes are in `monitor.history.remote_writes`, for S3 only (ADR 0068).
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import lru_cache, total_ordering
from pathlib import Path, PurePath, PurePosixPath
from typing import TYPE_CHECKING, Any, TypeVar, cast
from urllib.parse import urlsplit

from heliograph.monitor.errors import UserError

if TYPE_CHECKING:
    import pyarrow.fs

__all__ = [
    "ANSWER_S",
    "ATTEMPTS",
    "CONNECT_S",
    "SCHEMES",
    "Place",
    "RemotePath",
    "SomePlace",
    "absolute",
    "below",
    "globbed",
    "located",
    "opened",
    "place_of",
    "size_of",
]

SCHEMES = ("s3", "gs", "hdfs")

CONNECT_S, ANSWER_S, ATTEMPTS = 10, 30, 5
"""Seconds to connect and to wait for an answer, and attempts of a request in all."""

_PAUSE_S = 0.1


@total_ordering
class RemotePath:
    """A directory or an object.

    Args:
        scheme: One of `SCHEMES`.
        path: Bucket (or host) and key, without the scheme.
        is_listed_file: A listing said that it is an object.
    """

    __slots__ = ("_is_listed_file", "_path", "_scheme")

    def __init__(self, scheme: str, path: PurePosixPath, *, is_listed_file: bool = False) -> None:
        self._scheme = scheme
        self._path = path
        self._is_listed_file = is_listed_file

    @property
    def scheme(self) -> str:
        """The kind of store."""
        return self._scheme

    @property
    def name(self) -> str:
        """The last part of the key."""
        return self._path.name

    @property
    def stem(self) -> str:
        """The same without its ending."""
        return self._path.stem

    @property
    def parent(self) -> RemotePath:
        """The directory."""
        return RemotePath(self._scheme, self._path.parent)

    def __truediv__(self, other: str | PurePath) -> RemotePath:
        return RemotePath(self._scheme, self._path / other)

    def __str__(self) -> str:
        return f"{self._scheme}://{self._path}"

    def __repr__(self) -> str:
        return f"RemotePath({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RemotePath) and str(self) == str(other)

    def __lt__(self, other: RemotePath) -> bool:
        return (self._scheme, self._path) < (other._scheme, other._path)

    def __hash__(self) -> int:
        return hash((self._scheme, self._path))

    def relative_to(self, folder: RemotePath) -> PurePosixPath:
        """Return the path below a directory.

        Raises:
            ValueError: It is not below it.
        """
        return self._path.relative_to(folder._path)

    def is_dir(self) -> bool:
        """Return whether there are objects below it.

        Raises:
            UserError: The store cannot be read.
        """
        return any(True for _ in self._listed(recursive=False))

    def is_file(self) -> bool:
        """Return whether it is an object.

        Raises:
            UserError: The store cannot be read.
        """
        if self._is_listed_file:
            return True
        try:
            return bool(self._system().get_file_info(self._key).is_file)
        except OSError as error:
            raise self._unreadable(error) from error

    def glob(self, pattern: str) -> Iterator[RemotePath]:
        """Yield what matches a pattern such as ``date=*/hour=*``, one listing for each directory.

        Raises:
            UserError: The store cannot be read.
        """
        first, _, rest = pattern.partition("/")
        if rest and not set(first) & set("*?["):
            yield from (self / first).glob(rest)
            return
        for path in self._listed(recursive=False):
            if fnmatchcase(path.name, first):
                if rest:
                    yield from path.glob(rest)
                else:
                    yield path

    def rglob(self, pattern: str) -> Iterator[RemotePath]:
        """Yield all objects below it whose names match a pattern without a slash.

        Raises:
            UserError: The store cannot be read.
        """
        for path in self._listed(recursive=True):
            if path._is_listed_file and fnmatchcase(path.name, pattern):
                yield path

    def changed(self) -> tuple[int, float]:
        """Return the size of the object in bytes, and when it was written, in seconds by the clock of the store.

        Raises:
            OSError: It is missing (`FileNotFoundError`) or cannot be read.
        """
        info = self._system().get_file_info(self._key)
        if not info.is_file:
            raise FileNotFoundError(f"{self} is missing")
        return int(info.size), float(info.mtime_ns) / 1e9

    def read_bytes(self) -> bytes:
        """Return the content of the object.

        Raises:
            OSError: It is missing (`FileNotFoundError`) or cannot be read.
        """
        for attempt in range(1, ATTEMPTS):
            try:
                return self._read()
            except FileNotFoundError:
                raise
            except OSError:
                # pyarrow does not repeat a request whose error text is longer than the object, such as a manifest.
                time.sleep(_PAUSE_S * attempt)
        return self._read()

    def open(self) -> Any:
        """Open the object for reading at any place.

        Raises:
            OSError: It is missing (`FileNotFoundError`) or cannot be read.
        """
        return self._system().open_input_file(self._key)

    def _read(self) -> bytes:
        with self.open() as stream:
            return bytes(stream.read())

    @property
    def _key(self) -> str:
        return str(self._path)

    def _system(self) -> pyarrow.fs.FileSystem:
        return _system(self._scheme, self._path.parts[0])

    def _listed(self, *, recursive: bool) -> Iterator[RemotePath]:
        import pyarrow.fs

        if self._is_listed_file:
            return
        selector = pyarrow.fs.FileSelector(self._key, recursive=recursive, allow_not_found=True)
        try:
            found = self._system().get_file_info(selector)
        except OSError as error:
            raise self._unreadable(error) from error
        for info in found:
            path = PurePosixPath(info.path)
            if path != self._path:
                yield RemotePath(self._scheme, path, is_listed_file=bool(info.is_file))

    def _unreadable(self, error: OSError) -> UserError:
        return UserError(f"{self} cannot be read: {(str(error).splitlines() or [type(error).__name__])[0]}")


Place = Path | RemotePath
"""A directory of this machine or of an object store."""

SomePlace = TypeVar("SomePlace", bound=Place)


def globbed(folder: SomePlace, pattern: str, *, deep: bool = False) -> list[SomePlace]:
    """Return what matches a pattern directly below a directory, or deep below it, sorted.

    Raises:
        UserError: The store cannot be read.
    """
    return cast(list[SomePlace], sorted(folder.rglob(pattern) if deep else folder.glob(pattern)))


def below(path: Place, folder: Place) -> PurePath:
    """Return a path relative to the directory in which it is."""
    if isinstance(path, RemotePath):
        return path.relative_to(cast(RemotePath, folder))
    return path.relative_to(cast(Path, folder))


def place_of(text: str) -> RemotePath:
    """Return a directory of an object store by its address.

    Raises:
        ValueError: The address has no bucket, or its scheme is not one of `SCHEMES`.
    """
    parts = urlsplit(text)
    if parts.scheme not in SCHEMES:
        raise ValueError(f"{text}: directories are paths, file:///PATH, or {', '.join(f'{one}://' for one in SCHEMES)}")
    if not parts.netloc or parts.query or parts.fragment:
        raise ValueError(f"{text}: the address of a directory is {parts.scheme}://BUCKET/PREFIX")
    return RemotePath(parts.scheme, PurePosixPath(parts.netloc + parts.path.rstrip("/")))


def located(text: str) -> Place:
    """Return a directory or a file by what `str` made of it."""
    return place_of(text) if text.partition("://")[0] in SCHEMES else Path(text)


def absolute(path: SomePlace) -> SomePlace:
    """Return a directory or a file as a worker with another current directory finds it."""
    return path if isinstance(path, RemotePath) else path.resolve()


def size_of(path: Place) -> int:
    """Return the size of a file in bytes.

    Raises:
        OSError: It is missing (`FileNotFoundError`) or cannot be read.
    """
    return path.changed()[0] if isinstance(path, RemotePath) else path.stat().st_size


def opened(path: str | Place) -> Any:
    """Return what pyarrow reads a file from: the path itself, or an open object of a store.

    Raises:
        OSError: The object is missing or cannot be read.
    """
    path = located(path) if isinstance(path, str) else path
    return path.open() if isinstance(path, RemotePath) else path


@lru_cache(maxsize=8)
def _system(scheme: str, host: str) -> pyarrow.fs.FileSystem:
    from pyarrow import fs

    if scheme != "s3":
        return fs.FileSystem.from_uri(f"{scheme}://{host}")[0]
    endpoint = urlsplit(os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or "")
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    if not region:
        region = "us-east-1" if endpoint.netloc else fs.resolve_s3_region(host)
    return fs.S3FileSystem(
        region=region,
        endpoint_override=endpoint.netloc or None,
        scheme=endpoint.scheme or None,
        connect_timeout=CONNECT_S,
        request_timeout=ANSWER_S,
        retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=ATTEMPTS),
    )

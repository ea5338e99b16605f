"""Writes of files that appear whole or not at all: on file systems, and in S3 through boto3.

`create` fails when the file exists. On a file system it is a hard link to a finished file, in S3 a PUT with
``If-None-Match: *``. `pyarrow.fs` does not have this condition, so readers use pyarrow and writers boto3. Both take the
credentials, the region and the endpoint of the AWS command line.

A store must guarantee three things: a PUT appears whole or not at all; of several PUTs with ``If-None-Match: *`` one
succeeds; a listing shows whatever was put before it. Amazon S3 does, and so do other stores that speak S3.
`check_store` finds a store that ignores the condition.

Failed requests are repeated. The answer to a PUT may be lost after the store has kept the object. Then the repeated PUT
is refused by its own object. So after a refusal the object is read: if it has the same bytes, the first attempt
succeeded. Content that is created must therefore be unique.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from heliograph.monitor.errors import UserError
from heliograph.monitor.history.remote import ANSWER_S, ATTEMPTS, CONNECT_S, Place, RemotePath

__all__ = ["WRITABLE", "check_store", "create", "put", "remove", "sync_folder"]

WRITABLE = ("s3",)
"""Schemes of stores that can be written."""

_EXISTS = 412
_BUSY = 409
"""Another PUT of the same name is being decided; S3 asks for a repetition."""

_PAUSE_S = 0.1
_REMOVED_AT_ONCE = 1000
"""The most objects that one request removes."""


def put(path: Place, data: bytes) -> None:
    """Write a file; it replaces one that exists. Its directory must exist on a file system.

    Raises:
        OSError: It cannot be written.
    """
    if isinstance(path, RemotePath):
        _asked(path, "put_object", Body=data)
        return
    temporary = _temporary(path, data)
    try:
        temporary.rename(path)
    finally:
        temporary.unlink(missing_ok=True)
    sync_folder(path.parent)


def create(path: Place, data: bytes) -> bool:
    """Write a file that must not exist; returns False if it does. Its directory must exist on a file system.

    Args:
        path: The file.
        data: Content that no other writer has.

    Raises:
        OSError: It cannot be written. If a store does not answer, the object may exist nevertheless.
    """
    if isinstance(path, RemotePath):
        return _create_object(path, data)
    temporary = _temporary(path, data)
    try:
        os.link(temporary, path)  # unlike a rename, a link fails when the name exists
    except FileExistsError:
        return False
    finally:
        temporary.unlink(missing_ok=True)
    sync_folder(path.parent)
    return True


def remove(paths: Iterable[Place]) -> None:
    """Remove files; one that is missing counts as removed.

    Raises:
        OSError: They cannot be removed. Some may be removed.
    """
    objects: dict[str, list[RemotePath]] = {}
    for path in paths:
        if isinstance(path, RemotePath):
            objects.setdefault(_place(path)[0], []).append(path)
        else:
            path.unlink(missing_ok=True)
    for of_bucket in objects.values():
        for first in range(0, len(of_bucket), _REMOVED_AT_ONCE):
            _remove_objects(of_bucket[first : first + _REMOVED_AT_ONCE])


def _temporary(path: Path, data: bytes) -> Path:
    """Write a hidden file beside the final one, durably."""
    temporary = path.with_name(f".{path.name}-{os.getpid()}")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return temporary


def sync_folder(folder: Path) -> None:
    """Make the names in a directory durable."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


# -- object stores ----------------------------------------------------------------------------------------------------


def _create_object(path: RemotePath, data: bytes) -> bool:
    for attempt in range(1, ATTEMPTS + 1):
        try:
            _asked(path, "put_object", Body=data, IfNoneMatch="*")
        except _Refused as error:
            if error.status == _EXISTS:
                return path.read_bytes() == data
            if error.status != _BUSY or attempt == ATTEMPTS:
                raise
            time.sleep(_PAUSE_S * attempt)
        else:
            return True
    raise AssertionError("the last attempt returns or raises")


def _remove_objects(paths: Sequence[RemotePath]) -> None:
    objects = [{"Key": _place(path)[1]} for path in paths]
    answer = _asked(paths[0], "delete_objects", key=False, Delete={"Objects": objects, "Quiet": True})
    if errors := answer.get("Errors"):
        raise OSError(f"{paths[0].parent}: {errors[0].get('Key')} cannot be removed: {errors[0].get('Message')}")


def check_store(existing: RemotePath) -> None:
    """Check that the store refuses to create an object that exists.

    Args:
        existing: An object that may lose its content.

    Raises:
        UserError: The store ignores the condition, so that one writer could overwrite the commit of another.
        OSError: The store does not answer.
    """
    if _create_object(existing, secrets.token_bytes(8)):
        raise UserError(
            f"{existing}: this store ignores `If-None-Match: *`, so a history in it would lose commits; write the "
            "history to a file system and copy it"
        )


class _Refused(OSError):
    """An answer of the store, with the status of HTTP."""

    def __init__(self, text: str, status: int) -> None:
        super().__init__(text)
        self.status = status


def _asked(path: RemotePath, operation: str, *, key: bool = True, **arguments: Any) -> Any:
    from botocore.exceptions import BotoCoreError, ClientError

    bucket, name = _place(path)
    named = {"Bucket": bucket, "Key": name} if key else {"Bucket": bucket}
    try:
        return getattr(_client(path.scheme), operation)(**named, **arguments)
    except ClientError as error:
        status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))
        raise _Refused(f"{path} cannot be written: {error}", status) from error
    except BotoCoreError as error:
        raise OSError(f"{path} cannot be written: {error}") from error


def _place(path: RemotePath) -> tuple[str, str]:
    bucket, _, key = str(path).partition("://")[2].partition("/")
    return bucket, key


@lru_cache(maxsize=2)
def _client(scheme: str) -> Any:
    if scheme not in WRITABLE:
        raise UserError(f"{scheme}:// can only be read; directories of this machine and s3:// can be written")
    try:
        import boto3
        from botocore.config import Config
    except ModuleNotFoundError as error:
        raise UserError("writing to s3:// needs boto3: pip install 'heliograph[s3]'") from error
    endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or None
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    return boto3.client(
        "s3",
        region_name=region or ("us-east-1" if endpoint and urlsplit(endpoint).netloc else None),
        endpoint_url=endpoint,
        config=Config(
            connect_timeout=CONNECT_S,
            read_timeout=ANSWER_S,
            retries={"mode": "standard", "total_max_attempts": ATTEMPTS},
        ),
    )

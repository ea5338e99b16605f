"""Certificates for tests, made by the program openssl."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

__all__ = ["authority", "certificate"]


def _openssl(*words: str) -> None:
    program = shutil.which("openssl")
    if program is None:
        pytest.skip("openssl is not installed")
    subprocess.run([program, *words], check=True, capture_output=True)


_NEW_KEY = ("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


def authority(folder: Path, name: str = "ca") -> Path:
    """Make NAME.pem and NAME.key; returns the certificate."""
    made = folder / f"{name}.pem"
    _openssl(*_NEW_KEY, "-x509", "-days", "2", "-subj", f"/CN={name}", "-keyout", str(made.with_suffix(".key")),
             "-out", str(made))  # fmt: skip
    return made


def certificate(folder: Path, name: str, issuer: Path) -> tuple[Path, Path]:
    """Make NAME.pem and NAME.key for 127.0.0.1, signed by an authority; returns both."""
    made, key, request, extra = (folder / f"{name}.{end}" for end in ("pem", "key", "csr", "ext"))
    extra.write_text("subjectAltName=IP:127.0.0.1,DNS:localhost\n")
    _openssl(*_NEW_KEY, "-subj", f"/CN={name}", "-keyout", str(key), "-out", str(request))
    _openssl("x509", "-req", "-in", str(request), "-CA", str(issuer), "-CAkey", str(issuer.with_suffix(".key")),
             "-CAcreateserial", "-days", "2", "-extfile", str(extra), "-out", str(made))  # fmt: skip
    return made, key

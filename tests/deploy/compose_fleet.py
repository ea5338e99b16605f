"""Runs the commands of deploy/containers/compose.yaml in this network namespace and prints JSON of the result.

    unshare --net sh -c 'ip link set lo up && exec "$@"' sh python -m tests.deploy.compose_fleet

The ports are those of the file, so it needs a namespace of its own. HELIOGRAPH_SEGMENT_DIR is the shared volume.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
import time
import urllib.request
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import yaml

HELIOGRAPH = [sys.executable, "-m", "heliograph.monitor.cli"]
COMPOSE = Path(__file__).resolve().parents[2] / "deploy/containers/compose.yaml"
SECONDS = 60.0
RECEIVERS = ("desk", "slow")


def words_of(service: dict[str, Any]) -> list[str]:
    """Return the command of a service as the container runs it."""
    words: list[str] = service["command"]
    if "entrypoint" not in service:
        return [*HELIOGRAPH, *words]
    return [*service["entrypoint"], *(word.replace("heliograph ", shlex.join(HELIOGRAPH) + " ") for word in words)]


def read(url: str) -> str:
    """Return the text at an address; empty while nothing answers."""
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return str(answer.read().decode())
    except OSError:
        return ""


def main() -> int:
    """Start the fleet, wait until both pages show it, end it."""
    services = yaml.safe_load(COMPOSE.read_text(encoding="utf-8"))["services"]
    ours = {name: service for name, service in services.items() if service["image"] == "heliograph"}
    with ExitStack() as stack:
        started: dict[str, subprocess.Popen[bytes]] = {}
        for name, service in ours.items():
            process = subprocess.Popen(words_of(service), stdout=subprocess.DEVNULL, start_new_session=True)
            stack.callback(process.wait, 30)
            stack.callback(subprocess.run, ["pkill", "-TERM", "--session", str(process.pid)], check=False)
            started[name] = process
        deadline = time.monotonic() + SECONDS
        seen: set[str] = set()
        live = ""
        while time.monotonic() < deadline and not (live and seen == set(RECEIVERS)):
            metrics = read("http://127.0.0.1:9464/metrics")
            rows = [line for line in metrics.splitlines() if line.startswith("heliograph_receiver_messages_delivered")]
            seen = {name for name in RECEIVERS if any(f'"{name}"' in row and row.split()[-1] != "0.0" for row in rows)}
            live = read("http://127.0.0.1:8050/")
            time.sleep(0.5)
        ended = [name for name, process in started.items() if process.poll() is not None]
        print(json.dumps({"receivers": sorted(seen), "live": "heliograph" in live.lower(), "ended": ended}))
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""The road between the demo's feed and its lossy receiver.

Where the system permits, the lossy receiver lives in a network namespace of its own, at the far end of a virtual cable,
and nftables there drops a share of the data packets that arrive: real packets over a real interface, really lost. The
other receivers are at the near end, with the feed::

    feed, alpha, bravo, slow  198.18.77.1  ===== cable =====  198.18.77.2  [2 % dropped]  lossy

Where it does not (no root, no nftables, another demo running), everybody is on the loopback interface and the lossy
receiver throws away the share itself, at the engine's I/O seam (option ``inject_loss``). `Road.how` says which.

The address range is 198.18.0.0/15, set apart for tests of network equipment and never routed.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass, field

__all__ = ["Road", "free_port", "road"]

NEAR = "198.18.77.1"
FAR = "198.18.77.2"
PREFIX = "helio-demo-"


@dataclass(frozen=True, slots=True)
class Road:
    """How packets reach the receivers."""

    how: str
    """For people: how loss is made."""
    near: str
    """Interface address of the feed and the healthy receivers."""
    far: str
    """Interface address of the lossy receiver."""
    device: str
    """Where a capture sees the feed's packets."""
    prefix: tuple[str, ...] = ()
    """What a command of the lossy receiver must begin with."""
    options: Mapping[str, float] = field(default_factory=dict)
    """Options of the lossy receiver."""


class _Refused(Exception):
    """The system does not permit the namespace; the text says why."""


def _run(*command: str, text: str | None = None) -> None:
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise _Refused(f"`{' '.join(command)}` said: {(done.stderr or done.stdout).strip() or done.returncode}")


def _drop_rules(device: str, port: int, per_mille: int) -> str:
    return (
        "table netdev heliograph_demo {\n"
        "  chain loss {\n"
        f'    type filter hook ingress device "{device}" priority 0; policy accept;\n'
        f"    udp dport {port} ip daddr 224.0.0.0/4 numgen random mod 1000 < {per_mille} counter drop\n"
        "  }\n"
        "}\n"
    )


def _forget_the_dead() -> None:
    """Remove namespaces of demos whose process is gone (killed, so that it could not clean up)."""
    listed = subprocess.run(("ip", "netns", "list"), capture_output=True, text=True, check=False).stdout
    for line in listed.splitlines():
        name = line.split()[0]
        pid = name.removeprefix(PREFIX)
        if name != pid and pid.isdigit() and not os.path.exists(f"/proc/{pid}"):
            subprocess.run(("ip", "netns", "delete", name), capture_output=True, check=False)


def _cable(port: int, loss: float) -> Generator[Road]:
    """Build the namespace, yield the road, take the namespace away again (and the cable with it)."""
    if os.geteuid() != 0:
        raise _Refused("it takes root")
    if missing := [tool for tool in ("ip", "nft") if shutil.which(tool) is None]:
        raise _Refused(f"{' and '.join(missing)} is not installed")
    _forget_the_dead()
    name = f"{PREFIX}{os.getpid()}"
    near, far = f"hd{os.getpid()}a", f"hd{os.getpid()}b"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe, contextlib.suppress(OSError):
        probe.bind((NEAR, 0))
        raise _Refused(f"{NEAR} is in use (another demo?)")
    inside = ("ip", "netns", "exec", name)
    try:
        _run("ip", "netns", "add", name)
        _run("ip", "link", "add", near, "type", "veth", "peer", "name", far)
        _run("ip", "link", "set", far, "netns", name)
        _run("ip", "address", "add", f"{NEAR}/30", "dev", near)
        _run("ip", "link", "set", near, "up")
        _run(*inside, "ip", "address", "add", f"{FAR}/30", "dev", far)
        _run(*inside, "ip", "link", "set", "lo", "up")
        _run(*inside, "ip", "link", "set", far, "up")
        _run(*inside, "nft", "-f", "-", text=_drop_rules(far, port, round(loss * 1000)))
        _cross(inside, port + 1)
        yield Road(
            how=f"nftables drops {loss:.0%} of the data packets that reach lossy, in a network namespace ({name})",
            near=NEAR,
            far=FAR,
            device=near,
            prefix=inside,
        )
    finally:
        for command in (("ip", "link", "delete", near), ("ip", "netns", "delete", name)):
            subprocess.run(command, capture_output=True, check=False)


_LISTEN = """
import socket, sys
group, far, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
    s.bind((group, port))
    s.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton(group) + socket.inet_aton(far))
    s.settimeout(3)
    print("ready", flush=True)
    data, sender = s.recvfrom(64)
    s.sendto(data, sender)
"""


def _cross(inside: tuple[str, ...], port: int) -> None:
    """Prove that a multicast packet gets there and an answer comes back."""
    group = "239.192.77.254"
    command = (*inside, sys.executable, "-c", _LISTEN, group, FAR, str(port))
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as listener,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender,
    ):
        assert listener.stdout is not None
        listener.stdout.readline()
        sender.bind((NEAR, 0))
        sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton(NEAR))
        sender.settimeout(0.2)
        for _ in range(10):
            sender.sendto(b"there and back", (group, port))
            with contextlib.suppress(TimeoutError):
                sender.recvfrom(64)
                break
        else:
            listener.kill()
            raise _Refused("multicast does not pass the cable (is a firewall in the way?)")


@contextlib.contextmanager
def road(port: int, loss: float, say: Callable[[str], None]) -> Iterator[Road]:
    """The road for a feed on UDP `port`; `loss` is the share of packets the lossy receiver loses, 0 to 1.

    Gone again, with all it made, when the context ends.
    """
    cable = _cable(port, loss)
    try:
        made = next(cable)
    except _Refused as refusal:
        say(f"no network namespace for the lossy receiver: {refusal}")
        loopback = "127.0.0.1"
        yield Road(
            how=f"the engine throws away {loss:.0%} of lossy's packets at the I/O seam (inject_loss)",
            near=loopback,
            far=loopback,
            device="lo",
            options={"inject_loss": loss},
        )
        return
    try:
        yield made
    finally:
        cable.close()


def free_port(preferred: int, what: str, say: Callable[[str], None], kind: int = socket.SOCK_STREAM) -> int:
    """The preferred port where it is free on the loopback interface, else another one; says so."""
    for port in (preferred, 0):
        with socket.socket(socket.AF_INET, kind) as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            chosen = int(probe.getsockname()[1])
        if chosen != preferred:
            say(f"port {preferred} is in use; {what} gets {chosen}")
        return chosen
    raise SystemExit("demo: no free port on 127.0.0.1")

"""The network between the feed of the demo and its lossy receiver.

Where the system permits it, the lossy receiver runs in its own network namespace, at the far end of a virtual cable.
nftables drops a share of the arriving data packets there: real packets on a real interface. The other receivers are at
the near end, with the feed::

    feed, alpha, bravo, slow  198.18.77.1  ===== cable =====  198.18.77.2  [2 % dropped]  lossy

Otherwise (no root, no nftables, another demo running) all processes use the loopback interface, and the engine of the
lossy receiver drops the share (option ``inject_loss``). `Road.how` names the method.

The address range is 198.18.0.0/15, reserved for tests of network equipment and never routed.
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
    """The way of packets to the receivers."""

    how: str
    """The method that makes loss, as text."""
    near: str
    """Interface address of the feed and the healthy receivers."""
    far: str
    """Interface address of the lossy receiver."""
    device: str
    """Interface where a capture sees the packets of the feed."""
    prefix: tuple[str, ...] = ()
    """First words of a command of the lossy receiver."""
    options: Mapping[str, float] = field(default_factory=dict)
    """Options of the lossy receiver."""


class _Refused(Exception):
    """The system does not permit the namespace; the text is the reason."""


def _run(*command: str, text: str | None = None) -> None:
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise _Refused(f"`{' '.join(command)}` failed: {(done.stderr or done.stdout).strip() or done.returncode}")


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
    """Remove namespaces of killed demos."""
    listed = subprocess.run(("ip", "netns", "list"), capture_output=True, text=True, check=False).stdout
    for line in listed.splitlines():
        name = line.split()[0]
        pid = name.removeprefix(PREFIX)
        if name != pid and pid.isdigit() and not os.path.exists(f"/proc/{pid}"):
            subprocess.run(("ip", "netns", "delete", name), capture_output=True, check=False)


def _cable(port: int, loss: float) -> Generator[Road]:
    """Create the namespace, yield the road, and remove the namespace (and the cable)."""
    if os.geteuid() != 0:
        raise _Refused("root is needed")
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
    """Check that a multicast packet arrives and an answer comes back."""
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
            raise _Refused("multicast does not pass the cable (check the firewall)")


@contextlib.contextmanager
def road(port: int, loss: float, say: Callable[[str], None]) -> Iterator[Road]:
    """Yield the road for a feed on UDP `port`; `loss` is the share of packets the lossy receiver loses, 0 to 1.

    The end of the context removes all that it created.
    """
    cable = _cable(port, loss)
    try:
        made = next(cable)
    except _Refused as refusal:
        say(f"no network namespace for the lossy receiver: {refusal}")
        loopback = "127.0.0.1"
        yield Road(
            how=f"the engine drops {loss:.0%} of lossy's packets (inject_loss)",
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
    """Return the preferred port if it is free on the loopback interface, otherwise another one, with a message."""
    for port in (preferred, 0):
        with socket.socket(socket.AF_INET, kind) as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            chosen = int(probe.getsockname()[1])
        if chosen != preferred:
            say(f"port {preferred} is in use; {what} uses {chosen}")
        return chosen
    raise SystemExit("demo: no free port on 127.0.0.1")

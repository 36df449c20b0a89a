"""Hosts inside one machine: network namespaces on a bridge, each with its own name, address and processes.

    with hosts(3) as lan:
        process = lan.run(0, ["torchrun", ...])     a command on host 0, whose address is lan.addresses[0]
        lan.cut(1); lan.mend(1)                     its cable is pulled out, and put back
        lan.kill(2)                                 all that runs there dies at once
        lan.slow(2, "1mbit")                        its line gets slow: "50ms" of delay, or "1mbit" per second

The bridge is in a namespace too, so that nothing is reachable from outside and nothing outside from within; files are common to all.
A host that is cut keeps running and hears nobody: neither an end of a connection nor a refusal, as when a switch dies. What `kill`
ends is closed by the kernel, and the others hear of it; `lan.cut(2); lan.kill(2)` is a host that loses its power.
All of it is gone at the end. What a killed Python left behind is taken away by the next one (`sweep`).
Needs root and iproute2; `available()` says what is missing.
"""

import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

PREFIX: Final = "limelight"
NETWORK: Final = "10.77.0"
DEVICE: Final = "eth0"  # the name of the cable on each host
TOOLS: Final = {"ip": "iproute2", "tc": "iproute2", "nsenter": "util-linux", "unshare": "util-linux"}
# In namespaces of its own: first its name and its /etc/hosts, then the command, which takes the place of the shell.
ENTER: Final = 'hostname "$1" && mount --bind "$2" /etc/hosts && shift 2 && exec "$@"'


class Lan:
    def __init__(self, names: Sequence[str], bridge: str, table: Path) -> None:
        self.names, self._bridge, self._table = list(names), bridge, table
        self.started: list[subprocess.Popen[bytes]] = []

    @property
    def addresses(self) -> list[str]:
        return [address_of(host) for host in range(len(self.names))]

    def run(self, host: int, command: Sequence[str], env: Mapping[str, str] | None = None, **more: Any) -> subprocess.Popen[bytes]:
        """Starts a command there. `env` is added to this process's; gloo and NCCL are told the device. Its pid is the command's."""
        known = {"GLOO_SOCKET_IFNAME": DEVICE, "NCCL_SOCKET_IFNAME": DEVICE}
        enter = [
            "nsenter",
            f"--net=/run/netns/{self.names[host]}",
            "unshare",
            "--uts",
            "--mount",
            "sh",
            "-c",
            ENTER,
            "sh",
        ]
        words = [*enter, f"host{host}", str(self._table), *command]
        self.started.append(subprocess.Popen(words, env={**os.environ, **known, **(env or {})}, start_new_session=True, **more))
        return self.started[-1]

    def cut(self, host: int) -> None:
        """At the bridge, so that the host itself sees a device that is up and packets that go nowhere."""
        _do("ip", "-n", self._bridge, "link", "set", f"port{host}", "nomaster")

    def mend(self, host: int) -> None:
        _do("ip", "-n", self._bridge, "link", "set", f"port{host}", "master", "bridge")

    def kill(self, host: int) -> int:
        """SIGKILL to everything in it, until nothing is left. Returns how many processes died."""
        return _kill_all(self.names[host])

    def processes(self, host: int) -> list[int]:
        return _pids(self.names[host])

    def slow(self, host: int, how: str) -> None:
        """What leaves the host and what goes to it: "50ms" late, or at most "1mbit" per second. Raises OSError if the kernel cannot."""
        if not re.fullmatch(r"\d+(ms|[kmg]?bit)", how):
            raise ValueError(f"{how!r} is neither a delay such as 50ms nor a rate such as 1mbit")
        rule = ["netem", "delay", how] if how.endswith("ms") else ["tbf", "rate", how, "burst", "32kbit", "latency", "400ms"]
        for namespace, device in ((self.names[host], DEVICE), (self._bridge, f"port{host}")):
            _do("tc", "-n", namespace, "qdisc", "replace", "dev", device, "root", *rule)

    def fast(self, host: int) -> None:
        """Takes back what `slow` did."""
        for namespace, device in ((self.names[host], DEVICE), (self._bridge, f"port{host}")):
            _do("tc", "-n", namespace, "qdisc", "del", "dev", device, "root")


def address_of(host: int) -> str:
    return f"{NETWORK}.{host + 1}"


def available() -> str | None:
    """Why hosts cannot be made here; None if they can."""
    if os.uname().sysname != "Linux":
        return f"network namespaces are Linux's; this is {os.uname().sysname}"
    missing = sorted({package for tool, package in TOOLS.items() if shutil.which(tool) is None})
    if missing:
        return f"{' and '.join(missing)} must be installed (for ip, tc, nsenter and unshare)"
    if os.geteuid() != 0:
        return "only root may make network namespaces"
    try:
        with hosts(1) as lan:
            told = lan.run(0, ["true"], stderr=subprocess.PIPE)
            words = told.communicate(timeout=30)[1].decode(errors="replace").strip()
    except OSError as error:
        return f"network namespaces are not allowed here: {error}"
    return f"nothing can be run in a network namespace here: {words}" if told.returncode else None


@contextmanager
def hosts(count: int) -> Iterator[Lan]:
    sweep()
    number = 0
    while (Path("/run/netns") / f"{PREFIX}-{os.getpid()}-{number}-bridge").exists():  # this process has other hosts already
        number += 1
    stem = f"{PREFIX}-{os.getpid()}-{number}"
    names, bridge = [f"{stem}-host{host}" for host in range(count)], f"{stem}-bridge"
    with tempfile.TemporaryDirectory(prefix=f"{stem}-") as folder:
        table = Path(folder) / "hosts"
        lines = [f"{address_of(host)} host{host}\n" for host in range(count)]
        table.write_bytes("".join(["127.0.0.1 localhost\n", *lines]).encode())
        lan = Lan(names, bridge, table)
        try:
            _wire(names, bridge)
            yield lan
        finally:
            for name in [*names, bridge]:
                _remove(name)
            for process in lan.started:
                with suppress(ProcessLookupError):  # one that was on its way into its host when that was emptied
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def sweep() -> list[str]:
    """Removes what processes that no longer exist have left: their hosts, and what still runs in them. Returns the names."""
    places = Path("/run/netns")
    found = [path.name for path in places.iterdir()] if places.is_dir() else []
    owners = {name: re.match(rf"{PREFIX}-(\d+)-", name) for name in found}
    stale = sorted(name for name, owner in owners.items() if owner and not Path(f"/proc/{owner[1]}").exists())
    for name in stale:
        _remove(name)
        for folder in Path(tempfile.gettempdir()).glob(f"{name.rpartition('-')[0]}-*"):
            shutil.rmtree(folder, ignore_errors=True)
    return stale


def _wire(names: Sequence[str], bridge: str) -> None:
    _do("ip", "netns", "add", bridge)
    _do("ip", "-n", bridge, "link", "add", "bridge", "type", "bridge", "stp_state", "0")
    _do("ip", "-n", bridge, "link", "set", "bridge", "up")
    for host, name in enumerate(names):
        _do("ip", "netns", "add", name)
        _do("ip", "-n", name, "link", "set", "lo", "up")
        _do("ip", "-n", name, "link", "add", DEVICE, "type", "veth", "peer", "name", f"port{host}", "netns", bridge)
        _do("ip", "-n", name, "address", "add", f"{address_of(host)}/24", "dev", DEVICE)
        _do("ip", "-n", name, "link", "set", DEVICE, "up")
        _do("ip", "-n", bridge, "link", "set", f"port{host}", "master", "bridge", "up")


def _remove(name: str) -> None:
    """Its processes, then itself; never an error, since it may be half made."""
    if (Path("/run/netns") / name).exists():
        with suppress(OSError):
            _kill_all(name)
        with suppress(OSError):
            _do("ip", "netns", "del", name)


def _kill_all(name: str, seconds: float = 10) -> int:
    """Again and again, since a process may have started another meanwhile."""
    dead: set[int] = set()
    end = time.monotonic() + seconds
    while alive := _pids(name):
        for pid in alive:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        dead.update(alive)
        if time.monotonic() > end:
            raise TimeoutError(f"{name}: processes {alive} do not die")
        time.sleep(0.02)
    return len(dead)


def _pids(name: str) -> list[int]:
    return [int(pid) for pid in _do("ip", "netns", "pids", name).split()]


def _do(*words: str) -> str:
    told = subprocess.run(words, capture_output=True)
    if told.returncode:
        reason = told.stderr.decode(errors="replace").strip()
        raise OSError(f"`{' '.join(words)}` failed: {reason}")
    return told.stdout.decode()

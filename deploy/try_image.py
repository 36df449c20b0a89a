"""The image without docker: executes the steps of deploy/Dockerfile in folders, then runs the result as a container would.

    debootstrap --variant=minbase --include=ca-certificates,netbase,tzdata,libbz2-1.0,libdb5.3,libffi8,libgdbm6,liblzma5,\
libncursesw6,libreadline8,libsqlite3-0,libssl3,libuuid1,zlib1g bookworm WORK/debian
    cp -r tests/bundles/format-1 WORK/numbers && limelight export WORK/numbers        the image has no torch
    python deploy/try_image.py WORK --bundle WORK/numbers

The container has a read-only root, no network but loopback, no capabilities, no way to new ones, and the user, command and health check
that the Dockerfile names. What cannot be tried so: the base images themselves, docker's seccomp profile, cgroup limits, registries.
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from image_stages import UNSHARED, Asked, Builder, Stage, say, surrounded

RUNNING = """set -e
root=$1; bundle=$2; keys=$3; shift 3
ip link set lo up
mkdir -p "$root/models/$(basename "$bundle")" "$root/run/secrets"
touch "$root/run/secrets/limelight-keys"
mount --bind "$root" "$root"
mount --bind "$bundle" "$root/models/$(basename "$bundle")"
mount -o remount,bind,ro "$root/models/$(basename "$bundle")"
mount --bind "$keys" "$root/run/secrets/limelight-keys"
mount -o remount,bind,ro "$root/run/secrets/limelight-keys"
mount -t tmpfs -o size=256m,noexec,nosuid,nodev,mode=1777 tmpfs "$root/tmp"
mount -t proc proc "$root/proc"
for device in null zero random urandom; do touch "$root/dev/$device"; mount --bind "/dev/$device" "$root/dev/$device"; done
mount -o remount,bind,ro "$root"
exec chroot "$root" setpriv --reuid "$USER_ID" --regid "$USER_ID" --clear-groups --bounding-set=-all --inh-caps=-all --no-new-privs "$@"
"""


@dataclass(frozen=True)
class Container:
    """A server in its namespaces. `pid` is its number out here; in there it is 1."""

    stage: Stage
    pid: int
    process: "subprocess.Popen[bytes]"

    def run(self, *words: str) -> "subprocess.CompletedProcess[bytes]":
        """A command beside it, as the same user with as few rights (docker exec)."""
        user = self.stage.user
        fewer = ["setpriv", "--reuid", user, "--regid", user, "--clear-groups", "--bounding-set=-all", "--no-new-privs"]
        inside = ["nsenter", "--target", str(self.pid), "--mount", "--net", "--pid", "--root", "--wdns=/", *fewer]
        return subprocess.run([*inside, *surrounded(self.stage.environment, "/", list(words))], capture_output=True)

    def status(self) -> dict[str, str]:
        lines = Path(f"/proc/{self.pid}/status").read_bytes().decode().split("\n")
        return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


@contextmanager
def container(stage: Stage, bundle: Path, keys: Path, words: list[str], log: Path) -> Iterator[Container]:
    within = [*UNSHARED, "--net", "--ipc", "--uts", "sh", "-c", RUNNING, "running"]
    started = surrounded(stage.environment, stage.folder, [*stage.entrypoint, *words])
    command = [*within, str(stage.root), str(bundle.resolve()), str(keys), *started]
    with log.open("wb") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file, env=os.environ | {"USER_ID": stage.user})
        pid = _child(process.pid)
        try:
            yield Container(stage, pid, process)
        finally:  # a process that changed its user does not hear of its parent's death
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            process.wait()


def _child(parent: int) -> int:
    for _ in range(100):
        children = Path(f"/proc/{parent}/task/{parent}/children").read_bytes().split()
        if children:
            return int(children[0])
        time.sleep(0.05)
    raise SystemExit("the container did not start")


ASK = """import http.client, sys
server = http.client.HTTPConnection("127.0.0.1", 5000, timeout=60)
method, path, body, key = sys.argv[1:]
headers = {"Content-Type": "application/json"} | ({"Authorization": "Bearer " + key} if key else {})
server.request(method, path, body or None, headers)
answer = server.getresponse()
print(answer.status, answer.read().decode())
"""


def ask(box: Container, method: str, path: str, body: str = "", key: str = "") -> str:
    """Status and body."""
    return box.run("python", "-I", "-c", ASK, method, path, body, key).stdout.decode().strip()


def healthy(box: Container, seconds: float) -> float | None:
    """Seconds until the image's own health check is content."""
    began = time.monotonic()
    while time.monotonic() - began < seconds and box.process.poll() is None:
        if box.run(*box.stage.health).returncode == 0:
            return time.monotonic() - began
        time.sleep(0.2)
    return None


class Promises:
    """What a container promises, looked at from inside and outside."""

    def __init__(self, stage: Stage, bundle: Path, work: Path) -> None:
        self.stage, self.bundle, self.work = stage, bundle, work
        self.place = f"/models/{bundle.resolve().name}"
        self.keys = work / "keys.toml"
        self.key = make_key(stage, self.keys)
        self.broken = 0

    def check(self, good: bool, what: str) -> None:
        self.broken += not good
        say(f"{'ok    ' if good else 'BROKEN'}  {what}")

    def started(self, *words: str) -> AbstractContextManager[Container]:
        return container(self.stage, self.bundle, self.keys, [*words, self.place], self.work / "container.log")

    def with_keys(self) -> AbstractContextManager[Container]:
        return self.started("--api-key-file", "/run/secrets/limelight-keys", "--metrics")

    def look(self) -> int:
        with self.started() as box:
            code = box.process.wait(60)
            self.check(code == 2, f"without keys and without --public it does not start (exit code {code})")
        with self.with_keys() as box:
            took = healthy(box, 120)
            self.check(took is not None, f"healthy by its own check after {took and round(took, 1)} s")
            self.rights(box)
            self.answers(box)
            self.end(box, "SIGTERM", 0)
        with self.with_keys() as box:
            time.sleep(0.5)
            self.end(box, "SIGTERM while it loads", None)
        return self.broken

    def rights(self, box: Container) -> None:
        status = box.status()
        self.check(status["Uid"].split() == [self.stage.user] * 4, f"user {status['Uid'].split()[0]}")
        self.check(int(status["CapBnd"], 16) == int(status["CapEff"], 16) == 0, "no capability, none to be had")
        self.check(status["NoNewPrivs"] == "1", "no new privileges")
        self.check(status["NSpid"].split()[-1] == "1", "it is process 1")
        for file in ("/x", "/opt/limelight/x", f"{self.place}/x", "/run/secrets/limelight-keys"):
            said = box.run("python", "-I", "-c", f"open({file!r}, 'ab')").stderr
            self.check(b"Read-only file system" in said or b"Permission denied" in said, f"{file} cannot be written")

    def answers(self, box: Container) -> None:
        text = '{"text": "three seven one"}'
        self.check(ask(box, "POST", "/api/v1/translate", text).startswith("401"), "no translation without a key")
        answer = ask(box, "POST", "/api/v1/translate", text, self.key)
        self.check(answer.startswith("200") and "drei sieben eins" in answer, f"a translation with one: {answer[:60]}...")
        self.check("<script" in ask(box, "GET", "/", "", self.key), "the page of the wheel is there")
        self.check("limelight_queue_wait_seconds" in ask(box, "GET", "/metrics", "", self.key), "metrics with a key")
        self.check(not list((Path(f"/proc/{box.pid}/root") / "tmp").iterdir()), "/tmp is empty after all that")
        say("system libraries in use: " + " ".join(libraries(box.pid)))

    def end(self, box: Container, what: str, wanted: int | None) -> None:
        """`wanted` None: any exit code will do, if only it ends."""
        began, code = time.monotonic(), None
        os.kill(box.pid, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            code = box.process.wait(40)
        good = code is not None and wanted in (None, code)
        self.check(good, f"{what}: exit code {code} after {time.monotonic() - began:.1f} s")


def make_key(stage: Stage, keys: Path) -> str:
    """By the image's own limelight, in a folder that it may write to; readable for the user of the image alone."""
    inside = stage.root / "tmp" / "keys.toml"
    inside.unlink(missing_ok=True)
    made = ["limelight", "serve", "--api-key-file", "/tmp/keys.toml", "--make-key", "trial"]
    words = ["chroot", str(stage.root), *surrounded(stage.environment, "/", made)]
    said = subprocess.run(words, capture_output=True, check=True)
    shutil.move(inside, keys)
    os.chown(keys, int(stage.user), int(stage.user))
    return said.stdout.decode().split()[-1]


def libraries(pid: int) -> list[str]:
    """Shared objects that are neither in the environment nor Python's own: the base image must have them."""
    maps = Path(f"/proc/{pid}/maps").read_bytes().decode()
    files = {line.split()[-1] for line in maps.split("\n") if ".so" in line}
    return sorted({Path(file).name for file in files if "/opt/limelight" not in file and "/usr/local" not in file})


def pairs(given: list[str]) -> dict[str, str]:
    """["A=1", "B=x=y"] -> {"A": "1", "B": "x=y"}"""
    return dict(pair.split("=", 1) for pair in given)


def main() -> int:
    parser = argparse.ArgumentParser(description="The image without docker.")
    parser.add_argument("work", type=Path, help="Folder to build in, with debian/ in it; some 8 GB.")
    parser.add_argument(
        "--bundle", type=Path, required=True, help="A copy of tests/bundles/format-1, exported: its translations are known."
    )
    parser.add_argument("--build-arg", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--env", action="append", default=[], metavar="NAME=VALUE", help="For RUN only.")
    parser.add_argument("--share", action="append", default=[], help="Folder of this machine that RUN may read.")
    parser.add_argument("--from-stage", metavar="NAME", help="Those before it are there from last time. The last is `serve`.")
    parser.add_argument("--built", action="store_true", help="Do not build again.")
    given = parser.parse_args()
    if os.geteuid() != 0:
        raise SystemExit("namespaces and chroot need root")
    if not (given.work / "debian").is_dir():
        raise SystemExit(f"{given.work}/debian is missing; debootstrap makes it, as the head of this file shows")
    asked = Asked(pairs(given.build_arg), pairs(given.env), tuple(given.share), given.from_stage)
    builder = Builder(given.work.resolve(), asked)
    stage = builder.built() if given.built else builder.build()
    broken = Promises(stage, given.bundle, given.work.resolve()).look()
    say(f"{broken} promises broken" if broken else "all kept")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())

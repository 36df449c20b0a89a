"""The steps of deploy/Dockerfile without docker: each stage is a folder, RUN is a chroot, COPY obeys .dockerignore.

A base image becomes Debian with the Python or the Node of this machine. Needs root on Linux.
"""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from dockerfile import copy_of, ignore_patterns, is_ignored, pairs_of, stages, words_of

ROOT = Path(__file__).parents[1]
DOCKERFILE = ROOT / "deploy" / "Dockerfile"
UNSHARED = ["unshare", "--mount", "--pid", "--fork", "--kill-child"]
# Everything is mounted in a namespace of its own, so nothing stays behind when the process ends.
BUILDING = """set -e
root=$1; shift
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
for place in /etc/resolv.conf /etc/hosts /etc/ssl/certs/ca-certificates.crt $SHARED; do
  if [ -d "$place" ]; then mkdir -p "$root$place"; else mkdir -p "$(dirname "$root$place")"; touch "$root$place"; fi
  mount --bind -o ro "$place" "$root$place"
done
exec chroot "$root" "$@"
"""


@dataclass(frozen=True)
class Asked:
    """What a person may change. `share` are folders of this machine that RUN may read, `variables` are for RUN only."""

    arguments: dict[str, str]
    variables: dict[str, str]
    share: tuple[str, ...]
    from_stage: str | None = None


@dataclass
class Stage:
    """What has been built so far, and what the Dockerfile says of it."""

    root: Path
    environment: dict[str, str] = field(default_factory=lambda: {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"})
    arguments: dict[str, str] = field(default_factory=dict)
    folder: str = "/"
    user: str = "0"
    entrypoint: list[str] = field(default_factory=list)
    health: list[str] = field(default_factory=list)


class Builder:
    """Stage after stage, each a folder under `work`."""

    def __init__(self, work: Path, asked: Asked) -> None:
        self.work, self.asked = work, asked
        self.stages: dict[str, Stage] = {}
        self.ignored = ignore_patterns(ROOT / ".dockerignore")

    def build(self) -> Stage:
        stage, there = None, bool(self.asked.from_stage)
        for name, base, steps in stages(DOCKERFILE.read_bytes().decode()):
            say(f"FROM {base}" + (f" AS {name}" if name else ""))
            there = there and (name or "image") != self.asked.from_stage
            if there:
                self.stages[name or ""] = Stage(self.work / (name or "image"))
                continue
            stage = Stage(self._based(base, name or "image"))
            for instruction, rest in steps:
                say(f"{instruction} {rest}"[:160])
                self._step(stage, instruction, rest)
            self.stages[name or ""] = stage
        assert stage is not None
        return stage

    def built(self) -> Stage:
        """The image of the last time."""
        last, _, steps = stages(DOCKERFILE.read_bytes().decode())[-1]
        stage = Stage(self.work / (last or "image"))
        for name, rest in steps:
            if name not in ("RUN", "COPY"):
                self._declare(stage, name, rest)
        return stage

    def _step(self, stage: Stage, name: str, rest: str) -> None:
        if name == "RUN":
            self._run(stage, words_of(rest) or ["/bin/sh", "-c", rest])
        elif name == "COPY":
            self._copy(stage, rest)
        else:
            self._declare(stage, name, rest)

    def _declare(self, stage: Stage, name: str, rest: str) -> None:
        if name == "ENV":
            stage.environment |= pairs_of(rest)
        elif name == "ARG":
            key, _, default = rest.partition("=")
            stage.arguments[key] = self.asked.arguments.get(key, default)
        elif name == "WORKDIR":
            stage.folder = rest
            (stage.root / rest.lstrip("/")).mkdir(parents=True, exist_ok=True)
        elif name == "USER":
            stage.user = rest.partition(":")[0]
        elif name == "ENTRYPOINT":
            stage.entrypoint = words_of(rest) or []
        elif name == "HEALTHCHECK":
            stage.health = words_of(rest.partition("CMD ")[2]) or []
        elif name not in ("LABEL", "EXPOSE", "STOPSIGNAL"):
            raise SystemExit(f"{name} is not known to this script")

    def _run(self, stage: Stage, words: list[str]) -> None:
        variables = stage.environment | stage.arguments | self.asked.variables | {"HOME": "/root"}
        within = [*UNSHARED, "sh", "-c", BUILDING, "building", str(stage.root)]
        subprocess.run(
            [*within, *surrounded(variables, stage.folder, words)],
            check=True,
            env=os.environ | {"SHARED": " ".join(self.asked.share)},
        )

    def _copy(self, stage: Stage, rest: str) -> None:
        copy = copy_of(rest)
        target = stage.root / (copy.target if copy.target.startswith("/") else f"{stage.folder}/{copy.target}").lstrip("/")
        into = copy.target.endswith("/") or len(copy.sources) > 1 or copy.target in (".", "./")
        for source in copy.sources:
            place = (self.stages[copy.stage].root if copy.stage else ROOT) / source.strip("/")
            if place.is_dir():
                skip = None if copy.stage else self._skipped
                shutil.copytree(place, target, symlinks=True, dirs_exist_ok=True, ignore=skip)
            elif copy.stage is None and is_ignored(source, self.ignored):
                raise SystemExit(f"{source} is not in the build context: .dockerignore")
            else:
                file = target / place.name if into else target
                file.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(place, file)

    def _skipped(self, folder: str, names: list[str]) -> set[str]:
        here = Path(folder).relative_to(ROOT)
        return {name for name in names if is_ignored(str(here / name), self.ignored)}

    def _based(self, image: str, name: str) -> Path:
        """Debian and what the image adds to it, from this machine."""
        root = self.work / name
        subprocess.run(["rm", "-rf", str(root)], check=True)
        subprocess.run(["cp", "-a", str(self.work / "debian"), str(root)], check=True)
        local = root / "usr" / "local"
        if image.startswith("node:"):
            node, npm = Path(shutil.which("node") or ""), Path(shutil.which("npm") or "").resolve().parents[1]
            shutil.copy2(node, local / "bin" / "node")
            shutil.copytree(npm, local / "lib" / "node_modules" / "npm", symlinks=True)
            (local / "bin" / "npm").symlink_to("../lib/node_modules/npm/bin/npm-cli.js")
        else:
            _python(local)
            self._run(
                Stage(root),
                [
                    "/bin/sh",
                    "-c",
                    "ldconfig && python3 -m ensurepip --default-pip && ln -s python3 /usr/local/bin/python",
                ],
            )
        return root


def surrounded(variables: dict[str, str], folder: str, words: list[str]) -> list[str]:
    """A command with these variables and no others, in a folder."""
    return ["env", "-i", f"--chdir={folder}", *(f"{name}={value}" for name, value in variables.items()), *words]


def _python(local: Path) -> None:
    """The Python that runs this script, without what was installed into it."""
    prefix = Path(sys.base_prefix)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    leave = shutil.ignore_patterns("site-packages", "__pycache__", "test", "config-*")
    shutil.copytree(prefix / "lib" / version, local / "lib" / version, symlinks=True, ignore=leave)
    for library in (prefix / "lib").glob("libpython*.so*"):
        shutil.copy2(library, local / "lib" / library.name, follow_symlinks=False)
    shutil.copy2((prefix / "bin" / version).resolve(), local / "bin" / version)
    (local / "bin" / "python3").symlink_to(version)


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()

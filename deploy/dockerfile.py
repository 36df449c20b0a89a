"""A Dockerfile and a .dockerignore, read as docker reads them, as far as ours go.

instructions("FROM a AS b\nRUN x \\\n  y") -> [("FROM", "a AS b"), ("RUN", "x y")]
"""

import json
import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath


def instructions(text: str) -> list[tuple[str, str]]:
    """Lines that end in a backslash go on; comments, also between such lines, are left out."""
    lines = [line for line in text.split("\n") if line.strip() and not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    found = (line.strip().partition(" ") for line in joined.split("\n"))
    return [(name.upper(), rest.strip()) for name, _, rest in found]


@dataclass(frozen=True)
class Copy:
    sources: tuple[str, ...]
    target: str
    stage: str | None  # None: from the build context


def copy_of(rest: str) -> Copy:
    """--from=wheel /dist/ /dist/ -> Copy(("/dist/",), "/dist/", "wheel")"""
    words = rest.split()
    options = [word for word in words if word.startswith("--")]
    paths = [word for word in words if not word.startswith("--")]
    stage = next((option.removeprefix("--from=") for option in options if option.startswith("--from=")), None)
    return Copy(tuple(paths[:-1]), paths[-1], stage)


def pairs_of(rest: str) -> dict[str, str]:
    """A=1 B="two words" -> {"A": "1", "B": "two words"}"""
    return {name: quoted or plain for name, quoted, plain in re.findall(r'([\w.]+)=(?:"([^"]*)"|(\S*))', rest)}


def words_of(rest: str) -> list[str] | None:
    """The exec form, ["limelight", "serve"]; None for the shell form."""
    return json.loads(rest) if rest.startswith("[") else None


def stages(text: str) -> list[tuple[str | None, str, list[tuple[str, str]]]]:
    """Name, base image and instructions of each stage. The last one is the image."""
    found: list[tuple[str | None, str, list[tuple[str, str]]]] = []
    for name, rest in instructions(text):
        if name == "FROM":
            base, _, alias = rest.partition(" AS ")
            found.append((alias.strip() or None, base.strip(), []))
        else:
            found[-1][2].append((name, rest))
    return found


def is_ignored(path: str, patterns: list[str]) -> bool:
    """By .dockerignore: the last pattern that fits the path or a folder above it decides; ! takes it in again."""
    ignored = False
    parts = PurePosixPath(path).parts
    prefixes = ["/".join(parts[: end + 1]) for end in range(len(parts))]
    for pattern in patterns:
        bare = pattern.removeprefix("!")
        if any(_fits(prefix, bare) for prefix in prefixes):
            ignored = not pattern.startswith("!")
    return ignored


def ignore_patterns(file: Path) -> list[str]:
    lines = (line.strip() for line in file.read_bytes().decode().split("\n"))
    return [line for line in lines if line and not line.startswith("#")]


def _fits(path: str, pattern: str) -> bool:
    """Segment by segment: * stays within a segment, ** is any number of them."""
    if pattern.startswith("**/"):
        rest = pattern.removeprefix("**/")
        parts = path.split("/")
        return any(_fits("/".join(parts[start:]), rest) for start in range(len(parts)))
    mine, its = path.split("/"), pattern.split("/")
    return len(mine) == len(its) and all(fnmatchcase(one, glob) for one, glob in zip(mine, its, strict=True))

"""Rules about files that no linter has: run by the hooks on what git tracks, and by tests/test_house.py.

python tests/house_rules.py    lists every offence and exits 1 if there is one
"""

import ast
import json
import subprocess
import sys
from functools import cache
from pathlib import Path

LARGEST = 500_000
ROOT = Path(__file__).parents[1]


@cache
def parse(text: str) -> ast.Module:
    """Seven tests look at all that we wrote."""
    return ast.parse(text)


@cache
def walk(tree: ast.AST) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(tree))


def offences(path: Path, content: bytes) -> list[str]:
    """What is wrong with one file."""
    found = []
    if len(content) > LARGEST:
        found.append(f"{path}: {len(content):,} bytes; files over {LARGEST:,} do not belong in the repository")
    text = b"\0" not in content[:8000]
    if text and content and (not content.endswith(b"\n") or content.endswith(b"\n\n")):
        found.append(f"{path}: must end with exactly one newline")
    if path.suffix == ".ipynb" and any(cell.get("outputs") for cell in json.loads(content)["cells"]):
        found.append(f"{path}: notebook with outputs; clear them")
    if path.parts[:2] == ("src", "limelight") and path.suffix == ".py":
        lines = content.count(b"\n")
        most = 250 if path.parts[2] == "model" else 300
        if lines > most:
            found.append(f"{path}: {lines} lines; a file has one idea and at most {most} lines")
        if path.stem in ("utils", "helpers", "common"):
            found.append(f"{path}: give the thing a name and a room")
    return found


def tracked() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT, capture_output=True, check=True)
    paths = (Path(name) for name in listed.stdout.decode().split("\0") if name)
    return [path for path in paths if (ROOT / path).is_file()]


def main() -> int:
    found = [offence for path in tracked() for offence in offences(path, (ROOT / path).read_bytes())]
    sys.stdout.write("".join(f"{offence}\n" for offence in found))
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())

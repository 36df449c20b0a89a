"""What a wheel and an sdist must hold and must not, and that every place states the same version.

python release/contents.py dist/*      lists what is wrong and exits 1 if anything is
"""

import re
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parents[1]
LARGEST = {".whl": 7_000_000, ".gz": 7_000_000}  # bytes, packed, 3.7 million of them the runtime of web pages; a corpus would be more
PAGE = ("limelight/serving/page/index.html", "limelight/inspection/page/desk.html")
PRIVATE = re.compile(
    r"(^|/)(\.|tests?/|keys\.toml$|secrets/|(?<!training/)runs?/|dist/|node_modules/|__pycache__/)|\.(pyc|bin|en|de|gz|safetensors|part)$"
)
HARMLESS = (".gitignore", "web/.npmrc")  # settings of git and npm, without secrets
IN_A_WHEEL = re.compile(r"limelight/|limelight-[^/]+\.dist-info/")
IN_AN_SDIST = re.compile(
    r"(src/limelight|web)/|(README|CHANGELOG|SECURITY|CONTRIBUTING|ARCHITECTURE)\.md$|LICENSE$|CITATION\.cff$|pyproject\.toml$|hatch_build\.py$|PKG-INFO$|\.gitignore$"
)


def problems_of(package: Path, page: bool = True) -> list[str]:
    """`page` is false for a wheel that was made for APIs alone."""
    names = members(package)
    wheel = package.suffix == ".whl"
    inside = names if wheel else [name.removeprefix("src/") for name in names]
    found = [
        f"{name} is missing"
        for name in (*PAGE, "limelight/py.typed", "limelight/cli/main.py", "limelight/reporting/templates/html.jinja")
        if name not in inside and (page or name not in PAGE)
    ]
    if page and not any(re.fullmatch(r"limelight/serving/page/assets/.+\.js", name) for name in inside):
        found.append("the page has no script")
    needed = ("LICENSE", "LICENSES.txt") if page else ("LICENSE",)  # of what the pages are compiled of
    found += [f"{each} is missing" for each in needed if not any(PurePosixPath(name).name == each for name in names)]
    allowed = IN_A_WHEEL if wheel else IN_AN_SDIST
    found += [
        f"{name} does not belong in it" for name in names if not allowed.match(name) or (PRIVATE.search(name) and name not in HARMLESS)
    ]
    if (size := package.stat().st_size) > LARGEST[package.suffix]:
        found.append(f"it has {size:,} bytes; at most {LARGEST[package.suffix]:,}")
    return [f"{package.name}: {problem}" for problem in found]


def members(package: Path) -> list[str]:
    """Files by their path; in an sdist without the folder that all of it stands in."""
    if package.suffix == ".whl":
        with zipfile.ZipFile(package) as wheel:
            return [name for name in wheel.namelist() if not name.endswith("/")]
    with tarfile.open(package) as sdist:
        return [member.name.partition("/")[2] for member in sdist.getmembers() if member.isfile()]


def version_of(package: Path) -> str:
    """limelight-0.1.0-py3-none-any.whl and limelight-0.1.0.tar.gz -> 0.1.0"""
    return package.name.removesuffix(".tar.gz").split("-")[1]


def version_problems(root: Path = ROOT) -> list[str]:
    """Code, changelog and citation state one version; one that is not released yet has no section of its own in the changelog."""
    code = (root / "src" / "limelight" / "__init__.py").read_bytes().decode()
    [version] = re.findall(r'^__version__ = "([^"]+)"$', code, re.M)
    sections = re.findall(r"^## (.+)$", (root / "CHANGELOG.md").read_bytes().decode(), re.M)
    cited = re.findall(r"^version: \"?([^\"\n]+)\"?$", (root / "CITATION.cff").read_bytes().decode(), re.M)
    found = []
    if sections[:1] != ["Unreleased"]:
        found.append("CHANGELOG.md: its first section must be Unreleased")
    released = [re.fullmatch(r"\[?(\d+\.\d+\.\d+)]? - (\d{4}-\d{2}-\d{2})", section) for section in sections[1:]]
    found += [
        f"CHANGELOG.md: '## {section}' is no version with a date"
        for section, match in zip(sections[1:], released, strict=True)
        if not match
    ]
    newest = next((match[1] for match in released if match), None)
    if ".dev" in version and newest == version.partition(".dev")[0]:
        found.append(f"CHANGELOG.md says that {newest} was released, and the code is {version}")
    if ".dev" not in version and newest != version:
        found.append(f"the code is {version}, and the newest release of CHANGELOG.md is {newest}")
    if cited != [version]:
        found.append(f"CITATION.cff cites {', '.join(cited) or 'no version'}, and the code is {version}")
    return found


def torch_problems(root: Path = ROOT) -> list[str]:
    """The exact torch of the image, of `make setup` and of the lock is the same, and one that the package accepts."""
    places = {
        name: re.findall(r"torch==([\d.]+)", (root / name).read_bytes().decode())
        for name in ("Makefile", "deploy/Dockerfile", "release/lock.txt")
    }
    project = tomllib.loads((root / "pyproject.toml").read_bytes().decode())["project"]
    [floor] = [each.partition(">=")[2] for each in project["optional-dependencies"]["train"] if re.match(r"torch\b", each)]
    stated = {version for found in places.values() for version in found}
    missing = [f"{name} names no torch by exact version" for name, found in places.items() if not found]
    if len(stated) != 1 or any(tuple(map(int, each.split("."))) < tuple(map(int, floor.split("."))) for each in stated):
        missing.append(f"torch is {', '.join(sorted(stated))} in {', '.join(places)}, and at least {floor} in pyproject.toml")
    return missing


if __name__ == "__main__":
    found = version_problems() + torch_problems() + [each for name in sys.argv[1:] for each in problems_of(Path(name))]
    sys.stdout.write("".join(f"{each}\n" for each in found))
    sys.exit(bool(found))

"""The pages: what is served and how long it may be kept; that a wheel has them; that they name no other host and are small."""

import base64
import gzip
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

sys.path.insert(0, str(Path(__file__).parent))
from native_server import running, stored

from limelight.serving.desk import page
from limelight.serving.queue.models import Models

pytestmark = pytest.mark.process

ROOT = Path(__file__).parents[2]
BUILT = ROOT / "src" / "limelight" / "serving" / "page"
INDEX = b'<!doctype html><script type="module" src="./assets/index-AbC1.js"></script><link href="./assets/style-xY.css">'
SCRIPT = b"console.log('lit');" * 50
DESK = ROOT / "src" / "limelight" / "inspection" / "page" / "desk.html"
PLACE = b'<script type="application/json" id="trace">null</script>'  # where an export has its trace
LOCAL_FILES = (
    "LICENSES.txt",
    "icon.svg",
    "index.html",
    "manifest.webmanifest",
    "ort.wasm",
    "prove.html",
    "sw.js",
    "worker.js",
)  # of what translates by itself
LARGEST = 60_000  # bytes that the page names, compressed: a person waits for them before anything is to be seen
LARGEST_IN_ALL = 150_000  # with the lighting desk, which is loaded when it is opened
LARGEST_FILE = 400_000  # bytes of the desk as one file, without its trace


@pytest.fixture(scope="module")
def models() -> Iterator[Models]:
    loaded = stored()
    yield loaded
    loaded.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("served") / "page"
    (made / "assets").mkdir(parents=True)
    (made / "index.html").write_bytes(INDEX)
    (made / "assets" / "index-AbC1.js").write_bytes(SCRIPT)
    (made / "assets" / "style-xY.css").write_bytes(b"a{}")
    (made.parent / "secret.txt").write_bytes(b"nobody's business")
    return made


@contextmanager
def served(folder: Path, models: Models) -> Iterator[httpx.Client]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(page, "FOLDER", folder)
        with running(models) as server:
            yield server.client


@pytest.fixture(scope="module")
def client(folder: Path, models: Models) -> Iterator[httpx.Client]:
    with served(folder, models) as opened:
        yield opened


def test_the_page_is_asked_for_each_time_and_costs_nothing_when_it_is_the_same(client: httpx.Client) -> None:
    first = client.get("/?source=en&target=de&q=hello")
    again = client.get("/", headers={"If-None-Match": first.headers["etag"]})
    other = client.get("/", headers={"If-None-Match": 'W/"0000"'})
    assert (first.status_code, first.content) == (200, INDEX)
    assert first.headers["content-type"] == "text/html; charset=utf-8"
    assert first.headers["cache-control"] == "no-cache"
    assert (again.status_code, again.content) == (304, b"")
    assert other.status_code == 200


def test_the_desk_has_an_address_that_a_person_would_try(client: httpx.Client) -> None:
    answer = client.get("/desk", follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (307, "./#/x")
    assert client.get("/desk", follow_redirects=True).content == INDEX


def test_files_with_a_hash_in_their_name_may_be_kept_for_ever(client: httpx.Client) -> None:
    script = client.get("/assets/index-AbC1.js")
    style = client.get("/assets/style-xY.css")
    assert script.content == SCRIPT
    assert script.headers["content-type"] == "text/javascript; charset=utf-8"
    assert script.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert style.headers["content-type"] == "text/css; charset=utf-8"


@pytest.mark.parametrize(
    ("accepted", "packed"),
    [
        ("gzip", True),
        ("br, gzip;q=0.5", True),
        ("*", True),
        ("identity", False),
        ("gzip;q=0", False),
        ("x-gzip", False),
    ],
)
def test_it_is_compressed_for_those_who_take_that(accepted: str, packed: bool, client: httpx.Client) -> None:
    with client.stream("GET", "/assets/index-AbC1.js", headers={"Accept-Encoding": accepted}) as answer:
        sent = b"".join(answer.iter_raw())
    assert ("content-encoding" in answer.headers) == packed
    assert (gzip.decompress(sent) if packed else sent) == SCRIPT
    assert int(answer.headers["content-length"]) == len(sent)
    assert answer.headers["vary"] == "Accept-Encoding"


def test_what_compression_makes_larger_is_sent_as_it_is(client: httpx.Client) -> None:
    style = client.get("/assets/style-xY.css", headers={"Accept-Encoding": "gzip"})
    assert "content-encoding" not in style.headers
    assert style.content == b"a{}"


def test_head_has_the_headers_of_get_and_no_body(client: httpx.Client) -> None:
    asked, told = client.get("/"), client.head("/")
    assert told.content == b""
    for name in ("content-length", "content-type", "etag", "cache-control"):
        assert told.headers[name] == asked.headers[name]


@pytest.mark.parametrize(
    "path",
    [
        "/assets/nothing.js",
        "/assets/",
        "/assets/../index.html",
        "/assets/..%2findex.html",
        "/assets/%2e%2e/%2e%2e/secret.txt",
        "/assets/..%2f..%2fsecret.txt",
        "/assets/....//secret.txt",
        "/assets//etc/passwd",
        "/assets/%00",
        "/secret.txt",
        "/index.html",
    ],
)
def test_nothing_but_the_files_of_the_page_can_be_had(path: str, client: httpx.Client) -> None:
    answer = client.send(httpx.Request("GET", str(client.base_url).rstrip("/") + path))
    assert answer.status_code == 404
    assert b"business" not in answer.content
    assert answer.json()["error"]["code"] == "not_found"


def test_a_file_that_appears_later_is_not_served(client: httpx.Client, folder: Path) -> None:
    (folder / "assets" / "late.js").write_bytes(b"1")
    assert client.get("/assets/late.js").status_code == 404


def test_without_a_page_the_server_says_how_to_build_it_and_translates(tmp_path: Path, models: Models) -> None:
    with served(tmp_path / "absent", models) as client:
        answer = client.get("/")
        assert client.post("/api/v1/translate", json={"text": "seven"}).json()["results"][0]["text"] == "sieben"
    assert answer.status_code == 200
    assert "make web" in answer.text
    assert "http" not in answer.text


def test_the_policy_lets_in_nothing_inline_and_nothing_from_elsewhere(client: httpx.Client) -> None:
    policies = {client.get(path).headers["content-security-policy"] for path in ("/", "/assets/index-AbC1.js")}
    for policy in policies:
        assert "default-src 'self'" in policy
        assert "unsafe" not in policy
        assert not re.search(r"https?:|\*", policy)


@pytest.mark.skipif(not (BUILT / "index.html").is_file(), reason="the page is not built; make web")
def test_the_built_page_is_small_names_no_other_host_and_has_nothing_inline() -> None:
    index = (BUILT / "index.html").read_bytes().decode()
    assets = {path.name: path.read_bytes() for path in (BUILT / "assets").iterdir()}
    first = set(re.findall(r'(?:src|href)="\./assets/([^"]+)"', index))
    later = set(re.findall(rb'import\("\./([^"]+)"\)|import\(`\./([^`]+)`\)', b"".join(assets.values())))
    sizes = {name: len(gzip.compress(each, 9)) for name, each in assets.items()}
    assert hosts(index.encode(), *assets.values()) <= {b"www.w3.org"}, "the names of SVG and MathML alone look like addresses"
    assert sum(sizes[name] for name in first) <= LARGEST
    assert sum(sizes.values()) <= LARGEST_IN_ALL
    assert re.findall(r"<script(?![^>]*\ssrc=)|<style|\sstyle=|\son\w+=", index) == []
    assert first | {(one or other).decode() for one, other in later} == set(assets)
    assert all(re.search(r"-[\w-]{8}\.(js|css|svg)$", name) for name in assets), "names without a hash are kept too long"


@pytest.mark.skipif(not DESK.is_file(), reason="the page is not built; make web")
def test_the_desk_is_one_small_file_that_can_ask_nobody_for_anything() -> None:
    desk = DESK.read_bytes()
    assert [path.name for path in DESK.parent.iterdir()] == ["desk.html"]
    assert len(desk) <= LARGEST_FILE
    assert desk.count(PLACE) == 1
    assert hosts(desk) <= {b"www.w3.org"}
    assert re.findall(rb'<(?:script|link|img|iframe)[^>]*\s(?:src|href)="(?!data:)', desk) == []
    (policy,) = re.findall(rb'http-equiv="Content-Security-Policy" content="([^"]+)"', desk)
    assert policy.startswith(b"default-src 'none'; ")
    assert b"unsafe" not in policy
    assert b"connect-src" not in policy
    for inline in re.findall(rb'<script type="module">(.*?)</script>|<style>(.*?)</style>', desk, re.S):
        hashed = base64.b64encode(hashlib.sha256(inline[0] or inline[1]).digest())
        assert b"'sha256-" + hashed + b"'" in policy, "the file would forbid its own script or style"


def hosts(*files: bytes) -> set[bytes]:
    return set(re.findall(rb"(?:https?:)?//([a-z0-9-]+(?:\.[a-z0-9-]+)+)", b"".join(files)))


def project(folder: Path, with_page: bool) -> Path:
    """What a wheel is made of, without web/: nothing can be built there."""
    for name in ("pyproject.toml", "README.md", "LICENSE", "hatch_build.py", ".gitignore"):
        shutil.copy(ROOT / name, folder / name)
    unwanted = shutil.ignore_patterns("__pycache__", "page")
    shutil.copytree(ROOT / "src", folder / "src", ignore=unwanted)
    if with_page:
        assets = folder / "src" / "limelight" / "serving" / "page" / "assets"
        assets.mkdir(parents=True)
        (assets.parent / "index.html").write_bytes(INDEX)
        (assets / "index-AbC1.js").write_bytes(SCRIPT)
        (assets / "style-xY.css").write_bytes(b"a{}")
        desk = folder / "src" / "limelight" / "inspection" / "page" / "desk.html"
        desk.parent.mkdir(parents=True)
        desk.write_bytes(PLACE + b'<script type="module">1</script>')
        local = folder / "src" / "limelight" / "interop" / "web" / "page"
        local.mkdir(parents=True)
        for name in LOCAL_FILES:
            (local / name).write_bytes(b"x")
    return folder


def wheel_of(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", "out"]
    kept = {name: value for name, value in os.environ.items() if name != "LIMELIGHT_NO_PAGE"}
    return subprocess.run(command, cwd=folder, env=kept | environment, capture_output=True, text=True, timeout=120)


needs_hatchling = pytest.mark.skipif(
    importlib.util.find_spec("hatchling") is None, reason="hatchling is not installed; pip install '.[dev]'"
)


@needs_hatchling
def test_the_wheel_contains_the_page_and_the_desk(tmp_path: Path) -> None:
    done = wheel_of(project(tmp_path, with_page=True))
    assert done.returncode == 0, done.stderr
    (made,) = (tmp_path / "out").iterdir()
    names = [name for name in zipfile.ZipFile(made).namelist() if "/page/" in name]
    assert sorted(names) == [
        "limelight/inspection/page/desk.html",
        *(f"limelight/interop/web/page/{name}" for name in sorted(LOCAL_FILES)),
        "limelight/serving/page/assets/index-AbC1.js",
        "limelight/serving/page/assets/style-xY.css",
        "limelight/serving/page/index.html",
    ]


@needs_hatchling
def test_there_is_no_wheel_without_the_page_unless_that_is_asked_for(tmp_path: Path) -> None:
    folder = project(tmp_path, with_page=False)
    done = wheel_of(folder)
    assert done.returncode != 0
    assert "make web" in done.stderr + done.stdout
    assert not (folder / "out").exists() or not list((folder / "out").iterdir())
    assert wheel_of(folder, LIMELIGHT_NO_PAGE="1").returncode == 0


@needs_hatchling
def test_a_page_with_a_file_missing_is_not_put_into_a_wheel(tmp_path: Path) -> None:
    folder = project(tmp_path, with_page=True)
    (folder / "src" / "limelight" / "serving" / "page" / "assets" / "style-xY.css").unlink()
    assert wheel_of(folder).returncode != 0


@needs_hatchling
def test_without_the_desk_there_is_no_wheel_either(tmp_path: Path) -> None:
    folder = project(tmp_path, with_page=True)
    (folder / "src" / "limelight" / "inspection" / "page" / "desk.html").unlink()
    assert wheel_of(folder).returncode != 0


@needs_hatchling
@pytest.mark.parametrize("script", [b'<script type="module">1</script>', b""], ids=["with a script", "without"])
@pytest.mark.parametrize("places", [0, 1, 2])
def test_a_desk_has_one_place_for_a_trace_and_a_script_to_show_it(tmp_path: Path, places: int, script: bytes) -> None:
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    hook = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hook)
    desk = tmp_path / "desk.html"
    desk.write_bytes(PLACE * places + script)
    assert hook.fillable(desk) == (places == 1 and bool(script))

"""A translator with its export works where torch, Polars and Arrow are not installed, and keeps its promises there."""

import gzip
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from absent_packages import ABSENT

from limelight.bundle import read
from limelight.interop.ctranslate2.export import export
from limelight.translator import Translator

BUNDLE = Path(__file__).parents[1] / "bundles" / "format-1"
TEXTS = ["seven three one", "one <b>two</b> three %s", "four {name} five", "\u201cnine\u201d  eight\u00a0one", ""]
WITHOUT = f"""{ABSENT}
import json
from limelight import Translator
folder, texts = json.loads(sys.argv[1])
"""

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("light") / "numbers"
    shutil.copytree(BUNDLE, folder)
    export(read(folder), "float32", [TEXTS[0], "two two nine"])
    return folder


def run(code: str, folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    asked = json.dumps([str(folder), TEXTS])
    return subprocess.run([sys.executable, "-c", WITHOUT + code, asked, *options], capture_output=True, text=True)


def test_the_same_translations_without_torch(exported: Path) -> None:
    code = """
with Translator.load(folder) as translator:
    found = translator.translate(texts, align=True)
print(json.dumps([[one.text, one.protected, one.score, one.alignment and one.alignment.as_dict()] for one in found]))
assert not any(name in sys.modules for name in HEAVY)
"""
    done = run(code, exported)
    assert done.returncode == 0, done.stderr
    with Translator.load(exported) as translator:
        expected = translator.translate(TEXTS, align=True)
    for (text, protected, score, alignment), one in zip(json.loads(done.stdout), expected, strict=True):
        assert (text, protected) == (one.text, one.protected)
        assert score == pytest.approx(one.score, abs=1e-4)
        assert alignment == (one.alignment and json.loads(json.dumps(one.alignment.as_dict())))


def test_a_bundle_without_an_export_says_what_is_missing() -> None:
    done = run("Translator.load(folder)", BUNDLE)
    assert done.returncode != 0
    assert "has nothing that runs here without torch" in done.stderr and "limelight export" in done.stderr
    looked_inside = run("Translator.load(folder, engine='torch')", BUNDLE)  # as inspect does
    assert "limelight[desk]" in looked_inside.stderr and "limelight export" not in looked_inside.stderr


def test_the_doctor_tries_the_engine_that_is_there() -> None:
    done = run("from limelight.cli.doctor.self_tests import PARTS, list_parts; print(list_parts(), PARTS['ctranslate2']())", BUNDLE)
    assert done.stdout == "['pieces', 'ctranslate2'] a model was written, loaded, and translated with\n", done.stderr


def test_the_verbs_of_the_runtime_work_and_the_others_name_their_extra(exported: Path, tmp_path: Path) -> None:
    (tmp_path / "test.en").write_bytes(b"seven three one\nnine %s two\n")
    (tmp_path / "test.de").write_bytes(b"sieben drei eins\nneun %s zwei\n")
    (tmp_path / "test.en.gz").write_bytes(gzip.compress(b"seven three one\n") + gzip.compress(b"nine %s two\n"))
    (tmp_path / "cut.gz").write_bytes(gzip.compress(b"seven three one\n" * 99)[:-9])
    (tmp_path / "test.zst").write_bytes(b"\x28\xb5\x2f\xfd packed")
    (tmp_path / "page.html").write_bytes(b"<p>seven <b>three</b> one</p>")
    (tmp_path / "terms.tsv").write_bytes(b"one\teins\n")
    code = """
import contextlib, io
from pathlib import Path
from limelight.cli.main import main

def say(*words):
    sys.argv = ["limelight", *words]
    # Bytes may be written below the text, as by `translate`.
    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True), io.StringIO()
    code = 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
    return code, out.buffer.getvalue().decode() + err.getvalue()

place = Path(sys.argv[2])
name = lambda file: str(place / file)
found = {
    "translate": say("translate", folder, "seven three one"),
    "terms": say("translate", folder, "--glossary", name("terms.tsv"), "three one"),
    "document": say("translate", folder, "--document", name("page.html"), name("seite.html")),
    "evaluate": say("evaluate", folder, name("test.en"), name("test.de"), "--json"),
    "packed": say("evaluate", folder, name("test.en.gz"), name("test.de"), "--json"),
    "cut": say("evaluate", folder, name("cut.gz"), name("test.de")),
    "zstd": say("evaluate", folder, name("test.zst"), name("test.de")),
    "help": say("--help"),
    "train": say("train", name("test.en"), name("test.de")),
    "export": say("export", folder),
    "inspect": say("inspect", folder, "seven"),
}
assert not any(name in sys.modules for name in HEAVY)
print(json.dumps(found))
"""
    done = run(code, exported, str(tmp_path))
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    for verb in ("translate", "terms", "document", "evaluate", "packed", "help"):
        assert found[verb][0] == 0, found[verb]
    assert found["translate"][1].startswith("sieben drei eins")
    assert b"<b>" in (tmp_path / "seite.html").read_bytes() and '"chrF2"' in found["evaluate"][1]
    scores = [{**json.loads(found[verb][1]), "speed": None} for verb in ("evaluate", "packed")]
    assert scores[0]["scores"] == scores[1]["scores"]
    assert found["cut"][0] == 65 and "this gzip file is cut short or damaged" in found["cut"][1]
    for verb, extra in (("train", "train"), ("export", "train"), ("inspect", "desk"), ("zstd", "train")):
        code, said = found[verb]
        assert code == 69 and said.startswith("error: ") and f"needs it; pip install 'limelight[{extra}]'" in said, said


def test_a_server_without_torch_names_what_looking_inside_needs(exported: Path) -> None:
    code = """
from fastapi.testclient import TestClient
from limelight.serving.queue.models import load
from limelight.serving.server import Server
from limelight.serving.settings import ServeSettings

server = Server.of(load([folder], 1), ServeSettings(), lambda line: None)
with TestClient(server.app, base_url="http://localhost:5000") as client:
    asked = {"/api/v1/trace": {"source": "seven"}, "/api/v1/importance": {"sentences": ["seven"]}}
    told = {path: client.post(path, json=body) for path, body in asked.items()}
    told["/api/v1/translate"] = client.post("/api/v1/translate", json={"text": "seven"})
    listed = client.get("/openapi.json").json()["paths"]
found = {path: [one.status_code, one.json(), "501" in listed[path]["post"]["responses"]] for path, one in told.items()}
server.service.close()
print(json.dumps(found))
"""
    done = run(code, exported)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found.pop("/api/v1/translate")[::2] == [200, False]
    for path, (status, said, listed) in found.items():
        assert (status, said["error"]["code"], listed) == (501, "not_installed", True), path
        assert said["error"]["hint"] == "the operator can install it: pip install 'limelight[desk]'"


def test_a_translation_loads_no_numpy(exported: Path) -> None:
    code = """
from limelight.cli.main import main
sys.argv = ["limelight", "translate", folder, "--quiet", "--beam", "2", "seven three one"]
try:
    main()
except SystemExit as end:
    assert not end.code
assert not {"numpy", "rich", "langcodes"} & sys.modules.keys()
"""
    done = run(code, exported)
    assert (done.returncode, done.stdout) == (0, "sieben drei eins\n"), done.stderr

"""A translator with its export works where torch, Polars and Arrow are not installed, and keeps its promises there."""

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


def test_the_verbs_of_the_runtime_work_and_the_others_name_their_extra(exported: Path, tmp_path: Path) -> None:
    (tmp_path / "test.en").write_bytes(b"seven three one\nnine %s two\n")
    (tmp_path / "test.de").write_bytes(b"sieben drei eins\nneun %s zwei\n")
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
    for verb in ("translate", "terms", "document", "evaluate", "help"):
        assert found[verb][0] == 0, found[verb]
    assert found["translate"][1].startswith("sieben drei eins")
    assert b"<b>" in (tmp_path / "seite.html").read_bytes() and '"chrF2"' in found["evaluate"][1]
    for verb, extra in (("train", "train"), ("export", "train"), ("inspect", "desk")):
        code, said = found[verb]
        assert code == 69 and said.startswith("error: ") and f"needs it; pip install 'limelight[{extra}]'" in said, said

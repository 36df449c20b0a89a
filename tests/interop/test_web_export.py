"""A bundle as a page: graphs in uint8 compute what they should, what is shared is stored once, and a browser translates as torch does.

torch.onnx takes about ten seconds for the smallest model, so what needs a real export is marked `reference`.
"""

import base64
import gzip
import hashlib
import json
import re
import shutil
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from queue import Empty
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

pytest.importorskip("onnxruntime", reason="ONNX Runtime is not installed; pip install 'limelight[onnx]'")
pytest.importorskip("onnxscript", reason="ONNX Script is not installed; pip install 'limelight[onnx]'")
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

import limelight.interop.web.export as web
from limelight.bundle import Bundle, read
from limelight.cli.main import app
from limelight.errors import ConfigError, ModelFileError
from limelight.files import write_whole
from limelight.interop.parity import Parity
from limelight.interop.web.browser import QUIET, START, ProofHandler, _flags, _wait, find_browsers, run_jobs
from limelight.interop.web.numbers import quantize, share

sys.path.insert(0, str(Path(__file__).parent))
from web_cases import CASES, TEXTS, cases

ROOT = Path(__file__).parents[2]
STORED = ROOT / "tests" / "bundles" / "format-1"
CHANCE = np.random.Generator(np.random.PCG64(1))


def made_graph(biased: bool = True) -> Any:
    """ids -> table[ids] -> W -> logits by the table and a bias: what a decoder does."""
    table, weight, bias = (CHANCE.normal(size=size).astype(np.float32) for size in ((20, 8), (8, 8), (20,)))
    bias = bias if biased else bias[:0]
    nodes = [
        helper.make_node("Gather", ["table", "ids"], ["x"]),
        helper.make_node("MatMul", ["x", "weight"], ["h"]),
        helper.make_node("Gemm", ["h", "table", *(["bias"] if biased else [])], ["y"], transB=1),
    ]
    tensors = [numpy_helper.from_array(array, name) for name, array in (("table", table), ("weight", weight), ("bias", bias)) if array.size]
    given = helper.make_tensor_value_info("ids", TensorProto.INT64, ["n"])
    found = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 20])
    graph = helper.make_graph(nodes, "g", [given], [found], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


def computed(model: Any) -> Any:
    onnx.checker.check_model(model)
    return onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"ids": np.arange(20)})[0]


@pytest.mark.parametrize("biased", [True, False])
def test_uint8_is_close_and_the_tied_table_is_stored_once(biased: bool) -> None:
    model = made_graph(biased)
    before, size = computed(model), len(model.SerializeToString())
    quantize(model.graph)
    after = computed(model)
    assert np.abs(after - before).max() < 0.1 * np.abs(before).max()
    assert (after.argmax(axis=1) == before.argmax(axis=1)).mean() >= 0.9
    stored = {tensor.name: tensor for tensor in model.graph.initializer}
    assert "table.q" in stored and "table" not in stored and len([name for name in stored if name.endswith(".q")]) == 2
    assert sum(len(tensor.raw_data) for tensor in stored.values()) < size / 2


def test_what_both_graphs_hold_is_taken_out_and_found_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("limelight.interop.web.numbers.SHARED_FROM", 256)
    first, second = made_graph(), made_graph()
    own = next(t for t in first.graph.initializer if t.name == "table")
    next(t for t in second.graph.initializer if t.name == "table").CopyFrom(own)
    wanted = computed(first)
    content = share([first.graph, second.graph], "shared")
    assert content == numpy_helper.to_array(own).tobytes() if not own.external_data else len(content) == 20 * 8 * 4
    (tmp_path / "shared").write_bytes(content)
    (tmp_path / "first.onnx").write_bytes(first.SerializeToString())
    found = onnxruntime.InferenceSession(tmp_path / "first.onnx").run(None, {"ids": np.arange(20)})[0]
    assert np.array_equal(found, wanted)


def test_the_cases_of_the_browsers_search_are_those_of_python() -> None:
    assert json.loads(CASES.read_bytes()) == json.loads(json.dumps(cases()))


def test_strange_pieces_are_refused_with_every_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    bundle = read(STORED)
    web.refuse_pieces(bundle)
    monkeypatch.setattr(bundle.source_tokenizer, "facts", type(bundle.source_tokenizer.facts)("char", False, ()))
    with pytest.raises(ConfigError) as caught:
        web.refuse_pieces(bundle)
    assert "table of replacements" in str(caught.value) and "algorithm is char" in str(caught.value)


def test_a_page_that_was_not_built_names_the_fix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web, "PAGE", tmp_path)
    with pytest.raises(ModelFileError, match="run make web"):
        web.export_web(read(STORED), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_what_is_no_page_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web, "find_page", lambda: tmp_path)
    (tmp_path / "notes").mkdir()
    for single in (True, False):
        with pytest.raises(ModelFileError, match="is no page of models"):
            web.export_web(read(STORED), tmp_path / "notes", single_file=single)
    with pytest.raises(ConfigError, match="'int4'; choose uint8 or float32"):
        web.export_web(read(STORED), tmp_path / "new", quantize="int4")


def fake_page(place: Path) -> Path:
    """A page with one model, as an export leaves it."""
    (place / "models" / "first").mkdir(parents=True)
    (place / web.INDEX).write_bytes(web.PLACE)
    (place / web.MODELS).write_text(json.dumps({"format": 1, "models": [{"id": "first"}]}), encoding="utf-8")
    return place


def fake_model(bundle: Bundle, folder: Path, numbers: Sequence[str]) -> dict[str, Any]:
    return {"id": "second", "names": list(numbers), "from": bundle.folder.name, "in": folder.name}


@pytest.fixture
def quick(page: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Exports that write no graphs and ask no browser."""
    monkeypatch.setattr(web, "_write_model", fake_model)
    monkeypatch.setattr(web, "find_browsers", list)
    return page


@pytest.mark.usefixtures("quick")
def test_what_an_export_into_a_page_would_lose_is_named_and_stays(tmp_path: Path) -> None:
    out = fake_page(tmp_path / "out")
    (out / ".git").mkdir()
    (out / "CNAME").write_bytes(b"example.org")
    with pytest.raises(ModelFileError, match=r"would be lost \(.git, CNAME\)"):
        web.export_web(read(STORED), out)
    assert (out / "CNAME").read_bytes() == b"example.org"
    for name in ("first", ""):
        (out / "models" / name).rmdir()
    with pytest.raises(ModelFileError, match="without its models"):
        web.export_web(read(STORED), out)


@pytest.mark.usefixtures("quick")
def test_of_two_exports_at_once_the_later_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = fake_page(tmp_path / "out")

    def meet_another(bundle: Bundle, folder: Path, numbers: Sequence[str]) -> dict[str, Any]:
        write_whole(out / web.MODELS, b"of another")
        return fake_model(bundle, folder, numbers)

    monkeypatch.setattr(web, "_write_model", meet_another)
    with pytest.raises(ModelFileError, match="by another export meanwhile"):
        web.export_web(read(STORED), out)
    assert (out / web.MODELS).read_bytes() == b"of another" and (out / "models" / "first").is_dir()


def test_names_in_other_letters_are_two_models() -> None:
    names = [web.name_model(Path(name)) for name in ("кот", "пёс", "en de", "en-de", "runs/en-de/bundle")]
    assert len(set(names)) == 4 and names[3:] == ["en-de", "en-de"] and names[0].startswith("model-")


@pytest.mark.usefixtures("quick")
def test_a_browser_that_does_not_start_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def start(*given: Any) -> list[Any]:
        if given[-1] == "chromium":
            raise ChildProcessError(given)
        return []

    monkeypatch.setattr(web, "prove_in_browser", start)
    for found, taken in ((["chromium"], None), (["chromium", "firefox"], "firefox")):
        monkeypatch.setattr(web, "find_browsers", found.copy)
        made = web.export_web(read(STORED), tmp_path / f"out-{taken}")
        assert made.browser == taken and made.parity == [] and (made.path / web.MODELS).is_file()


@pytest.mark.process
def test_a_browser_that_ends_at_once_or_is_no_program_does_not_start(tmp_path: Path) -> None:
    for browser in ("/bin/false", str(tmp_path)):
        with pytest.raises(ChildProcessError):
            run_jobs(tmp_path, [], browser)


def test_without_the_word_nothing_is_served(tmp_path: Path) -> None:
    handler = ProofHandler.__new__(ProofHandler)
    handler.word, handler.directory = "word", str(tmp_path)
    assert handler.translate_path("/word/prove.html") == str(tmp_path / "prove.html")
    assert [handler.translate_path(path) for path in ("/prove.html", "/", "/word", "/words/prove.html")] == [""] * 4
    assert handler.translate_path("/word/../../prove.html") == str(tmp_path / "prove.html")


def test_what_was_only_measured_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    figures = {"engine": "chromium", "sentences": 64, "same": 0.5, "chrf": 70.0, "score_apart": 0.0}
    for probe, said in (("made up of pieces", True), ("given", False)):
        parity = [Parity(numbers=numbers, probe=probe, **figures) for numbers in web.NUMBERS]
        monkeypatch.setattr(web, "export_web", lambda *given, made=parity: web.WebExport(given[1], {}, "chromium", made))
        done = CliRunner().invoke(app, ["export", str(STORED), "--to", "web", "-o", str(tmp_path / "out")])
        assert ("uint8 was only measured" in done.output) is said


@pytest.mark.parametrize("arguments", [["--to", "onnx", "--single-file", "-o", "x"], ["--to", "onnx", "--quantize", "uint8", "-o", "x"]])
def test_options_of_others_are_refused(arguments: list[str]) -> None:
    done = CliRunner().invoke(app, ["export", str(STORED), *arguments])
    assert isinstance(done.exception, ConfigError) and "web" in str(done.exception)


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A built page stands there, whether or not Node.js is at hand."""
    if not (web.PAGE / web.INDEX).is_file():
        made = tmp_path / "built"
        made.mkdir()
        for name in (web.PROOF, "sw.js", *web.SHELL):
            (made / name).write_bytes(b"//")
        (made / web.INDEX).write_bytes(web.PLACE)
        monkeypatch.setattr(web, "PAGE", made)
    return web.PAGE


@pytest.mark.reference
@pytest.mark.usefixtures("page")
def test_an_export_lists_its_files_adds_models_and_fits_into_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web, "find_browsers", list)
    made = web.export_web(read(STORED), tmp_path / "out")
    assert made.browser is None and made.parity == []
    listed = json.loads((tmp_path / "out" / web.MODELS).read_bytes())
    (model,) = listed["models"]
    for place, files in ((tmp_path / "out", listed["shell"]), (tmp_path / "out" / "models" / model["id"], model["files"])):
        for name, facts in files.items():
            content = (place / name).read_bytes()
            assert facts == {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    assert model["languages"] == {"en": "English", "de": "German"} and model["verdict"] is None
    assert model["numbers"] == ["uint8", "float32"] and not (tmp_path / "out" / web.PROOF).exists()
    config = json.loads((tmp_path / "out" / "models" / model["id"] / "config.json").read_bytes())
    assert config["search"]["beam"] == read(STORED).settings.search.beam and "source_ends" in config
    (tmp_path / "twin").symlink_to(STORED)
    monkeypatch.setattr(web, "_write_model", lambda bundle, folder, numbers: {**model, "id": "another"})
    web.export_web(read(STORED), tmp_path / "out")
    assert [each["id"] for each in json.loads((tmp_path / "out" / web.MODELS).read_bytes())["models"]] == [model["id"], "another"]
    monkeypatch.undo()
    packed = web._one_file(tmp_path / "out", model)
    inside = json.loads(re.search(rb'id="files">(.*?)</script>', packed)[1])  # type: ignore[index]
    for name, facts in model["files"].items():
        content = gzip.decompress(base64.b64decode(inside[f"models/{model['id']}/{name}"]))
        assert hashlib.sha256(content).hexdigest() == facts["sha256"]


@pytest.mark.process
@pytest.mark.reference
def test_a_browser_translates_as_torch_does_and_cuts_words_alike(tmp_path: Path) -> None:
    browser = next(iter(find_browsers()), None)
    if browser is None or not (web.PAGE / web.INDEX).is_file():
        pytest.skip("there is no Chromium on the PATH, or the page was not built (make web)")
    made = web.export_web(read(STORED), tmp_path / "out")
    exact = next(each for each in made.parity if each.numbers == "float32")
    assert exact.same >= 0.9 and exact.score_apart < 1e-4
    tokenizer = read(STORED).source_tokenizer
    job = {"pieces": base64.b64encode(tokenizer.model).decode(), "steps": [], "by_words": tokenizer.by_words, "texts": list(TEXTS)}
    found = run_jobs(web.PAGE, [job], browser)["results"][0]
    assert [each["ids"] for each in found] == tokenizer.encode_texts(list(TEXTS))
    (tmp_path / "out" / web.PROOF).write_bytes((web.PAGE / web.PROOF).read_bytes())
    pieces = next((tmp_path / "out" / "models").glob("*/decoder.uint8.onnx"))
    content = bytearray(pieces.read_bytes())
    content[len(content) // 2] ^= 1
    pieces.write_bytes(content)
    asked = {"model": pieces.parent.name, "numbers": "uint8", "names": [], "beam": 1, "texts": ["one"]}
    source, target = read(STORED).settings.languages
    with pytest.raises(ModelFileError, match="was changed on its way or on its disk"):
        run_jobs(tmp_path / "out", [{**asked, "source": source, "target": target}], browser)


def test_firefox_gets_a_quiet_profile_and_stands_in_where_there_is_no_chromium(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _flags("/usr/bin/firefox-esr", tmp_path) == ["--headless", "--no-remote", "--profile", str(tmp_path)]
    assert (tmp_path / "user.js").read_text("utf-8") == "".join(f'user_pref("{name}", false);\n' for name in QUIET)
    assert f"--user-data-dir={tmp_path}" in _flags("/home/firefox/bin/chromium", tmp_path)
    there = {"chromium": "/usr/bin/chromium", "firefox-esr": "/usr/bin/firefox-esr"}
    monkeypatch.setattr("limelight.interop.web.browser.shutil.which", there.get)
    assert find_browsers() == ["/usr/bin/chromium", "/usr/bin/firefox-esr"]


@pytest.mark.parametrize(
    ("code", "is_open", "error", "told"),
    [
        (None, False, ChildProcessError, "has not opened the page"),
        (1, False, ChildProcessError, "ended with code 1 before it opened the page"),
        (1, True, ModelFileError, "ended with code 1 before it had translated"),
        (None, True, ModelFileError, "has not translated the probes in 600 s"),
    ],
)
def test_a_browser_that_never_opens_the_page_does_not_start(code: int | None, is_open: bool, error: type[Exception], told: str) -> None:
    begun, asked = threading.Event(), []
    if is_open:
        begun.set()

    def nothing(timeout: float) -> bytes:
        asked.append(timeout)
        raise Empty

    with pytest.raises(error, match=told):
        _wait(SimpleNamespace(get=nothing), SimpleNamespace(poll=lambda: code), 600.0, "firefox", begun)  # type: ignore[arg-type]
    assert len(asked) == (1 if code else 600 if is_open else START + 1)


@pytest.mark.process
@pytest.mark.reference
def test_firefox_cuts_words_alike() -> None:
    browser = shutil.which("firefox-esr") or shutil.which("firefox")
    if browser is None or not (web.PAGE / web.INDEX).is_file():
        pytest.skip("there is no Firefox on the PATH, or the page was not built (make web)")
    tokenizer = read(STORED).source_tokenizer
    job = {"pieces": base64.b64encode(tokenizer.model).decode(), "steps": [], "by_words": tokenizer.by_words, "texts": list(TEXTS)}
    answer = run_jobs(web.PAGE, [job], browser)
    assert "Firefox/" in answer["agent"]
    assert [each["ids"] for each in answer["results"][0]] == tokenizer.encode_texts(list(TEXTS))

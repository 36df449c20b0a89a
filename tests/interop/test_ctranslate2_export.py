"""A real translator, of number words, exported for CTranslate2: proved the same, verified before use, and used from then on."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import limelight.interop.ctranslate2.export as interop
from limelight.bundle import read, write
from limelight.decoding.config import SearchSettings
from limelight.decoding.steps import Specials
from limelight.engines.ctranslate2 import computes_in
from limelight.errors import ConfigError, ModelFileError, RuntimeChoiceError
from limelight.interop.alignment_heads import best_heads, posteriors
from limelight.interop.ctranslate2.export import ExportParity, export
from limelight.translator.translate import Translator

STORED = Path(__file__).parents[1] / "bundles" / "format-1"
DIGITS = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
NUMBERS = [" ".join(DIGITS[int(digit)] for digit in str(number)) for number in range(7, 9_999, 431)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(STORED, tmp_path / "numbers"))


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As if training had not said which heads align, so that they are measured."""
    stored, folder = read(STORED), tmp_path_factory.mktemp("exported") / "numbers"
    write(folder, stored.settings.changed(alignment=None), stored.weights(), stored.target_tokenizer.model)
    export(read(folder), "float32", NUMBERS)
    return folder


def read_parity(folder: Path) -> ExportParity:
    return ExportParity.model_validate_json((folder / "ctranslate2" / "parity.json").read_bytes())


def test_an_export_translates_the_same_and_says_how_it_was_compared(exported: Path):
    parity = read_parity(exported)
    assert (parity.same, parity.sentences, parity.quantize) == (1.0, len(NUMBERS), "float32")
    assert parity.score_apart < 1e-4
    with Translator.load(exported, threads=1) as fast, Translator.load(exported, threads=1, engine="torch") as ours:
        assert (fast.engine.name, ours.engine.name) == ("ctranslate2", "torch")
        for a, b in zip(fast.translate(NUMBERS, align=True), ours.translate(NUMBERS, align=True), strict=True):
            assert (a.text, a.finish, a.alignment) == (b.text, b.finish, b.alignment)
            assert a.score == pytest.approx(b.score, abs=1e-4)
            assert a.confidence == pytest.approx(b.confidence, abs=1e-4)


def test_both_engines_align_by_the_heads_that_were_measured(exported: Path):
    parity = read_parity(exported)
    assert parity.alignment_from.startswith("measured")
    assert read(exported).settings.alignment == parity.alignment
    with Translator.load(exported, threads=1) as translator:
        made = translator.translate(NUMBERS, align=True)
    right = [link[0] == link[1] for one in made if one.alignment for link in one.alignment.words]
    assert sum(right) / len(right) > 0.9  # word by word, in order


def test_an_export_that_translates_otherwise_is_not_kept(folder: Path, monkeypatch: pytest.MonkeyPatch):
    right = interop.save

    def wrong(config, weights, *rest):  # type: ignore[no-untyped-def]
        name = "decoder.blocks.0.cross_attention.out.weight"
        right(config, {**weights, name: weights[name].T}, *rest)

    monkeypatch.setattr(interop, "save", wrong)
    before = sorted(path.name for path in folder.iterdir())
    with pytest.raises(ModelFileError, match="does not translate as the bundle does, and was not kept"):
        export(read(folder), "float32", NUMBERS)
    assert sorted(path.name for path in folder.iterdir()) == before
    assert [path.name for path in folder.parent.iterdir()] == ["numbers"]
    read(folder)


@pytest.mark.slow
def test_one_that_was_not_shown_to_be_good_does_not(folder: Path):
    """Of a bundle that stands alone the sentences are made up: the bound holds, and the error says how real text decides."""
    export(read(folder), "float32", NUMBERS)
    for numbers in ("int8", "float32"):
        with pytest.raises(ModelFileError, match="--probe FILE") as refused:
            export(read(folder), numbers)
        assert ("try --quantize float32" in str(refused.value)) == ("chrF" in str(refused.value)) == (numbers == "int8")
    assert read_parity(folder).quantize == "float32" and read_parity(folder).same == 1.0


@pytest.mark.slow
def test_a_new_export_takes_the_place_of_the_old(folder: Path):
    sizes = [export(read(folder), numbers, NUMBERS).bytes for numbers in ("float32", "int8")]
    assert sizes[1] < sizes[0] / 2
    assert read_parity(folder).quantize == "int8"


def test_a_changed_byte_of_the_export_is_refused_by_name(exported: Path, tmp_path: Path):
    copy = Path(shutil.copytree(exported, tmp_path / "copy"))
    path = copy / "ctranslate2" / "model.bin"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(ModelFileError, match=r"ctranslate2/model\.bin: is damaged"):
        Translator.load(copy)


@pytest.mark.slow
def test_a_folder_of_its_own_needs_nothing_of_ours(folder: Path, tmp_path: Path):
    import ctranslate2

    export(read(folder), "float32", NUMBERS, tmp_path / "engine")
    tokenizer = read(folder).source_tokenizer
    pieces = tokenizer.pieces(tokenizer.encode(["two one"]).to_pylist()[0])
    result = ctranslate2.Translator(str(tmp_path / "engine")).translate_batch([pieces])[0]
    assert "".join(result.hypotheses[0]) == "▁zwei▁eins"
    assert json.loads((tmp_path / "engine" / "parity.json").read_bytes())["same"] == 1.0
    assert not (folder / "ctranslate2").exists()
    with pytest.raises(ModelFileError, match="exists already"):
        export(read(folder), "float32", NUMBERS, tmp_path / "engine")


def test_what_the_engine_cannot_do_goes_to_torch_and_says_so(exported: Path):
    with Translator.load(exported, threads=1) as translator:
        made = translator.translate(["seven", "eight"], phrases=[["neun"], []])
    assert "neun" in made[0].text
    assert [notice.code for notice in made[0].warnings if notice.code == "engine"] == ["engine"]
    assert "phrases" in next(notice.message for notice in made[0].warnings if notice.code == "engine")
    assert made[1].text == "acht" and not made[1].warnings


def test_an_engine_asked_for_by_name_does_not_give_way(exported: Path, folder: Path):
    with (
        Translator.load(exported, threads=1, engine="ctranslate2") as translator,
        pytest.raises(ConfigError, match="phrases that must occur"),
    ):
        translator.translate(["seven"], phrases=[["neun"]])
    with pytest.raises(ConfigError, match="has no export for CTranslate2"):
        Translator.load(folder, engine="ctranslate2")
    with pytest.raises(ConfigError, match="there is no engine 'onnx'"):
        Translator.load(folder, engine="onnx")


def test_probabilities_of_pieces_are_told_when_asked_for(exported: Path):
    with Translator.load(exported, threads=1) as fast, Translator.load(exported, threads=1, engine="torch") as ours:
        search = SearchSettings(nbest=2)
        (quick,), (asked,) = fast.translate(["seven"], search), fast.translate(["seven"], search, probabilities=True)
        (wanted,) = ours.translate(["seven"], search)
    assert {piece.probability for piece in quick.pieces} == {None}
    for a, b in zip([asked, *asked.alternatives], [wanted, *wanted.alternatives], strict=True):
        assert np.allclose([p.probability for p in a.pieces], [p.probability for p in b.pieces], atol=1e-4)


def test_weights_in_unknown_numbers_are_refused(folder: Path):
    with pytest.raises(ConfigError, match="int4"):
        export(read(folder), "int4", NUMBERS)


def test_word_statistics_find_the_dictionary():
    """Words 1 to 6, each with its translation ten higher, in other orders: the statistics must link each to its own."""
    draw = np.random.default_rng(0)
    sources = [draw.permutation(np.arange(1, 7))[: draw.integers(2, 5)].tolist() for _ in range(60)]
    targets = [[word + 10 for word in reversed(source)] for source in sources]
    for source, target, rows in zip(sources, targets, posteriors(sources, targets), strict=True):
        assert rows.shape == (len(target), len(source))
        assert np.allclose(rows.sum(axis=1), 1)
        assert [source[at] + 10 for at in rows.argmax(axis=1)] == target


def test_the_best_heads_are_at_least_as_good_as_any_head_alone():
    bundle = read(STORED)
    with Translator.load(STORED, threads=1) as translator:
        sources = translator.source_ids(NUMBERS)
        targets = translator.target_ids([made.text for made in translator.translate(NUMBERS)])
    found = best_heads(bundle.load_model(), sources, targets, Specials())
    assert found.score >= max(map(max, found.scores)) > 0.5
    assert len({layer for layer, _ in found.chosen}) == 1


def test_a_bundle_whose_search_the_engine_lacks_is_exported_and_searched_by_torch(tmp_path: Path):
    stored = read(STORED)
    search = stored.settings.search.changed(coverage_penalty=0.2)
    write(tmp_path / "b", stored.settings.changed(search=search), stored.weights(), stored.target_tokenizer.model)
    assert export(read(tmp_path / "b"), "float32", NUMBERS).same == 1.0
    with Translator.load(tmp_path / "b", threads=1) as translator:
        (made,) = translator.translate(["three seven"])
    assert made.text == "drei sieben"
    assert [notice.code for notice in made.warnings] == ["engine"]


def test_numbers_that_the_engine_has_not_here_go_to_torch(exported: Path):
    known = computes_in("cpu")
    for dtype in {"bfloat16", "float32"} - known:
        with Translator.load(exported, dtype=dtype, threads=1) as translator:
            assert translator.engine.name == "torch"
    with pytest.raises(RuntimeChoiceError, match="does not run on cpu in int4"):
        Translator.load(exported, dtype="int4", engine="ctranslate2")


def test_the_size_of_batches_reaches_the_other_engine_too(exported: Path):
    with Translator.load(exported, threads=1) as translator:
        translator.batch_pieces = 64
        translator.translate(["seven"], phrases=[["neun"]])
        spare = translator._searcher.spare()
        assert spare is not None and spare.batch_pieces == 64

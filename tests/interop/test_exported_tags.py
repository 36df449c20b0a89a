"""Tags in exports and imports: other programs put them before a text by hand, and models of many languages keep all of them."""

from pathlib import Path
from typing import Any

import ctranslate2
import published_models as published
import pytest
import torch
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

import limelight.interop.ctranslate2.export as interop
from limelight.bundle import read
from limelight.decoding.config import SearchSettings
from limelight.errors import ConfigError, ModelFileError
from limelight.interop.ctranslate2.export import export
from limelight.interop.huggingface.export import export_folder
from limelight.interop.huggingface.load import import_folder
from limelight.interop.language_codes import M2M100, NLLB, shorten
from limelight.interop.parity import GIVEN, NONSENSE, VALIDATION, ParityProbes
from limelight.translator import Translator
from limelight.translator.pipeline import TranslationOptions
from tagged_bundle import DIRECTIONS, TEXTS, tokenizer, translator, write_tagged

pytestmark = [pytest.mark.process, pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses")]
GREEDY = SearchSettings(beam=1, max_length=12)
PLAIN = [text for text in TEXTS if text.isascii() and "\n" not in text and "%" not in text]
VIEWS: list[tuple[dict[str, Any], list[str]]] = [
    ({}, ["<2de>"]),
    ({"target": "fr"}, ["<2fr>"]),
    ({"target": "en", "tags": ["ui", "formal"]}, ["<2en>", "<formal>", "<ui>"]),
]


def ours(view: dict[str, Any]) -> list[str]:
    return [one.text for one in translator().translate(PLAIN, GREEDY, guards=False, **view)]


# --- out


def test_an_export_is_compared_in_every_direction_and_with_every_name() -> None:
    shared = ParityProbes(["the cat"] * 50, NONSENSE).share_out(translator())
    views = {(view.settings.languages, len(view.settings.source_begin) == 1) for view, _ in shared}
    assert views == {(direction, plain) for direction in DIRECTIONS for plain in (True, False)} and len(shared) == 12
    assert sorted(at for _, places in shared for at in places) == list(range(50))
    given = ParityProbes(["the cat"] * 50, GIVEN).share_out(translator())
    assert {view.settings.languages for view, _ in given} == {("en", "de"), ("en", "fr")}, "their language is the usual one"
    own = ParityProbes(["the cat", "he"], VALIDATION, [("fr", "en"), ("en", "de")]).share_out(translator())
    assert [(view.settings.languages, places) for view, places in own] == [(("fr", "en"), [0]), (("en", "de"), [1])]
    assert [places for _, places in ParityProbes(["the cat"] * 5, GIVEN).share_out(translator(tags=None))] == [list(range(5))]


@pytest.mark.parametrize("tag", ["<2fr>", "<ui>"])
def test_an_export_with_one_wrong_tag_is_not_kept(tag: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, right = write_tagged(tmp_path / "multi"), interop.save

    def wrong(config: Any, weights: Any, *rest: Any) -> None:
        rows = weights["source_embedding.weight"].clone()
        rows[tokenizer().id_of_control(tag)] *= -1
        right(config, {**weights, "source_embedding.weight": rows}, *rest)

    monkeypatch.setattr(interop, "save", wrong)
    with pytest.raises(ModelFileError, match="does not translate as the bundle does"):
        export(read(folder), "float32", PLAIN * 12)


@pytest.mark.slow
def test_ctranslate2_alone_translates_with_the_tag_in_front(tmp_path: Path) -> None:
    export(read(write_tagged(tmp_path / "multi")), "float32", TEXTS, into=tmp_path / "engine")
    engine = ctranslate2.Translator(str(tmp_path / "engine"))
    for view, tags in VIEWS:
        rows = [[*tags, *tokenizer().pieces(ids)] for ids in tokenizer().encode_texts(PLAIN)]
        found = engine.translate_batch(rows, beam_size=1, max_decoding_length=12)
        known = {piece: number for number, piece in enumerate(tokenizer().vocabulary)}
        assert tokenizer().decode([[known[piece] for piece in one.hypotheses[0]] for one in found]) == ours(view)


@pytest.mark.slow
def test_transformers_alone_translates_with_the_tag_in_front(tmp_path: Path) -> None:
    bundle = read(write_tagged(tmp_path / "multi", normalization=()))
    made = export_folder(bundle, tmp_path / "hf")
    assert any("<2de>" in notice and "convert_tokens_to_ids" in notice for notice in made.notices)
    theirs, model = AutoTokenizer.from_pretrained(tmp_path / "hf"), AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "hf")
    for view, tags in VIEWS:
        before = theirs.convert_tokens_to_ids(tags)
        rows = [model.generate(torch.tensor([before + theirs(text).input_ids]), num_beams=1, max_length=13)[0] for text in PLAIN]
        assert theirs.batch_decode(rows, skip_special_tokens=True) == ours(view)
    import_folder(tmp_path / "hf", tmp_path / "again")
    assert read(tmp_path / "again").settings == bundle.settings
    import_folder(tmp_path / "hf", tmp_path / "fr", (None, "fr"))
    assert read(tmp_path / "fr").settings.directions == [("en", "fr"), ("en", "de"), ("de", "en"), ("fr", "en")]
    with pytest.raises(ConfigError, match="never taught de-fr; as the usual direction give one of en-de"):
        import_folder(tmp_path / "hf", tmp_path / "other", ("de", "fr"))


def test_onnx_is_told_the_ids_of_all_tags_and_those_of_the_usual_direction(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    from limelight.interop.onnx.export import config_of
    from limelight.interop.onnx.parity import OnnxParity

    bundle = read(write_tagged(tmp_path / "multi"))
    config = config_of(bundle, bundle.folder, OnnxParity(0.0, 1, 1))
    assert config["source_begin"] == (tokenizer().id_of_control("<2de>"),)
    assert config["tags"]["target"]["fr"] == tokenizer().id_of_control("<2fr>")
    assert config["tags"]["names"]["ui"] == tokenizer().id_of_control("<ui>")


# --- in


def test_codes_are_those_that_people_write() -> None:
    found = shorten(NLLB)
    assert [found[code] for code in ("deu_Latn", "arb_Arab", "zho_Hans", "ace_Arab", "kor_Hang")] == [
        "de",
        "ar",
        "zh-Hans",
        "ace-Arab",
        "ko",
    ]
    assert len(set(found.values())) == len(NLLB)
    assert shorten(["de", "ns", "zh"]) == {"de": "de", "ns": "ns", "zh": "zh"}


@pytest.mark.parametrize(("name", "count"), [("m2m100", len(M2M100)), ("nllb", len(NLLB))])
def test_a_model_of_many_languages_keeps_them_all(name: str, count: int, tmp_path: Path) -> None:
    getattr(published, name)(tmp_path / "m")
    texts = published.sentences("en", 4, seed=4)
    for to in ("de", "fr"):
        import_folder(tmp_path / "m", tmp_path / to, ("en", to))
    with Translator.load(tmp_path / "de", threads=1) as many, Translator.load(tmp_path / "fr", threads=1) as french:
        assert many.settings.languages == many.directions[0] == ("en", "de")
        assert len(many.directions) == count * (count - 1)
        view = many.towards("fr")
        assert (view.settings.source_begin, view.settings.target_begin) == (french.settings.source_begin, french.settings.target_begin)
        assert view.translate(texts, GREEDY, guards=False) == french.translate(texts, GREEDY, guards=False)
        assert view.towards("en", "fr").target_ids(texts)[0][0] == many.settings.source_begin[0]
        with pytest.raises(ConfigError, match="there is no 'tlh'"):
            many.towards("tlh")


def test_sentences_into_several_languages_share_a_batch_with_either_engine(tmp_path: Path) -> None:
    theirs = published.m2m100(tmp_path / "m")
    with torch.no_grad():  # what no translation has is improbable in a trained model; here it would be searched again, by other sums
        theirs.get_output_embeddings().weight[-len(M2M100) - 8 :] *= 0.01
    theirs.save_pretrained(tmp_path / "m")
    import_folder(tmp_path / "m", tmp_path / "b", ("en", "de"))
    texts = published.sentences("en", 3, seed=4)
    export(read(tmp_path / "b"), "float32", texts)
    found = []
    for engine in ("torch", "ctranslate2"):
        with Translator.load(tmp_path / "b", threads=1, engine=engine) as many:
            views = [many, many.towards("fr"), many.towards("cs", "de")]
            alone = [view.translate([text], GREEDY, guards=False)[0].text for view in views for text in texts]
            planned = [sentence for view in views for sentence in view.plan(texts, GREEDY).asked]
            together = [made and made.text for made in many.run(planned, GREEDY, TranslationOptions(guards=False))]
            assert together == alone
            found.append(alone)
    assert found[0] == found[1] and len(set(found[0])) > len(texts)


def test_an_export_of_many_languages_may_begin_with_any_of_them(tmp_path: Path) -> None:
    published.m2m100(tmp_path / "m")
    import_folder(tmp_path / "m", tmp_path / "b", ("en", "de"))
    export_folder(read(tmp_path / "b"), tmp_path / "hf")
    theirs, model = AutoTokenizer.from_pretrained(tmp_path / "hf"), AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "hf")
    french = theirs.get_lang_id("fr")
    row = model.generate(**theirs(["the cat"], return_tensors="pt"), forced_bos_token_id=french, max_length=6)[0]
    assert row[1] == french == read(tmp_path / "b").settings.aim("fr").target_begin[0]


def test_a_model_of_several_targets_is_told_each_before_the_source(tmp_path: Path) -> None:
    published.marian(tmp_path / "m", tags=(">>deu<<", ">>fra<<"))
    import_folder(tmp_path / "m", tmp_path / "b", ("en", "de"))
    with Translator.load(tmp_path / "b", threads=1) as several:
        assert several.directions == [("en", "de"), ("en", "fr")]
        pieces = several.tokenizers[0].vocabulary
        assert [pieces[several.towards(to).source_ids(["the cat"])[0][0]] for to in ("de", "fr")] == [">>deu<<", ">>fra<<"]

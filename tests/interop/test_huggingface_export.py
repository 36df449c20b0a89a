"""Bundles as folders of Hugging Face: transformers loads them and translates the same, and imported again they are what they were."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("transformers", reason="compares with transformers; pip install limelight[compare]")
sys.path.insert(0, str(Path(__file__).parent))
import published_models as published
import test_huggingface_import as imports
from published_models import OnlyFirst, change_json
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer, LogitsProcessorList

from limelight.bundle import Bundle, BundleSettings, read, write
from limelight.decoding.config import SearchSettings
from limelight.errors import ConfigError, ModelFileError
from limelight.interop.ctranslate2.export import export
from limelight.interop.huggingface.export import export_folder, fitting
from limelight.interop.huggingface.load import import_folder
from limelight.model import ModelConfig, Transformer
from limelight.text.pieces.tokenizer import PieceSettings, Tokenizer, learn
from limelight.translator import Translator

pytestmark = [pytest.mark.reference, pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses")]
STORED = Path(__file__).parents[1] / "bundles" / "format-1"
POWER = SearchSettings(beam=4, length_penalty=1.0, length_norm="power", max_ratio=100, max_extra=200, max_length=60)


def pieces(language: str) -> bytes:
    texts = published.sentences(language, 150)
    return learn(texts, PieceSettings(size=380, placeholders=3, tags=2))


def bundle_of(folder: Path, *, joint: bool = True, dtype: torch.dtype = torch.float32, **changes: Any) -> Bundle:
    """A random model of ours, on pieces of ours."""
    source, target = pieces("en"), pieces("de")
    models = target if joint else (source, target)
    sizes = {} if joint else {"source_vocab_size": Tokenizer(source).size}
    shape = {"encoder_layers": 2, "decoder_layers": 1, "d_model": 20, "d_ff": 28, "num_heads": 2, "max_length": 70}
    config = ModelConfig(vocab_size=Tokenizer(target).size, **{**shape, **sizes, "norm_order": "pre", **changes})
    generator = torch.Generator().manual_seed(7)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        weights = Transformer(config).state_dict()
    weights = {name: (w + 0.1 * torch.randn(w.shape, generator=generator)).to(dtype) for name, w in weights.items()}
    write(folder, BundleSettings(languages=("en", "de"), model=config, search=POWER), weights, models, license="cc-by-4.0")
    return read(folder)


def same_files(one: Path, other: Path) -> bool:
    names = sorted(path.name for path in one.iterdir())
    return names == sorted(path.name for path in other.iterdir()) and all(
        (one / name).read_bytes() == (other / name).read_bytes() for name in names
    )


OURS: dict[str, dict[str, Any]] = {
    "pegasus": {},
    "pegasus-halves": {"position_layout": "halves"},
    "pegasus-bias": {"output_bias": True, "activation": "gelu"},
    "pegasus-decoder": {"tie": "decoder"},
    "pegasus-untied": {"tie": "none", "activation": "silu", "scale_embeddings": False},
    "pegasus-bfloat16": {"dtype": torch.bfloat16},
    "marian": {"norm_order": "post"},
    "marian-bias": {"norm_order": "post", "output_bias": True, "position_layout": "halves"},
    "marian-separate": {"norm_order": "post", "joint": False, "tie": "decoder"},
    "marian-separate-untied": {"norm_order": "post", "joint": False, "tie": "none"},
    "m2m100": {"position_layout": "tensor2tensor", "position_offset": 1},
}


@pytest.mark.process
@pytest.mark.parametrize("name", OURS)
def test_export_then_import_is_the_identity_bit_for_bit(name: str, tmp_path: Path) -> None:
    bundle = bundle_of(tmp_path / "b", **OURS[name])
    made = export_folder(bundle, tmp_path / "hf")
    assert name.split("-")[0].replace("m2m100", "m2m100for") in made.model_class.lower()
    import_folder(tmp_path / "hf", tmp_path / "again")
    assert same_files(tmp_path / "b", tmp_path / "again")


@pytest.mark.slow
@pytest.mark.parametrize("name", OURS)
def test_transformers_computes_the_same_logits(name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    bundle = bundle_of(tmp_path / "b", **OURS[name])
    export_folder(bundle, tmp_path / "hf")
    theirs, report = AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "hf", dtype=torch.float32, output_loading_info=True)
    assert not report["missing_keys"] and not report["unexpected_keys"] and not report["mismatched_keys"]
    c = bundle.settings.model
    generator = torch.Generator().manual_seed(2)
    source = torch.randint(4, c.source_vocab, (2, 9), generator=generator)
    source[1, 6:] = c.pad_token
    target = torch.randint(4, c.vocab_size, (2, 7), generator=generator)
    with torch.inference_mode():
        expected = bundle.load_model()(source, target)
        found = theirs(input_ids=source, attention_mask=(source != c.pad_token).long(), decoder_input_ids=target).logits
    assert expected.std() > 0.3
    assert (expected - found).abs().max() < 1e-5


@pytest.mark.process
@pytest.mark.parametrize("name", ["marian", "marian-separate", "marian-tags", "m2m100", "nllb", "pegasus"])
def test_an_imported_model_is_exported_and_imported_again_bit_for_bit(name: str, tmp_path: Path) -> None:
    makers: dict[str, Any] = {
        "marian-separate": lambda folder: published.marian(folder, separate=True),
        "marian-tags": lambda folder: published.marian(folder, tags=(">>deu<<", ">>fra<<")),
    }
    theirs = makers.get(name, getattr(published, name, None))(tmp_path / "m")
    import_folder(tmp_path / "m", tmp_path / "b", ("en", "de"))
    export_folder(read(tmp_path / "b"), tmp_path / "hf")
    import_folder(tmp_path / "hf", tmp_path / "again")
    assert same_files(tmp_path / "b", tmp_path / "again")
    back = AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "hf").state_dict()
    assert all(torch.equal(w, back[name]) for name, w in theirs.state_dict().items() if "embed_positions" not in name)
    languages = {
        "m2m100": {"src_lang": "en", "tgt_lang": "de"},
        "nllb": {"src_lang": "eng_Latn", "tgt_lang": "deu_Latn"},
    }
    before, after = (AutoTokenizer.from_pretrained(tmp_path / folder, **languages.get(name, {})) for folder in ("m", "hf"))
    texts = published.sentences("en", 20, seed=3)
    assert before(texts).input_ids == after(texts).input_ids
    assert before(text_target=published.sentences("de", 5)).input_ids == after(text_target=published.sentences("de", 5)).input_ids


@pytest.mark.slow
def test_a_trained_translator_translates_the_same_in_transformers(tmp_path: Path) -> None:
    """The stored bundle has learnt to write numbers in words."""
    bundle = read(STORED)
    settings = bundle.settings.changed(search=POWER)
    write(tmp_path / "b", settings, bundle.weights(), bundle.target_tokenizer.model)
    export_folder(read(tmp_path / "b"), tmp_path / "hf")
    english = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
    texts = [" ".join(english[int(digit)] for digit in str(number)) for number in range(7, 9_000, 211)]
    # Nothing that makes this model write marks by itself, which we forbid and transformers does not.
    texts += ["three ⟦0⟧ five"]
    with Translator.load(tmp_path / "b", threads=1) as translator:
        ours = [one.text for one in translator.translate(texts, guards=False)]
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "hf")
    model = AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "hf")
    batch = tokenizer(texts, return_tensors="pt", padding=True)
    theirs = tokenizer.batch_decode(model.generate(**batch), skip_special_tokens=True)
    assert theirs == ours
    assert len(set(ours)) > 40


@pytest.mark.process
def test_a_bundle_of_many_languages_translates_the_same_in_transformers(tmp_path: Path) -> None:
    published.m2m100(tmp_path / "m")
    import_folder(tmp_path / "m", tmp_path / "b", ("en", "de"))
    bundle = read(tmp_path / "b")
    settings = bundle.settings.changed(search=POWER.changed(length_penalty=0.0, max_length=20))
    write(
        tmp_path / "c",
        settings,
        bundle.weights(),
        bundle.target_tokenizer.model,
        vocabulary=bundle.target_tokenizer.numbers,
    )
    export_folder(read(tmp_path / "c"), tmp_path / "hf")
    texts = published.sentences("en", 12, seed=4)
    with Translator.load(tmp_path / "c", threads=1) as translator:
        ours = [[piece.text for piece in one.pieces] for one in translator.translate(texts, guards=False)]
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "hf")
    model = AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "hf")
    assert settings.tags is not None
    once = LogitsProcessorList([OnlyFirst(tuple(settings.tags.target_begin.values()))])
    rows = model.generate(**tokenizer(texts, return_tensors="pt", padding=True), logits_processor=once).tolist()
    assert all(row[1] == tokenizer.get_lang_id("de") for row in rows)
    assert [tokenizer.convert_ids_to_tokens([i for i in row[2:] if i not in (1, 2)]) for row in rows] == ours


# --- refusals


def test_what_no_architecture_holds_is_refused_with_every_reason() -> None:
    modern = ModelConfig.preset("3b", 1000).changed(d_model=64, num_heads=8, num_kv_heads=2)
    with pytest.raises(ConfigError) as caught:
        fitting(modern)
    for said in ("positions=rotary", "norm=rms", "bias=False", "activation=swiglu", "num_kv_heads=2"):
        assert said in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"position_offset": 3}, "position_offset=3"),
        ({"position_layout": "tensor2tensor", "norm_order": "post", "position_offset": 1}, "norm_order=post"),
        ({"position_layout": "tensor2tensor", "position_offset": 1, "output_bias": True}, "output_bias=true"),
        ({"source_vocab_size": 90, "tie": "decoder"}, "a vocabulary for each side"),
        ({"positions": "learned"}, "positions=learned"),
        ({"norm_eps": 1e-6}, "norm_eps=1e-06"),
    ],
)
def test_what_does_not_fit_is_named(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        fitting(ModelConfig(**{"vocab_size": 100, "norm_order": "pre", **changes}))
    assert said in str(caught.value)


@pytest.mark.process
@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (("d_model",), 40, "d_model=40, but limelight says 20"),
        (("scale_embedding",), False, "scale_embedding=False, but limelight says True"),
        (("limelight", "model", "start_token"), 1, "decoder_start_token_id=2, but limelight says 1"),
        (("limelight", "model", "norm_order"), "post", "which PegasusForConditionalGeneration cannot have"),
        (("limelight", "model", "d_modle"), 1, "did you mean `d_model`"),
        (("limelight", "model", "output_bias"), True, "the weights say otherwise"),
        (("limelight",), 3, "cannot be understood"),
    ],
)
def test_settings_that_contradict_the_rest_are_refused(path: tuple[str, ...], value: Any, said: str, tmp_path: Path) -> None:
    export_folder(bundle_of(tmp_path / "b"), tmp_path / "hf")
    config = json.loads((tmp_path / "hf" / "config.json").read_bytes())
    inner = config
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    published.write_json(tmp_path / "hf" / "config.json", config)
    with pytest.raises(ModelFileError) as caught:
        import_folder(tmp_path / "hf", tmp_path / "again")
    assert said in str(caught.value)


@pytest.mark.process
def test_without_our_settings_an_export_is_a_model_like_any_other(tmp_path: Path) -> None:
    """Somebody may have trained it on with transformers, which drops them."""
    bundle = bundle_of(tmp_path / "b")
    export_folder(bundle, tmp_path / "hf")
    config = json.loads((tmp_path / "hf" / "config.json").read_bytes())
    del config["limelight"]
    published.write_json(tmp_path / "hf" / "config.json", config)
    import_folder(tmp_path / "hf", tmp_path / "again")
    texts = published.sentences("en", 6)
    with Translator.load(tmp_path / "b", threads=1) as one, Translator.load(tmp_path / "again", threads=1) as other:
        search = POWER.changed(max_length=12)
        expected, found = (some.translate(texts, search, guards=False) for some in (one, other))
    assert [t.text for t in found] == [t.text for t in expected]


def test_what_theirs_cannot_say_is_said_in_a_notice_and_on_the_card(tmp_path: Path) -> None:
    made = export_folder(read(STORED), tmp_path / "hf")
    card = (tmp_path / "hf" / "README.md").read_bytes().decode()
    assert any("normalized" in notice for notice in made.notices) and any("n^0.48" in notice for notice in made.notices)
    assert all(notice in card for notice in made.notices)
    assert "library_name: transformers" in card


def test_sources_without_an_end_are_refused_since_their_tokenizers_write_one(tmp_path: Path) -> None:
    bundle = bundle_of(tmp_path / "b")
    without = replace(bundle, settings=bundle.settings.model_copy(update={"source_ends": False}))
    with pytest.raises(ConfigError, match="sources have no end piece"):
        export_folder(without, tmp_path / "hf")
    assert not (tmp_path / "hf").exists()


def test_an_export_replaces_an_export_and_nothing_else(tmp_path: Path) -> None:
    bundle = bundle_of(tmp_path / "b")
    export_folder(bundle, tmp_path / "hf")
    with pytest.raises(ModelFileError, match="exists already"):
        export_folder(bundle, tmp_path / "hf")
    export_folder(bundle, tmp_path / "hf", force=True)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.txt").write_bytes(b"years")
    with pytest.raises(ModelFileError, match="will not be replaced"):
        export_folder(bundle, tmp_path / "other", force=True)
    assert (tmp_path / "other" / "thesis.txt").read_bytes() == b"years"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b", "hf", "other"]


@pytest.mark.process
def test_a_changed_key_of_another_kind_does_no_harm(tmp_path: Path) -> None:
    export_folder(bundle_of(tmp_path / "b"), tmp_path / "hf")
    change_json(tmp_path / "hf" / "config.json", transformers_version="6.0", use_cache=False)
    import_folder(tmp_path / "hf", tmp_path / "again")
    assert same_files(tmp_path / "b", tmp_path / "again")


@pytest.mark.process
@pytest.mark.parametrize("name", ["marian", "marian-separate", "m2m100"])
def test_an_imported_model_runs_in_the_other_engine(name: str, tmp_path: Path) -> None:
    """Ids, languages and starts of others go through CTranslate2 as through torch."""
    make, changes = imports.MODELS[name]
    theirs = make(tmp_path / "m", **changes)
    imports.lead_to_the_end(theirs)
    import_folder(tmp_path / "m", tmp_path / "first", ("en", "de"))
    with torch.no_grad():  # what no translation has is improbable in a trained model; here it would be searched again, by other sums
        pieces = read(tmp_path / "first").target_tokenizer
        for number in {*pieces.controls(), pieces.unknown} - {pieces.end}:
            theirs.get_output_embeddings().weight[number] *= 0.01
    theirs.save_pretrained(tmp_path / "m")
    import_folder(tmp_path / "m", tmp_path / "b", ("en", "de"))
    texts = published.sentences("en", 12, seed=3)
    export(read(tmp_path / "b"), "float32", texts)
    with Translator.load(tmp_path / "b", threads=1) as fast, Translator.load(tmp_path / "b", engine="torch") as ours:
        assert fast.engine.name == "ctranslate2"
        for a, b in zip(fast.translate(texts, guards=False, probabilities=True), ours.translate(texts, guards=False), strict=True):
            assert (a.text, a.finish) == (b.text, b.finish)
            assert a.score == pytest.approx(b.score, abs=1e-3)
            assert a.confidence == pytest.approx(b.confidence, abs=1e-3)
            assert [p.probability for p in a.pieces] == pytest.approx([p.probability for p in b.pieces], abs=1e-3)

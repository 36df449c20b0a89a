"""Models of Hugging Face as bundles: the same logits, the same beams, and every problem at once."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("transformers", reason="compares with transformers; pip install limelight[compare]")
sys.path.insert(0, str(Path(__file__).parent))
import published_models as published
from published_models import OnlyFirst, change_json, sentences
from safetensors.torch import load_file, save_file
from transformers import AutoTokenizer, LogitsProcessorList

from limelight.bundle import read
from limelight.decoding.config import SearchSettings
from limelight.errors import ConfigError, ModelFileError
from limelight.interop.huggingface.load import HuggingFaceImport, import_folder
from limelight.translator import Translator

pytestmark = [pytest.mark.process, pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses")]
EN_DE = ("en", "de")
MODELS: dict[str, tuple[Any, dict[str, Any]]] = {
    "marian": (published.marian, {}),
    "marian-separate": (published.marian, {"separate": True}),
    "marian-separate-untied": (published.marian, {"separate": True, "tie_word_embeddings": False}),
    "marian-untied": (published.marian, {"tie_word_embeddings": False}),
    "marian-relu-unscaled": (published.marian, {"activation_function": "relu", "scale_embedding": False}),
    "marian-gelu-wide": (published.marian, {"activation_function": "gelu", "d_model": 40, "encoder_layers": 1}),
    "marian-tags": (published.marian, {"tags": (">>deu<<", ">>fra<<")}),
    "m2m100": (published.m2m100, {}),
    "m2m100-untied": (published.m2m100, {"tie_word_embeddings": False}),
    "m2m100-gelu-unscaled": (published.m2m100, {"activation_function": "gelu", "scale_embedding": False}),
    "nllb": (published.nllb, {}),
    "pegasus": (published.pegasus, {}),
    "pegasus-untied": (published.pegasus, {"tie_word_embeddings": False, "activation_function": "relu"}),
}


def made(name: str, folder: Path, seed: int = 0) -> Any:
    make, changes = MODELS[name]
    return make(folder, seed=seed, **changes)


def imported(folder: Path, output: Path | None = None) -> HuggingFaceImport:
    return import_folder(folder, output or folder.with_name(f"{folder.name}-bundle"), EN_DE)


def apart(theirs: Any, folder: Path) -> float:
    """How far the logits of a model and of its bundle are from each other, with padding in the source."""
    bundle = read(folder)
    c = bundle.settings.model
    generator = torch.Generator().manual_seed(1)
    source = torch.randint(4, c.source_vocab - 3, (3, 9), generator=generator)
    source[1, 5:] = c.pad_token
    target = torch.randint(4, c.vocab_size - 3, (3, 6), generator=generator)
    with torch.inference_mode():
        expected = theirs(input_ids=source, attention_mask=(source != c.pad_token).long(), decoder_input_ids=target).logits
        found = bundle.load_model()(source, target)
    assert expected.std() > 0.5
    return float((expected - found).abs().max())


@pytest.mark.parametrize("name", MODELS)
def test_an_imported_model_gives_the_logits_of_transformers(name: str, tmp_path: Path) -> None:
    theirs = made(name, tmp_path / name)
    assert apart(theirs, imported(tmp_path / name).folder) < 1e-5


@pytest.mark.parametrize("weight", ["decoder.layers.1.encoder_attn.k_proj", "encoder.layers.0.self_attn.v_proj"])
def test_one_transposed_weight_gives_other_logits(weight: str, tmp_path: Path) -> None:
    """The control of the test above."""
    theirs = made("marian", tmp_path / "m")
    file = tmp_path / "m" / "model.safetensors"
    weights = load_file(file)
    weights[f"model.{weight}.weight"] = weights[f"model.{weight}.weight"].T.contiguous()
    save_file(weights, file)
    assert apart(theirs, imported(tmp_path / "m").folder) > 1e-2


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_weights_keep_their_number_format(dtype: torch.dtype, tmp_path: Path) -> None:
    theirs = published.marian(tmp_path / "m", dtype=dtype)
    found = read(imported(tmp_path / "m").folder).weights()
    assert {w.dtype for w in found.values()} == {dtype}
    assert torch.equal(found["target_embedding.weight"], theirs.model.shared.weight)


def test_a_bin_of_weights_gives_the_same_bundle(tmp_path: Path) -> None:
    theirs = made("marian", tmp_path / "m")
    first = imported(tmp_path / "m", tmp_path / "first").folder
    (tmp_path / "m" / "model.safetensors").unlink()
    torch.save(theirs.state_dict(), tmp_path / "m" / "pytorch_model.bin")  # with every name of a tied matrix, and positions
    second = imported(tmp_path / "m", tmp_path / "second").folder
    assert (first / "model.safetensors").read_bytes() == (second / "model.safetensors").read_bytes()


def test_safetensors_are_preferred_to_a_bin(tmp_path: Path) -> None:
    made("marian", tmp_path / "m")
    (tmp_path / "m" / "pytorch_model.bin").write_bytes(b"not read")
    imported(tmp_path / "m")


def test_weights_in_several_files_give_the_same_bundle(tmp_path: Path) -> None:
    theirs = made("m2m100", tmp_path / "m")
    first = imported(tmp_path / "m", tmp_path / "first").folder
    (tmp_path / "m" / "model.safetensors").unlink()
    theirs.save_pretrained(tmp_path / "m", max_shard_size="20KB")
    assert len(list((tmp_path / "m").glob("model-*.safetensors"))) > 2
    second = imported(tmp_path / "m", tmp_path / "second").folder
    assert (first / "model.safetensors").read_bytes() == (second / "model.safetensors").read_bytes()


def lead_to_the_end(theirs: Any) -> None:
    """Random models hardly ever end; then no beam would be compared where it differs from others."""
    end = theirs.config.eos_token_id
    with torch.no_grad():
        if hasattr(theirs, "final_logits_bias"):
            theirs.final_logits_bias[0, end] += 4
        else:
            row = theirs.model.shared.weight[end]
            theirs.model.decoder.layer_norm.bias += 2.4 * row / row.norm()


def beams(theirs: Any, folder: Path, bundle: Path, beam: int, penalty: float) -> tuple[list[list[str]], list[list[str]], int]:
    """Pieces of both for a few sentences, and how many ended before the limit."""
    with Translator.load(bundle, threads=1) as translator:
        settings, tokenizer = translator.settings, read(bundle).target_tokenizer
        languages = {"m2m_100": {"src_lang": "en" if (folder / "vocab.json").exists() else "eng_Latn"}}
        cut = AutoTokenizer.from_pretrained(folder, **languages.get(theirs.config.model_type, {}))
        texts = sentences("en", 24, seed=5)
        never = (tokenizer.controls() | {tokenizer.unknown}) - {tokenizer.end, *settings.target_begin}
        with torch.inference_mode():
            rows = theirs.generate(
                **cut(texts, return_tensors="pt", padding=True),
                num_beams=beam,
                length_penalty=penalty,
                early_stopping=True if beam > 1 else None,
                max_length=26,
                suppress_tokens=sorted(never),
                forced_bos_token_id=settings.target_begin[0] if settings.target_begin else None,
                logits_processor=LogitsProcessorList([OnlyFirst(settings.target_begin)]),
            ).tolist()
        search = SearchSettings(beam=beam, length_penalty=penalty, length_norm="power", max_length=25, max_ratio=100, max_extra=100)
        ours = [[piece.text for piece in t.pieces] for t in translator.translate(texts, search, guards=False)]
    shown = [[i for i in row[1 + len(settings.target_begin) :] if i != tokenizer.pad] for row in rows]
    ended = sum(tokenizer.end in row for row in shown)
    return [tokenizer.pieces([i for i in row if i != tokenizer.end]) for row in shown], ours, ended


@pytest.mark.parametrize(
    ("name", "beam", "penalty"),
    [
        pytest.param("marian", 1, 1.0, marks=pytest.mark.reference),
        ("marian", 4, 1.0),
        pytest.param("marian", 5, 0.4, marks=pytest.mark.reference),
        pytest.param("marian-separate", 3, 0.0, marks=pytest.mark.reference),
        pytest.param("marian-relu-unscaled", 4, 2.0, marks=pytest.mark.reference),
        pytest.param("pegasus", 4, 1.0, marks=pytest.mark.reference),
        pytest.param("m2m100", 1, 1.0, marks=pytest.mark.reference),
        ("m2m100", 4, 1.0),
        pytest.param("m2m100", 4, 0.0, marks=pytest.mark.reference),
        pytest.param("nllb", 5, 0.6, marks=pytest.mark.reference),
    ],
)
def test_a_beam_finds_what_generate_finds(name: str, beam: int, penalty: float, tmp_path: Path) -> None:
    """generate with early_stopping=True is a beam with patience 1."""
    some_ended = 0
    for seed in (0, 3):
        folder = tmp_path / f"{name}-{seed}"
        theirs = made(name, folder, seed)
        lead_to_the_end(theirs)
        theirs.save_pretrained(folder)
        expected, found, ended = beams(theirs, folder, imported(folder).folder, beam, penalty)
        assert found == expected
        some_ended += ended
    assert some_ended > 5


def test_the_search_is_the_one_the_model_was_published_with(tmp_path: Path) -> None:
    made("marian", tmp_path / "m")
    change_json(tmp_path / "m" / "config.json", num_beams=2, max_length=30)
    change_json(
        tmp_path / "m" / "generation_config.json",
        num_beams=6,
        length_penalty=0.8,
        bad_words_ids=[[7], [3], [4, 5]],
        no_repeat_ngram_size=3,
        repetition_penalty=1.2,
    )
    result = imported(tmp_path / "m")
    found = result.settings.search
    assert (found.beam, found.length_norm, found.length_penalty, found.max_length) == (6, "power", 0.8, 29)
    assert (found.suppress, found.no_repeat_ngram) == ((3, 7), 3)
    assert any("repetition_penalty=1.2" in notice for notice in result.notices)
    assert any("several pieces" in notice for notice in result.notices)


# --- languages


def test_a_model_of_one_pair_knows_its_languages_by_its_name(tmp_path: Path) -> None:
    folder = tmp_path / "opus-mt-tc-big-fi-en"
    made("marian", folder)
    change_json(folder / "tokenizer_config.json", source_lang=None, target_lang=None)
    assert import_folder(folder, tmp_path / "a").settings.languages == ("fi", "en")
    assert import_folder(folder, tmp_path / "b", ("et", None)).settings.languages == ("et", "en")
    folder.rename(tmp_path / "model")
    with pytest.raises(ConfigError, match="give --source and --target"):
        import_folder(tmp_path / "model", tmp_path / "c")
    assert import_folder(tmp_path / "model", tmp_path / "d", name="Helsinki-NLP/opus-mt-sv-nb").settings.languages == (
        "sv",
        "nb",
    )


def test_a_language_is_a_piece_before_the_source_or_the_translation(tmp_path: Path) -> None:
    for name, before_source, before_target in (
        ("marian-tags", ">>deu<<", None),
        ("m2m100", "__en__", "__de__"),
        ("nllb", "eng_Latn", "deu_Latn"),
    ):
        made(name, tmp_path / name)
        bundle = read(imported(tmp_path / name).folder)
        tokenizer = bundle.target_tokenizer
        assert tokenizer.pieces(bundle.settings.source_begin) == [before_source]
        assert tokenizer.pieces(bundle.settings.target_begin) == ([before_target] if before_target else [])


@pytest.mark.parametrize(
    ("languages", "said"),
    [
        (("en", "zh"), "zho_Hans, zho_Hant"),
        (("en", "xx"), "no language xx"),
        (("en", None), "give --target"),
        ((None, None), "give --source and --target"),
    ],
)
def test_an_unclear_language_is_asked_for(languages: tuple[str | None, str | None], said: str, tmp_path: Path) -> None:
    made("nllb", tmp_path / "m")
    with pytest.raises(ConfigError, match=said):
        import_folder(tmp_path / "m", tmp_path / "b", languages)
    assert not (tmp_path / "b").exists()


def test_a_translation_does_not_show_its_language(tmp_path: Path) -> None:
    made("m2m100", tmp_path / "m")
    folder = imported(tmp_path / "m").folder
    tokenizer = read(folder).target_tokenizer
    with Translator.load(folder, threads=1) as translator:
        found = translator.translate(["the cat sits."], align=True, guards=False)[0]
        ids = [tokenizer.vocabulary.index(piece.text) for piece in found.pieces]
        source = tokenizer.encode(["the cat sits."]).to_pylist()[0]
        (english,), (german,) = translator.settings.source_begin, translator.settings.target_begin
        seen = translator.engine.attend([[english, *source]], [[german, *ids]])[0]
    assert ids and german not in ids and "__" not in found.text
    assert found.alignment is not None and found.alignment.source == tokenizer.pieces(source)
    for at, number in found.alignment.pieces:
        assert seen[1 + number, 1 + at] == max(seen[1 + number, 1:-1])


def test_the_score_of_a_pair_leaves_out_the_language(tmp_path: Path) -> None:
    theirs = made("m2m100", tmp_path / "m")
    folder = imported(tmp_path / "m").folder
    tokenizer, settings = read(folder).target_tokenizer, read(folder).settings
    source, target = tokenizer.encode(["the cat sits.", "die Katze sitzt."]).to_pylist()
    with Translator.load(folder, threads=1) as translator:
        found = translator.score(["the cat sits."], ["die Katze sitzt."])[0]
    begun = torch.tensor([[2, *settings.target_begin, *target]])
    with torch.inference_mode():
        logits = theirs(input_ids=torch.tensor([[*settings.source_begin, *source, 2]]), decoder_input_ids=begun).logits
    expected = logits.log_softmax(-1)[0, 1:].gather(1, torch.tensor([*target, 2])[:, None]).sum()
    assert found.log_prob == pytest.approx(float(expected), abs=1e-4)
    assert [piece.text for piece in found.pieces] == tokenizer.pieces(target)


def test_a_source_with_its_language_fills_the_positions_and_no_more(tmp_path: Path) -> None:
    made("m2m100", tmp_path / "m")
    with Translator.load(imported(tmp_path / "m").folder, threads=1) as translator:
        found = translator.translate(["cat " * 200], SearchSettings(beam=1, max_length=5), segment=False)[0]
        assert found.source_pieces == 63  # of 64: the end is one more
        assert any(notice[0] == "source_cut" for notice in found.warnings)
        assert translator.translate([""])[0].finish == "empty_input"


# --- problems


def test_every_problem_is_told_at_once(tmp_path: Path) -> None:
    made("marian", tmp_path / "m")
    (tmp_path / "m" / "target.spm").unlink()
    file = tmp_path / "m" / "model.safetensors"
    weights = load_file(file)
    weights["model.encoder.layers.0.fc1.weight"] = weights["model.encoder.layers.0.fc1.weight"][:7].contiguous()
    weights["surplus"] = weights.pop("model.decoder.layers.1.fc2.bias")
    save_file(weights, file)
    with pytest.raises(ModelFileError) as caught:
        imported(tmp_path / "m")
    for said in (
        "target.spm: is missing",
        "encoder.layers.0.fc1.weight has shape (7, 24)",
        "decoder.layers.1.fc2.bias is missing",
        "surplus is no weight",
    ):
        assert said in str(caught.value)


def test_a_config_that_cannot_be_read_does_not_hide_missing_files(tmp_path: Path) -> None:
    made("marian", tmp_path / "m")
    change_json(tmp_path / "m" / "config.json", activation_function="quick_gelu", decoder_ffn_dim=41)
    (tmp_path / "m" / "target.spm").unlink()
    (tmp_path / "m" / "model.safetensors").unlink()
    with pytest.raises(ModelFileError) as caught:
        imported(tmp_path / "m")
    for said in ("quick_gelu", "decoder_ffn_dim=41", "target.spm: is missing", "model.safetensors: is missing"):
        assert said in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"encoder_ffn_dim": 41}, "encoder_ffn_dim=41 and decoder_ffn_dim=40"),
        ({"decoder_attention_heads": 2}, "one for both"),
        ({"activation_function": "quick_gelu"}, "quick_gelu"),
        ({"normalize_before": True}, "normalize_before=False only"),
        ({"d_model": 25}, "does not split"),
        ({"vocab_size": 3}, "vocabulary of 3"),
        ({"d_model": 10**9}, "d_model"),
        ({"encoder_layers": 10**9}, "encoder_layers"),
        ({"max_position_embeddings": -1}, "max_position_embeddings"),
        ({"eos_token_id": "zero"}, "eos_token_id"),
        ({"pad_token_id": 5}, "vocab.json: has id"),
        ({"quantization_config": {"bits": 4}}, "quantization_config"),
        ({"model_type": "t5"}, "architectures that can be"),
        ({"model_type": ["marian"]}, "architectures that can be"),
    ],
)
def test_a_config_that_cannot_be_computed_is_refused(changes: dict[str, Any], said: str, tmp_path: Path) -> None:
    made("marian", tmp_path / "m")
    change_json(tmp_path / "m" / "config.json", **changes)
    with pytest.raises(ModelFileError) as caught:
        imported(tmp_path / "m")
    assert said in str(caught.value)
    assert not (tmp_path / "m-bundle").exists()


def test_weights_that_are_no_numbers_are_refused(tmp_path: Path) -> None:
    made("marian", tmp_path / "m")
    file = tmp_path / "m" / "model.safetensors"
    weights = load_file(file)
    weights["model.encoder.layers.0.fc1.bias"][3] = torch.nan
    save_file(weights, file)
    with pytest.raises(ModelFileError, match=r"fc1.bias has values that are infinite or no numbers"):
        imported(tmp_path / "m")


def test_a_vocabulary_larger_than_the_embedding_is_refused(tmp_path: Path) -> None:
    made("marian", tmp_path / "m")
    numbers = json.loads((tmp_path / "m" / "vocab.json").read_bytes())
    change_json(tmp_path / "m" / "vocab.json", one_more=max(numbers.values()) + 1)
    with pytest.raises(ModelFileError, match=r"vocab.json: has ids up to \d+, but the embedding"):
        imported(tmp_path / "m")


def test_learned_positions_are_refused(tmp_path: Path) -> None:
    theirs = made("pegasus", tmp_path / "m")
    with torch.no_grad():
        theirs.model.decoder.embed_positions.weight[3] += 0.1
    theirs.save_pretrained(tmp_path / "m")
    with pytest.raises(ModelFileError, match="is not the table of sinusoids"):
        imported(tmp_path / "m")


def test_matrices_that_are_tied_and_differ_are_kept_apart_as_transformers_does(tmp_path: Path) -> None:
    theirs = made("marian-untied", tmp_path / "m")
    change_json(tmp_path / "m" / "config.json", tie_word_embeddings=True)
    result = imported(tmp_path / "m")
    assert result.settings.model.tie == "none" and any("but they differ" in notice for notice in result.notices)
    assert apart(theirs, result.folder) < 1e-5

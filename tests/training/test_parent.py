"""A parent: rows of an embedding are kept, spelt or at the mean; all else is inherited; and a killed run of it goes on bit for bit."""

import signal
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[1] / "interop"))
from small_runs import DONE, Signal, Small, data, make_corpus, remains, story

import tagged_bundle
from limelight.bundle import Bundle, read, write
from limelight.corpus.config import CorpusSettings, HeldOutSettings, PrepareSettings
from limelight.corpus.exchange.engine_local import LocalEngine
from limelight.corpus.feeding.shards import PreparedCorpus
from limelight.corpus.prepare import prepare
from limelight.decoding.config import SearchSettings
from limelight.errors import ConfigError
from limelight.model.config import ModelConfig
from limelight.model.transformer import Transformer
from limelight.text.pieces.tokenizer import PieceSettings, Tokenizer, learn
from limelight.training.config import FineTuning
from limelight.training.recipe.choose import FINE_TUNING_RATE, PARENT_RATE
from limelight.training.recipe.parent import find_inherited, fit_model, is_parent, load_first_weights
from limelight.training.recipe.replay import inherit_from
from limelight.training.recipe.resolve import _list_split_off

STORED = Path(__file__).parents[1] / "bundles" / "format-1"  # number words, en to de
TEXTS = ["five sevens and eleven nines", "dreizehn siebenundzwanzig einundachtzig", "ŋoma ŋombe mbili tatu nne"] * 40


def new_tokenizer(**more: Any) -> Tokenizer:
    return Tokenizer(learn(TEXTS, PieceSettings(size=420, **more)))


def row(bundle: Bundle, *pieces: str) -> torch.Tensor:
    """The mean of old rows by the spelling of their pieces."""
    numbers = [bundle.target_tokenizer.vocabulary.index(piece) for piece in pieces]
    return bundle.weights()["target_embedding.weight"][numbers].mean(0)


def test_rows_are_kept_or_begin_at_the_mean_of_the_pieces_that_spell_them() -> None:
    old, new = read(STORED), new_tokenizer()
    source, target = find_inherited(old, (new, new))
    assert source is target, "one matrix"
    moved = target.move(old.weights()["target_embedding.weight"])
    assert moved.shape == (new.size, 32)
    theirs = old.target_tokenizer
    for piece in ("▁five", "<0x41>", "⟦2⟧", "n"):
        assert torch.equal(moved[new.vocabulary.index(piece)], row(old, piece))
    model = old.settings.model
    for number, before in ((new.pad, model.pad_token), (new.start, model.start_token), (new.end, model.end_token)):
        assert torch.equal(moved[number], old.weights()["target_embedding.weight"][before])
    begins = next(piece for piece in new.vocabulary if len(piece) > 4 and piece[0] == "▁" and piece not in theirs.vocabulary)
    spelt = theirs.pieces(theirs.encode_texts([begins[1:]])[0])
    assert len(spelt) > 1 and torch.allclose(moved[new.vocabulary.index(begins)], row(old, *spelt))
    assert target.kept + sum(each is not None and len(each) > 1 for each in target.rows) <= new.size
    told = f"{target.kept:,} of {new.size:,} pieces kept, "
    assert str(target).startswith(told) and "from their spelling" in str(target)


def test_a_piece_inside_a_word_is_spelt_without_a_space() -> None:
    old = read(STORED)
    new = new_tokenizer()
    target = find_inherited(old, (new, new))[1]
    theirs = old.target_tokenizer
    inside = [
        n for n, piece in enumerate(new.vocabulary) if len(piece) > 1 and piece.isalpha() and target.rows[n] and len(target.rows[n]) > 1
    ]
    assert inside
    for number in inside:
        pieces = theirs.pieces(target.rows[number])
        assert not any(piece.startswith("▁") for piece in pieces)
        letters = b"".join(bytes([int(piece[3:5], 16)]) if piece.startswith("<0x") else piece.encode() for piece in pieces)
        assert letters.decode() == new.vocabulary[number]


def test_a_bias_of_pieces_moves_like_a_row() -> None:
    new = new_tokenizer()
    target = find_inherited(read(STORED), (new, new))[1]
    moved = target.move(torch.arange(345.0))
    assert moved.shape == (new.size,)
    assert moved[new.vocabulary.index("▁five")] == read(STORED).target_tokenizer.vocabulary.index("▁five")


def test_what_nothing_spells_begins_at_the_mean_of_all(tmp_path: Path) -> None:
    """Pieces without bytes know no ŋ."""
    write(tmp_path / "old", tagged_bundle.settings_of(), tagged_bundle.model().state_dict(), (tagged_bundle.tokenizer().model,) * 2)
    old, new = read(tmp_path / "old"), new_tokenizer()
    source, target = find_inherited(old, (new, new))
    for rows, name in ((source, "source_embedding.weight"), (target, "target_embedding.weight")):
        weight = old.weights()[name]
        moved = rows.move(weight)
        assert torch.allclose(moved[new.vocabulary.index("ŋ")], weight.mean(0), atol=1e-6)
        assert torch.allclose(moved[new.vocabulary.index("<0x41>")], weight.mean(0), atol=1e-6)
    assert "at the mean of all" in str(target)


def test_a_language_that_was_told_keeps_its_tag_and_a_new_one_begins_between_those_that_were(tmp_path: Path) -> None:
    write(tmp_path / "old", tagged_bundle.settings_of(), tagged_bundle.model().state_dict(), (tagged_bundle.tokenizer().model,) * 2)
    old, new = read(tmp_path / "old"), new_tokenizer(named=("<2fr>", "<2yao>", "<ui>", "<odd>"))
    weight, tags = old.weights()["source_embedding.weight"], old.settings.tags
    assert tags is not None
    moved = find_inherited(old, (new, new))[0].move(weight)
    assert torch.equal(moved[new.id_of_control("<2fr>")], weight[tags.target["fr"]])
    assert torch.equal(moved[new.id_of_control("<ui>")], weight[tags.names["ui"]])
    assert torch.allclose(moved[new.id_of_control("<2yao>")], weight[[*tags.target.values()]].mean(0))
    assert torch.allclose(moved[new.id_of_control("<odd>")], weight.mean(0), atol=1e-6)


def test_a_text_that_spells_a_tag_does_not_inherit_it() -> None:
    old = read(STORED)
    new = Tokenizer(learn(["<tag:1> <tag:1> five"] * 50, PieceSettings(size=420, tags=1)))
    target = find_inherited(old, (new, new))[1]
    assert old.target_tokenizer.tag(1) not in [number for each in target.rows for number in each or ()]


@pytest.mark.parametrize(
    ("direction", "parent"),
    [
        (("en", "de"), False),
        (("en-GB", "de-AT"), False),
        (("eng", "deu"), False),
        (("en", "yao"), True),
        (("fr", "de"), True),
        (("de", "en"), True),
    ],
)
def test_a_language_that_was_not_taught_makes_a_parent(direction: tuple[str, str], parent: bool) -> None:
    assert is_parent(read(STORED).settings, direction) is parent


def test_of_many_languages_each_that_was_taught_is_known() -> None:
    settings = tagged_bundle.settings_of()
    assert not is_parent(settings, ("fr", "de"), ("de", "fr"))
    assert is_parent(settings, ("en", "de"), ("en", "yao"))


def test_what_names_pieces_by_id_is_not_inherited(tmp_path: Path) -> None:
    settings = tagged_bundle.settings_of(search=SearchSettings(beam=3, suppress=(7,)), alignment=((0, 1),))
    write(tmp_path / "old", settings, tagged_bundle.model().state_dict(), (tagged_bundle.tokenizer().model,) * 2, license="cc-by-4.0")
    kept = inherit_from(read(tmp_path / "old"), new_pieces=True)
    assert kept is not None and (kept.tags, kept.search.suppress) == (None, ())
    assert (kept.search.beam, kept.alignment, kept.license) == (3, ((0, 1),), "cc-by-4.0")


def test_a_child_learns_faster_than_fine_tuning_and_slower_than_from_nothing() -> None:
    assert FINE_TUNING_RATE < PARENT_RATE < 1


def test_a_run_says_that_it_is_judged_by_what_the_old_translator_may_know() -> None:
    """Where it splits off a set by itself."""
    assert _list_split_off(HeldOutSettings()) == ["valid set", "test set"]
    assert _list_split_off(HeldOutSettings(valid=("v.en", "v.de"))) == ["test set"]
    assert _list_split_off(HeldOutSettings(valid=("v.en", "v.de"), test_pairs=0)) == []
    assert _list_split_off(HeldOutSettings(test=("t.en", "t.de"))) == [], "as `learn` asks for"


# --- real text and runs


def prepared_in(folder: Path, **pieces: Any) -> PreparedCorpus:
    """A text in another language, with its own pieces."""
    folder.mkdir(parents=True)
    (folder / "t.en").write_bytes(b"".join(b"the old cat sits on mat %d\n" % n for n in range(60)))
    (folder / "t.yao").write_bytes("".join(f"ŋoma ja mbili {n} pa mkeka\n" for n in range(60)).encode())
    settings = PrepareSettings(
        languages=("en", "yao"),
        corpora=[CorpusSettings(name="t", paths=[str(folder / "t.en"), str(folder / "t.yao")])],
        filters={"wrong_language": "off", "repetition": "off"},
        held_out={"valid_pairs": 4, "test_pairs": 0},
        pieces={"size": 400, "character_coverage": 1.0, **pieces},
    )
    prepare(settings, folder / "prepared", LocalEngine(0), lambda _: None)
    return PreparedCorpus.open(folder / "prepared")


def check_first_weights(bundle: Path, prepared: PreparedCorpus) -> None:
    """They fit the new model, and all that is no row of a piece is the parent's."""
    old = read(bundle)
    weights = load_first_weights(FineTuning(bundle=str(bundle), parent="x"), prepared)
    model = Transformer(fit_model(old.settings.model, prepared))
    model.load_state_dict(weights)
    rows = {"source_embedding.weight", "target_embedding.weight", "output.weight", "output_bias"}
    assert all(torch.equal(weights[name], weight) for name, weight in old.weights().items() if name not in rows)
    assert model.config.vocab_size == prepared.manifest.vocab_sizes[1] and all(torch.isfinite(each).all() for each in weights.values())
    assert not torch.equal(weights["target_embedding.weight"].std(0), torch.zeros(model.config.d_model))


@pytest.mark.slow
def test_one_embedding_needs_one_set_of_pieces_and_two_may_have_either(tmp_path: Path) -> None:
    apart = prepared_in(tmp_path / "apart", joint=False)
    with pytest.raises(ConfigError, match=r"pieces\.joint"):
        fit_model(read(STORED).settings.model, apart)
    write(tmp_path / "old", tagged_bundle.settings_of(), tagged_bundle.model().state_dict(), (tagged_bundle.tokenizer().model,) * 2)
    check_first_weights(tmp_path / "old", apart)
    check_first_weights(STORED, prepared_in(tmp_path / "joint"))


@pytest.mark.process
@pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses")
@pytest.mark.parametrize("kind", ["marian", "marian-separate", "m2m100", "nllb"])
def test_a_published_model_is_a_parent(kind: str, tmp_path: Path) -> None:
    pytest.importorskip("transformers", reason="makes a small model of theirs; pip install limelight[compare]")
    import published_models as published

    from limelight.interop.huggingface.load import import_folder

    name, _, separate = kind.partition("-")
    getattr(published, name)(tmp_path / "m", **({"separate": True} if separate else {}))
    import_folder(tmp_path / "m", tmp_path / "b", ("en", "de"))
    old, prepared = read(tmp_path / "b"), prepared_in(tmp_path / "text", joint=not separate)
    assert is_parent(old.settings, ("en", "yao"))
    check_first_weights(tmp_path / "b", prepared)
    source, new = find_inherited(old, prepared.tokenizers())[0], prepared.tokenizers()[0]
    shared = next(piece for piece in new.vocabulary if len(piece) > 2 and piece in old.source_tokenizer.vocabulary and piece[0] != "<")
    assert source.rows[new.vocabulary.index(shared)] == [old.source_tokenizer.vocabulary.index(shared)]
    assert source.rows[new.start] == [old.settings.model.start_token]


@pytest.mark.process
def test_a_run_that_begins_with_a_parent_goes_on_after_a_kill_bit_for_bit(tmp_path: Path) -> None:
    corpus = make_corpus(tmp_path / "corpus")
    prepared = PreparedCorpus.open(corpus / "prepared")
    model: ModelConfig = fit_model(read(STORED).settings.model, prepared)
    changes = {
        "data": data(corpus),
        "model": {**model.model_dump(), "max_length": 22, "dropout": 0.1},
        "schedule": {"steps": 4, "warmup": 1},
        "validation": {"every": 4, "sentences": 2},
        "probes": {"sentences": 0},
        "checkpoints": {"every_seconds": 0.001},
        "fine_tuning": {"bundle": str(STORED), "replay": 0.0, "parent": "en to de"},
    }
    straight, killed = (Small(corpus, tmp_path / name, changes) for name in ("straight", "killed"))
    assert straight.live() == DONE
    assert killed.live(Signal(after_step=3, number=signal.SIGKILL)) == -signal.SIGKILL
    assert killed.live() == DONE
    assert story(killed.run) == story(straight.run) and remains(killed.run) == remains(straight.run)
    told = read(straight.run).settings.trained_on
    assert told is not None and told["parent"] == "en to de"

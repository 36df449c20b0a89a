"""From the command line of `limelight train` to what is asked: budgets, keys, recipes, fine-tuning, and errors that name the fix."""

import re
from pathlib import Path
from typing import Any

import pytest

from limelight.cli.train.request import budget_seconds
from limelight.cli.train.request import parse_train_request as parse
from limelight.corpus.config import PrepareSettings
from limelight.errors import ConfigError, LimelightError
from limelight.model.config import PRESETS, ModelConfig
from limelight.training.config import Recipe
from limelight.training.recipe.monolingual import MonoText
from limelight.training.recipe.request import TrainRequest
from limelight.training.run_folder import RunFacts
from tagged_bundle import tags_of, write_tagged

BUNDLE = Path(__file__).parents[1] / "bundles" / "format-1"  # translates en to de


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """With corpus.en, corpus.de and recipe.toml, as the current folder."""
    monkeypatch.chdir(tmp_path)
    for name in ("corpus.en", "corpus.de"):
        (tmp_path / name).write_bytes(b"a\n")
    recipe().save(tmp_path / "recipe.toml")
    return tmp_path


FILES = ["corpus.en", "corpus.de"]


def recipe() -> Recipe:
    data = PrepareSettings(languages=("en", "de"), corpora=[{"name": "corpus", "paths": FILES}])
    return Recipe(data=data, model=ModelConfig.preset("tiny", 500), seed=7)


TEXT = ("source", "target", "valid", "test", "vocab_size", "weight", "swap")


def parse_train_request(inputs: list[str], **options: Any) -> tuple[TrainRequest, Path]:
    text = {name: options.pop(name) for name in TEXT if name in options}
    return parse(inputs, text=text, **options)


def refused(inputs: list[str], *words: str, **options: Any) -> str:
    with pytest.raises(LimelightError) as caught:
        parse_train_request(inputs, **options)
    for word in words:
        assert word in str(caught.value), str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30m", 1800),
        ("2h", 7200),
        ("90s", 90),
        ("1h30m", 5400),
        ("1.5h", 5400),
        ("1d2h", 93_600),
        ("1h 30m", 5400),
        ("2H", 7200),
        ("1m30s", 90),
    ],
)
def test_a_budget_is_a_time_with_units(text: str, seconds: float) -> None:
    assert budget_seconds(text) == seconds


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        ("30", "30m for minutes"),
        ("1.5", "1.5h for hours"),
        ("", "30m, 2h"),
        ("soon", "30m, 2h"),
        ("-5m", "30m, 2h"),
        ("30m1h", "1h30m"),
        ("1h30", "1h30m"),
        ("0m", "such as 10m"),
        ("infh", "30m, 2h"),
    ],
)
def test_a_budget_that_cannot_be_told_is_refused_with_how_to_write_it(text: str, fix: str) -> None:
    assert f"--budget {text}" in refused(FILES, fix, budget=text)


def test_two_files_are_enough() -> None:
    asked, folder = parse_train_request(FILES)
    assert asked.data is not None and asked.data.languages == ("en", "de")
    assert [corpus.paths for corpus in asked.data.corpora] == [FILES]
    assert folder == Path("en-de")
    assert (asked.recipe, asked.changes, asked.budget_seconds, asked.bundle, asked.dry_run) == (
        None,
        {},
        None,
        None,
        False,
    )


def test_what_is_given_by_name_arrives() -> None:
    asked, folder = parse_train_request(
        FILES,
        output=Path("out"), budget="2h", steps=5, preset="tiny", seed=3, device="cpu", precision="float32", threads=2,
        dry_run=True, valid=("dev.tsv",), test=("test.tsv",), vocab_size=500, weight=("corpus=2",), source="en-US",
    )  # fmt: skip
    assert folder == Path("out") and asked.data is not None
    assert (asked.budget_seconds, asked.steps, asked.preset, asked.seed, asked.device) == (7200, 5, "tiny", 3, "cpu")
    assert (asked.precision, asked.threads, asked.dry_run) == ("float32", 2, True)
    assert (asked.data.held_out.valid, asked.data.held_out.test) == (("dev.tsv",), ("test.tsv",))
    assert (asked.data.pieces.size, asked.data.corpora[0].weight) == (500, 2.0)
    assert asked.data.languages == ("en-US", "de")


def test_keys_of_the_data_go_into_it_and_the_others_beside_it() -> None:
    written = ["data.filters.copied=off", "data.seed=5", "seed=6", "optimizer.beta1=0.8", "optimizer.name=muon"]
    asked, _ = parse_train_request([*FILES, *written, "average.decay=0.99", "batch.longest=80"])
    assert asked.data is not None
    assert (asked.data.filters.copied, asked.data.seed) == ("off", 5)
    assert asked.changes == {
        "seed": 6,
        "optimizer": {"beta1": 0.8, "name": "muon"},
        "average": {"decay": 0.99},
        "batch": {"longest": 80},
    }


def test_text_may_be_left_as_it_is() -> None:
    assert parse_train_request(FILES, no_augment=True)[0].changes == {"batch": {"augment": None}}
    asked, _ = parse_train_request([*FILES, "batch.longest=80"], no_augment=True)
    assert asked.changes == {"batch": {"longest": 80, "augment": None}}
    refused([*FILES, "batch.augment.upper=0.1"], "--no-augment", "batch.augment.upper", no_augment=True)
    refused(["recipe.toml"], "--no-augment: leave it out, and change its [batch.augment]", no_augment=True)


def test_shares_of_changed_text_are_keys_like_any_other() -> None:
    asked, _ = parse_train_request([*FILES, "batch.augment.upper=0.1", "batch.augment.terms=0"])
    assert asked.changes == {"batch": {"augment": {"upper": 0.1, "terms": 0}}}
    refused([*FILES, "batch.augment.uper=0.1"], "did you mean `batch.augment.upper`")
    refused([*FILES, "batch.augment.upper=2"], "batch.augment.upper", "less than or equal to 1")


def test_a_file_that_looks_like_a_setting_is_a_file(folder: Path) -> None:
    (folder / "seed=5.tsv").write_bytes(b"a\tb\n")
    asked, _ = parse_train_request(["seed=5.tsv"], source="en", target="de")
    assert asked.data is not None and asked.data.corpora[0].paths == ["seed=5.tsv"] and asked.changes == {}


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("optimizer.learning_rat=1", "optimizer.learning_rate"),
        ("optimizr.learning_rate=1", "optimizer.learning_rate"),
        ("learning_rate=0.001", "optimizer.learning_rate"),
        ("dropout=0.3", "model.dropout"),
        ("model.dropot=0.3", "model.dropout"),
        ("filters.copied=off", "data.filters.copied"),
        ("data.filters.copid=off", "data.filters.copied"),
        ("sed=1", "seed"),
        ("warmup=5", "schedule.warmup"),
    ],
)
def test_an_unknown_key_is_refused_with_the_one_that_was_meant(written: str, meant: str) -> None:
    refused([*FILES, written], f"{written.partition('=')[0]}: there is no such key; did you mean `{meant}`")


def test_a_key_like_no_other_is_refused_with_those_there_are() -> None:
    refused([*FILES, "xyzzy=1"], "xyzzy: there is no such key", "optimizer", "schedule", "model")
    refused([*FILES, "optimizer.xyzzy=1"], "known keys", "optimizer.learning_rate", "optimizer.clip")


def test_every_wrong_key_and_value_is_named_at_once_and_before_any_text_is_read() -> None:
    told = refused(
        [
            "missing.en",
            "missing.de",
            "optimizer.learning_rate=fast",
            "model.dropout=2",
            "sed=1",
            "data.filters.copied=maybe",
        ]
    )
    for part in (
        "optimizer.learning_rate:",
        "'fast'",
        "model.dropout:",
        "less than 1",
        "`seed`",
        "data.filters.copied:",
    ):
        assert part in told
    assert told.count("\n  - ") == 4


def test_a_value_in_the_place_of_a_section_says_so() -> None:
    refused([*FILES, "optimizer=fast"], "optimizer: this is a section", "optimizer.KEY=VALUE", "learning_rate")


def test_values_that_depend_on_what_is_chosen_later_are_not_judged_yet() -> None:
    """100 does not split into the eight heads of the default, but the preset that is chosen may have five."""
    asked, _ = parse_train_request([*FILES, "model.d_model=100", "schedule.steps=100"])
    assert asked.changes == {"model": {"d_model": 100}, "schedule": {"steps": 100}}


def test_nothing_to_learn_from_says_how_it_is_done() -> None:
    refused([], "limelight train corpus.en corpus.de -o en-de --budget 30m")
    refused(["seed=1"], "limelight train corpus.en corpus.de -o en-de --budget 30m")


def test_languages_that_cannot_be_told_are_asked_for_by_the_options_of_this_verb(folder: Path) -> None:
    for name in ("left", "right"):
        (folder / name).write_bytes(b"a\n")
    told = refused(["left", "right"], "--source en --target de")
    assert "--from" not in told
    asked, place = parse_train_request(["left", "right"], source="en", target="nl")
    assert asked.data is not None and asked.data.languages == ("en", "nl") and place == Path("en-nl")


def test_an_unknown_preset_is_refused_with_those_there_are() -> None:
    refused(FILES, "--preset hug", *PRESETS, preset="hug")


# A recipe in place of corpora.


def test_a_recipe_is_taken_whole_and_changed_by_what_is_written() -> None:
    asked, folder = parse_train_request(["recipe.toml"], steps=9)
    assert (asked.recipe, asked.data, asked.steps, folder) == (recipe(), None, 9, Path("en-de"))
    asked, _ = parse_train_request(["recipe.toml", "model.dropout=0.3", "data.filters.copied=off", "schedule.warmup=7"])
    assert asked.recipe is not None
    assert (asked.recipe.model.dropout, asked.recipe.data.filters.copied, asked.recipe.schedule.warmup) == (
        0.3,
        "off",
        7,
    )
    assert (asked.recipe.model.d_model, asked.recipe.seed) == (128, 7)


def test_changes_to_a_recipe_are_judged_with_the_rest_of_it() -> None:
    refused(["recipe.toml", "model.num_heads=3"], "d_model=128", "num_heads=3", "try num_heads=1")


def test_a_recipe_beside_corpora_is_refused() -> None:
    refused([*FILES, "recipe.toml"], "recipe.toml is a recipe", "give it alone")


def test_options_that_a_recipe_decides_are_refused_all_at_once_with_what_to_change() -> None:
    told = refused(
        ["recipe.toml"], "--valid: leave it out, and change data.held_out.valid", "--preset", "--vocab-size", "data.pieces.size",
        valid=("dev.tsv",), preset="tiny", vocab_size=500,
    )  # fmt: skip
    assert told.count("\n  - ") == 3
    refused(["recipe.toml"], "--from", "fine_tuning.bundle", bundle=BUNDLE)


def test_a_recipe_that_is_missing_or_broken_is_named(folder: Path) -> None:
    refused(["missing.toml"], "missing.toml does not exist", "check the name")
    (folder / "broken.toml").write_bytes(b"[model\n")
    refused(["broken.toml"], "broken.toml", "not valid TOML")


def test_a_run_in_the_place_of_a_corpus_is_told_how_it_goes_on(folder: Path) -> None:
    run = folder / "my run"
    run.mkdir()
    recipe().save(run / "recipe.toml")
    refused(["my run"], "my run is a run", "same command", "limelight train 'my run/recipe.toml' -o OTHER")
    RunFacts(command=["limelight", "train", "a b.en", "c.de"]).save(run)
    refused(["my run"], "limelight train 'a b.en' c.de")


# Going on from a translator.


def test_languages_come_from_the_translator_to_go_on_from(folder: Path) -> None:
    (folder / "memory.tsv").write_bytes(b"a\tb\n")
    asked, place = parse_train_request(["memory.tsv"], bundle=BUNDLE, replay=0.25)
    assert asked.data is not None and asked.data.languages == ("en", "de") and place == Path("en-de")
    assert (asked.bundle, asked.replay) == (BUNDLE, 0.25)
    asked, _ = parse_train_request(["memory.tsv"], bundle=BUNDLE, source="en-GB")
    assert asked.data is not None and asked.data.languages == ("en-GB", "de")


def test_files_of_other_languages_than_the_translator_are_refused(folder: Path) -> None:
    for name in ("corpus.fr", "corpus.en_GB"):
        (folder / name).write_bytes(b"a\n")
    refused(
        ["corpus.de", "corpus.en"],
        "translates en to de",
        "the files are de and en",
        "in the other order",
        bundle=BUNDLE,
    )
    asked, _ = parse_train_request(["corpus.en_GB", "corpus.de"], bundle=BUNDLE)
    assert not asked.new_pieces


@pytest.mark.parametrize("said", [{}, {"source": "en", "target": "fr"}])
def test_text_of_another_language_makes_the_translator_a_parent(folder: Path, said: dict[str, str]) -> None:
    (folder / "corpus.fr").write_bytes(b"a\n")
    asked, _ = parse_train_request(["corpus.en", "corpus.fr"], bundle=BUNDLE, vocab_size=500, **said)
    assert asked.data is not None and asked.data.languages == ("en", "fr") and asked.data.pieces.size == 500
    assert asked.new_pieces and asked.old_text is None and asked.fingerprint()["new_pieces"] is True
    refused(["corpus.en", "corpus.fr"], "other pieces", "--replay 0.5", "--preset tiny", bundle=BUNDLE, replay=0.5, preset="tiny")


def test_new_pieces_are_asked_for_in_the_same_languages_and_only_beside_a_translator() -> None:
    asked, _ = parse_train_request(FILES, bundle=BUNDLE, new_pieces=True)
    assert asked.new_pieces and asked.old_text is None
    assert "new_pieces" not in parse_train_request(FILES, bundle=BUNDLE)[0].fingerprint()  # a run of before goes on
    refused(FILES, "--new-pieces is for", "--from en-de", new_pieces=True)


def test_a_translator_that_is_none_is_refused(folder: Path) -> None:
    refused(FILES, "missing", "does not exist", bundle=folder / "missing")


def test_old_text_has_a_name_of_its_own() -> None:
    asked, _ = parse_train_request(FILES, bundle=BUNDLE, replay_data=tuple(FILES))
    assert [(corpus.name, corpus.paths) for corpus in asked.replay_data] == [("replay-corpus", FILES)]
    refused(FILES, "has no partner", bundle=BUNDLE, replay_data=("corpus.en",))


@pytest.mark.parametrize("share", [-0.1, 1.0, 50.0])
def test_a_replay_that_is_no_share_is_refused(share: float) -> None:
    refused(FILES, f"--replay {share:g}", "such as 0.5", bundle=BUNDLE, replay=share)


def test_replay_without_a_translator_is_refused() -> None:
    refused(FILES, "--replay is for", "--from en-de", replay=0.5)
    refused(FILES, "--replay-data is for", "--from en-de", replay_data=("old.tsv",))


def test_a_run_never_takes_the_place_of_the_translator_it_goes_on_from(folder: Path) -> None:
    (folder / "en-de").mkdir()
    (folder / "en-de" / "bundle").symlink_to(BUNDLE)
    refused(FILES, "en-de", "to go on from", "-o en-de-new", bundle=Path("en-de"))
    refused(FILES, "to go on from", bundle=Path("en-de/bundle"), output=folder / "en-de")
    assert parse_train_request(FILES, bundle=Path("en-de"), output=Path("new"))[1] == Path("new")


def test_a_file_in_the_place_of_the_run_is_refused() -> None:
    refused(FILES, "corpus.en is a file", "-o", output=Path("corpus.en"))


# The verb.


def test_help_has_five_examples_that_can_be_told_apart() -> None:
    from limelight.cli.train.train import EXAMPLES

    examples = [line.split() for line in EXAMPLES if line.startswith("limelight train ")]
    assert len(examples) == 5 == len({tuple(line) for line in examples})
    assert {"--budget", "--from", "--nproc"} <= {word for line in examples for word in line}
    assert any(word.endswith("recipe.toml") for line in examples for word in line)


def test_the_keys_in_the_examples_are_keys_of_a_recipe() -> None:
    from limelight.cli.train.recipe_keys import check_changes
    from limelight.cli.train.train import EXAMPLES

    written = re.findall(r"\b[a-z_]+\.[a-z_]+=\S+", "\n".join(EXAMPLES))
    assert written
    check_changes(written)
    with pytest.raises(ConfigError):
        check_changes([*written, "model.dropot=1"])


def test_codes_of_languages_are_written_as_usual() -> None:
    asked, folder = parse_train_request(FILES, source="eng", target="ger")
    assert asked.data is not None and asked.data.languages == ("en", "de") and folder == Path("en-de")
    refused(FILES, "--target xx is not a language code", "did you mean", target="xx")
    asked, _ = parse_train_request(FILES, source="x-klingon", target="pt_BR")
    assert asked.data is not None and asked.data.languages == ("x-klingon", "pt-BR")


def test_languages_are_called_as_the_translator_to_go_on_from_calls_them(tmp_path: Path) -> None:
    """Its tags are listed by its own codes: with others the run would end where it writes its first translator."""
    target = {{"de": "no"}.get(code, code): number for code, number in tags_of().target.items() if code != "en"}
    tags = tags_of(target=target, directions=(("en", "no"), ("en", "fr")))
    bundle = write_tagged(tmp_path / "multi", languages=("en", "no"), tags=tags)
    asked, _ = parse_train_request(FILES, bundle=bundle, source="eng", target="nb")
    assert asked.data is not None and asked.data.languages == ("en", "no") and not asked.new_pieces
    asked, _ = parse_train_request(FILES, bundle=bundle, source="en", target="sw")
    assert asked.data is not None and asked.data.languages == ("en", "sw") and asked.new_pieces


def test_a_language_in_the_place_of_the_translator_to_go_on_from_is_told() -> None:
    refused(FILES, "--from en", "--source and --target", bundle=Path("en"))


# Monolingual text.


def test_monolingual_files_are_of_the_target_unless_their_names_say_the_source(folder: Path) -> None:
    for name in ("news.de", "web.txt", "more.en"):
        (folder / name).write_bytes(b"a\n")
    asked, _ = parse_train_request(FILES, mono=("news.de", "web.txt"), weight=("synthetic=0.5", "corpus=2"))
    assert asked.mono == MonoText(["news.de", "web.txt"], [], 1, 0.5)
    assert asked.data and asked.data.corpora[0].weight == 2
    assert asked.fingerprint() != parse_train_request(FILES, weight=("corpus=2",))[0].fingerprint()
    asked, _ = parse_train_request(FILES, mono=("news.de", "more.en"), rounds=2)
    assert asked.mono == MonoText(["news.de"], ["more.en"], 2)
    assert parse_train_request(FILES)[0].mono is None
    refused(FILES, "more.en: text in en, the source, helps from the second round on", "--rounds 2", mono=("news.de", "more.en"))


def test_what_does_not_go_with_monolingual_text_is_named_at_once(folder: Path) -> None:
    (folder / "more.en").write_bytes(b"a\n")
    (folder / "memory.tsv").write_bytes(b"a\tb\n")
    told = refused(
        [*FILES, "schedule.steps=5", "data.both_directions=true"],
        "memory.tsv: give a file of lines", "gone.de: give a file of lines, plain or .gz, that is there", "shared by the models",
        "leave out --both-directions", "--rounds 9: give 1 to 3", "more than 0 and at most 1000",
        mono=("memory.tsv", "gone.de"), rounds=9, weight=("synthetic=0",),
    )  # fmt: skip
    assert told.count("\n  - ") == 6
    refused(FILES, "no file is in de, the target", mono=("more.en",), rounds=2)
    refused(FILES, "the first model of --mono begins at nothing", mono=("more.de",), bundle=BUNDLE)
    refused([*FILES, 'data.given_pieces=["a.model"]'], "the first model of --mono begins at nothing", mono=("more.de",))
    refused(["recipe.toml"], "--mono: leave it out", mono=("more.de",))
    refused(FILES, "--rounds 2 is for monolingual text", rounds=2)

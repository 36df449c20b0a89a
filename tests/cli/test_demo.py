"""`limelight demo`: number words that German turns around, held-out numbers, an ordinary run, and what was learnt."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from limelight.bundle.bundle import read
from limelight.cli.demo import corpus as demo_numbers
from limelight.cli.demo.corpus import ALWAYS_SHOWN, PIECES, is_held_out, numbers, recipe, write_corpus
from limelight.cli.demo.demo import CORPUS
from limelight.cli.demo.measure import SWAPPED, DemoScores
from limelight.cli.demo.numerals import LIMIT, english, french, german, pieces
from limelight.cli.main import app
from limelight.errors import ConfigError
from limelight.text.careful import number_words
from limelight.text.pieces.tokenizer import Tokenizer
from limelight.training.run_folder import BUNDLE

RUN = "en-de"
SAID = {
    0: ("zero", "null"),
    1: ("one", "eins"),
    16: ("sixteen", "sechzehn"),
    17: ("seventeen", "siebzehn"),
    21: ("twenty-one", "einundzwanzig"),
    30: ("thirty", "dreißig"),
    67: ("sixty-seven", "siebenundsechzig"),
    100: ("one hundred", "einhundert"),
    101: ("one hundred one", "einhunderteins"),
    111: ("one hundred eleven", "einhundertelf"),
    1001: ("one thousand one", "eintausendeins"),
    21_000: ("twenty-one thousand", "einundzwanzigtausend"),
    101_201: ("one hundred one thousand two hundred one", "einhunderteintausendzweihunderteins"),
    999_999: ("nine hundred ninety-nine thousand nine hundred ninety-nine", "neunhundertneunundneunzigtausendneunhundertneunundneunzig"),
}  # fmt: skip


@pytest.mark.parametrize("number", SAID)
def test_numbers_are_said_as_people_say_them(number: int) -> None:
    assert (english(number), german(number)) == SAID[number]


def test_both_languages_name_the_same_number() -> None:
    """By the tables that judge translations, which know nothing of these."""
    for number in range(1, 100):
        assert number in number_words.count_numbers(english(number), "en"), english(number)
        assert number in number_words.count_numbers(german(number), "de"), german(number)
    assert len({german(n) for n in range(0, LIMIT, 37)}) == len(range(0, LIMIT, 37))


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (0, "zéro"),
        (17, "dix-sept"),
        (21, "vingt-et-un"),
        (71, "soixante-et-onze"),
        (80, "quatre-vingts"),
        (81, "quatre-vingt-un"),
        (99, "quatre-vingt-dix-neuf"),
        (100, "cent"),
        (200, "deux-cents"),
        (201, "deux-cent-un"),
        (1000, "mille"),
        (80_000, "quatre-vingt-mille"),
        (200_280, "deux-cent-mille-deux-cent-quatre-vingts"),
    ],
)
def test_french_is_said_as_the_spelling_of_1990_has_it(number: int, said: str) -> None:
    assert french(number) == said


@pytest.mark.slow
def test_with_french_each_target_has_a_tag_that_no_text_becomes(tmp_path: Path) -> None:
    (tmp_path / PIECES).write_bytes(pieces(("de", "fr")))
    tokenizer = Tokenizer.load(tmp_path / PIECES)
    some = [french(number) for number in range(0, LIMIT, 10_007)]
    ids = tokenizer.encode([*some, "<2fr>"]).to_pylist()
    assert tokenizer.decode(ids[:-1]) == some and not {tokenizer.id_of_control(f"<2{each}>") for each in ("de", "fr")} & set(ids[-1])
    made = recipe(tmp_path, 10, ("de", "fr"))
    assert made.data.directions == (("en", "de"), ("en", "fr")) and made.schedule.steps == 20


def test_pieces_are_the_parts_that_change_places() -> None:
    tokenizer = Tokenizer(pieces())
    cut = [tokenizer.pieces(ids.as_py()) for ids in tokenizer.encode(["twenty-one", "einundzwanzig", german(72_345)])]
    assert cut[0] == ["▁twenty", "-", "one"] and cut[1] == ["▁ein", "und", "zwanzig"]
    assert cut[2] == ["▁zwei", "und", "siebzig", "tausend", "drei", "hundert", "fünf", "und", "vierzig"]
    some = [say(n) for n in range(0, LIMIT, 1009) for say in (english, german)]
    ids = tokenizer.encode(some).to_pylist()
    assert tokenizer.decode(ids) == some and not any(tokenizer.unknown in row for row in ids)
    assert pieces() == pieces()


def test_held_out_numbers_are_never_shown() -> None:
    sets = numbers()
    assert {name: len(chosen) for name, chosen in sets.items()} == demo_numbers.SIZES
    train, valid, test = (set(sets[name]) for name in ("train", "valid", "test"))
    assert not train & valid and not train & test and not valid & test
    assert not any(is_held_out(number) for number in train) and all(is_held_out(number) for number in valid | test)
    assert set(range(ALWAYS_SHOWN)) <= train
    two_digits = {number for number in SWAPPED if is_held_out(number)}
    assert two_digits and two_digits <= test and {n for n in SWAPPED if not is_held_out(n)} <= train


def test_the_recipe_is_an_ordinary_one(tmp_path: Path) -> None:
    write_corpus(tmp_path)
    made = recipe(tmp_path)
    made.save(tmp_path / "recipe.toml")
    assert type(made).load(tmp_path / "recipe.toml") == made
    assert made.model.vocab_size == Tokenizer.load(tmp_path / PIECES).size == 104
    lines = (tmp_path / "train.en").read_bytes().count(b"\n")
    assert lines == (tmp_path / "train.de").read_bytes().count(b"\n") == demo_numbers.SIZES["train"]


@pytest.mark.long
@pytest.mark.process
def test_a_run_is_made_measured_and_taken_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All the parts, on fewer numbers and for a few steps: nothing is learnt, and that is measured."""
    monkeypatch.setattr(demo_numbers, "SIZES", {"train": 1200, "valid": 20, "test": 30})
    monkeypatch.setattr(demo_numbers, "recipe", lambda corpus, targets: recipe(corpus, 4, targets))
    command = ["demo", "-o", str(tmp_path / "demo"), "--no-open", "--json", "--threads", "1"]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    value = json.loads(done.stdout)
    assert value["unseen"] == 30 and value["cases"] == 72 and value["exact"] < 30 and value["swapped"] < 69
    assert value["folder"] == str(tmp_path / "demo" / RUN)
    bundle = tmp_path / "demo" / RUN / BUNDLE
    assert read(bundle).settings.search.patience == 2.0
    before = {path.name: path.stat().st_mtime_ns for path in bundle.iterdir()}
    again = CliRunner().invoke(app, [*command[:4], "--threads", "1"])
    assert again.exit_code == 0 and "is there already" in again.stderr and "limelight inspect" in again.stdout
    assert {path.name: path.stat().st_mtime_ns for path in bundle.iterdir()} == before
    assert (tmp_path / "demo" / CORPUS / "test.de").is_file()


def test_a_file_in_the_way_is_told(tmp_path: Path) -> None:
    (tmp_path / "demo").write_bytes(b"")
    done = CliRunner().invoke(app, ["demo", "-o", str(tmp_path / "demo"), "--no-open"])
    assert isinstance(done.exception, ConfigError) and "name another with -o" in str(done.exception)


def test_what_was_measured_is_said_with_what_went_wrong() -> None:
    lines = DemoScores(200, 199, 72, 36, "cross.1.2", (("sixty", "sechzehn", "sechzig"),)).lines
    assert "199 of 200 without a fault (99.5 %)" in lines[0] and "sixty: sechzehn, should be sechzig" in lines[1]
    assert "in 36 of 72 the light crosses (50.0 %), mostly that of cross.1.2" in lines[2]


def test_tags_at_work_are_told_by_language() -> None:
    lines = DemoScores(200, 199, 72, 36, "cross.1.2", (), {"de": 199, "fr": 150}, {"de": 3, "fr": 70}).lines
    assert lines[1:5] == [
        "  in de              199 of 200",
        "  in fr              150 of 200",
        "  <2de> hidden       3 of 72 are no longer de",
        "  <2fr> hidden       70 of 72 are no longer fr",
    ]


@pytest.mark.long  # `make claim-desk` measures it too
@pytest.mark.timeout(900)
def test_the_demo_learns_numbers_that_it_never_saw_and_its_light_crosses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(
        "LOCAL_WORLD_SIZE", "2"
    )  # half of the cores: threads that wait for each other beside other tests take ten times as long
    done = CliRunner().invoke(app, ["demo", "-o", str(tmp_path / "demo"), "--no-open", "--json"])
    value = json.loads(done.stdout)
    assert value["exact"] >= 0.98 * value["unseen"] and value["swapped"] >= 0.95 * value["cases"]

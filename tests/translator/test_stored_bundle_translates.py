"""A real translator, small enough to be stored: English number words to German ones. What a person gets, with a model behind it."""

import math
import random
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from limelight.decoding.config import Sampling, SearchSettings
from limelight.errors import ModelFileError
from limelight.text.careful.spans import is_bare
from limelight.translator import Translator

FOLDER = Path(__file__).parents[1] / "bundles" / "format-1"
ENGLISH = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]
GERMAN = ["null", "eins", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht", "neun"]
GREEDY = SearchSettings(beam=1)


@pytest.fixture(scope="module")
def translator() -> Iterator[Translator]:
    with Translator.load(FOLDER, device="cpu", threads=2) as made:
        yield made


def numbers(count: int, longest: int = 8, seed: int = 3) -> list[tuple[str, str]]:
    draw = random.Random(seed)
    rows = [[draw.randrange(10) for _ in range(draw.randint(1, longest))] for _ in range(count)]
    return [(" ".join(ENGLISH[i] for i in row), " ".join(GERMAN[i] for i in row)) for row in rows]


@pytest.mark.slow
def test_it_translates(translator: Translator) -> None:
    pairs = numbers(200)
    found = translator.translate([source for source, _ in pairs])
    assert sum(one.text == target for one, (_, target) in zip(found, pairs, strict=True)) >= 190
    assert all(one.finish == "eos" and 0 < one.confidence <= 1 and one.score <= 0 for one in found)
    assert translator.translate(["three seven one"])[0].text == "drei sieben eins"


def test_what_it_runs_on_is_told_with_reasons(translator: Translator) -> None:
    told = " ".join(translator.runs_on)
    assert "cpu (asked for)" in told and "float32" in told and "depends on its batch" in told


@pytest.mark.slow
@pytest.mark.parametrize("beam", [1, 4])
def test_no_translation_depends_on_its_batch_or_its_neighbours(translator: Translator, beam: int) -> None:
    """AT-16 on the stored bundle: same text for all but 1 of 1,000, scores within 1e-4."""
    texts = [source for source, _ in numbers(50, longest=16, seed=5)]
    settings = SearchSettings(beam=beam)
    expected = [translator.translate([text], settings)[0] for text in texts]
    before, same = translator.batch_pieces, 0
    try:
        for pieces, seed in ((4096, 1), (64, 2), (700, 3)):
            translator.batch_pieces = pieces
            order = random.Random(seed).sample(range(len(texts)), len(texts))
            found = translator.translate([texts[i] for i in order], settings)
            for one, i in zip(found, order, strict=True):
                same += one.text == expected[i].text
                if one.text == expected[i].text:
                    assert one.score == pytest.approx(expected[i].score, abs=1e-4)
                    assert one.confidence == pytest.approx(expected[i].confidence, abs=1e-4)
    finally:
        translator.batch_pieces = before
    assert same >= 0.999 * 3 * len(texts)


@pytest.mark.slow
@pytest.mark.parametrize("search", [None, GREEDY], ids=["beam", "greedy"])
@pytest.mark.parametrize(
    "text",
    ["", " \t\u3000 ", "x", "three " * 1667, "ß" * 10_000, "🙂🙃 👩‍👩‍👧 🇩🇪", "ᚠᚢᚦᚨᚱᚲ ᛒᛖ", "?" * 8, "y7" * 40, "\x00\x07", "⟦0⟧"],
    ids=["empty", "blank", "letter", "long", "longer", "emoji", "runes", "questions", "y7", "control", "placeholder"],
)  # fmt: skip
def test_odd_input_is_answered_in_two_seconds(translator: Translator, text: str, search: SearchSettings | None) -> None:
    """AT-17 a. The bound is for the answer, not for what it says."""
    began = time.monotonic()
    [found] = translator.translate([text], search, align=True)
    seconds = time.monotonic() - began
    assert found.finish in ("eos", "length", "empty_input")
    assert (found.finish == "empty_input") == (not text.strip() or is_bare(text))
    assert math.isfinite(found.score) and 0 <= found.confidence <= 1 and found.source == text
    [whole] = translator.translate([text], search, segment=False)  # else what is too long is searched in parts
    assert len(whole.pieces) <= min(256, 3 * whole.source_pieces + 20)
    assert ("split" in [notice.code for notice in found.warnings]) == (len(text) > 1000)
    assert ("source_cut" in [notice.code for notice in whole.warnings]) == (len(text) > 1000)
    assert seconds <= 2.0, f"{seconds:.1f} s"


@pytest.mark.parametrize("text", ["twenty▁one three", "one▁▁two three", "▁one two", "one▁ two"])
def test_the_block_that_pieces_have_for_a_space_makes_no_words_that_are_not_there(translator: Translator, text: str) -> None:
    found = translator.translate([text], align=True)[0].alignment
    assert found is not None and found.words
    assert all(s < len(text.split(" ")) for s, _ in found.words)


@pytest.mark.parametrize(("text", "prefix"), [("{n, plural,x {0} two", ""), ("{n, plural, one {x} other {y %s}} {0}", "eins")])
def test_a_message_that_is_not_read_is_said_also_by_a_model_without_marks(translator: Translator, text: str, prefix: str) -> None:
    """Unreadable, or whole because of its prefix: what its braces hold may be lost."""
    [made] = translator.translate([text], prefixes=[prefix] if prefix else None)
    assert "{0}" in made.text or not made.protected
    assert made.protected or "unprotected" in [notice.code for notice in made.warnings]


@pytest.mark.slow
def test_words_are_aligned_with_those_in_the_same_place(translator: Translator) -> None:
    """Number words translate one by one, so the alignment is the diagonal."""
    found = translator.translate([source for source, _ in numbers(300)], align=True)
    links = right = 0
    for one in found:
        assert one.alignment is not None
        links += len(one.text.split(" "))
        right += sum(source == target for source, target in one.alignment.words)
        assert all(s < len(one.source.split(" ")) and t < len(one.text.split(" ")) for s, t in one.alignment.words)
    assert right >= 0.95 * links, f"{right} of {links}"


def test_nbest_is_sorted_distinct_and_begins_with_the_best(translator: Translator) -> None:
    [best] = translator.translate(["three seven one"], SearchSettings(beam=6))
    [found] = translator.translate(["three seven one"], SearchSettings(beam=6, nbest=6))
    scores = [found.score, *(one.score for one in found.alternatives)]
    texts = [found.text, *(one.text for one in found.alternatives)]
    assert found.text == best.text and scores == sorted(scores, reverse=True)
    assert len(texts) == len(set(texts)) >= 3


def test_scores_of_given_translations_are_those_of_the_search(translator: Translator) -> None:
    sources = [source for source, _ in numbers(40)]
    found = translator.translate(sources, GREEDY)
    scored = translator.score(sources, [one.text for one in found])
    for one, given in zip(found, scored, strict=True):
        assert given.confidence == pytest.approx(one.confidence, abs=1e-4)
        assert [piece.text for piece in given.pieces] == [piece.text for piece in one.pieces]
    wrong = translator.score(["three seven one"], ["neun neun neun"])[0]
    assert wrong.log_prob < scored[0].log_prob - 5


def test_a_prefix_is_kept_also_when_it_ends_inside_a_word(translator: Translator) -> None:
    for prefix in ("sechs", "drei sieb", "ac"):
        [found] = translator.translate(["three seven one"], prefixes=[prefix])
        assert found.text.startswith(prefix)


def test_phrases_occur_in_the_translation(translator: Translator) -> None:
    sources = ["three seven one", "two two"]
    found = translator.translate(sources, phrases=[["neun"], ["vier fünf", "null"]])
    assert "neun" in found[0].text and "vier fünf" in found[1].text and "null" in found[1].text


@pytest.mark.slow
def test_drawing_is_repeatable_wherever_a_sentence_stands(translator: Translator) -> None:
    texts = [source for source, _ in numbers(30)]
    draw = SearchSettings(nbest=3, sampling=Sampling(temperature=2.0, seed=4))
    first = {one.source: [one.text, *(a.text for a in one.alternatives)] for one in translator.translate(texts, draw)}
    again = translator.translate(list(reversed(texts))[:11], draw)
    assert all([one.text, *(a.text for a in one.alternatives)] == first[one.source] for one in again)
    other = translator.translate(texts, draw.changed(sampling=Sampling(temperature=2.0, seed=5)))
    assert [one.text for one in other] != [first[text][0] for text in texts]


def test_the_least_risky_of_samples_is_right(translator: Translator) -> None:
    pairs = numbers(30, longest=5)
    settings = SearchSettings(mbr_samples=12, sampling=Sampling())
    found = translator.translate([source for source, _ in pairs], settings)
    assert sum(one.text == target for one, (_, target) in zip(found, pairs, strict=True)) >= 27


def test_a_damaged_model_gives_an_error_and_no_translation() -> None:
    import torch

    from limelight.errors import ScoreError

    with Translator.load(FOLDER, device="cpu", threads=1) as broken:
        weights = next(broken.engine.model.parameters())  # type: ignore[attr-defined]
        with torch.no_grad():
            weights.fill_(math.nan)
        with pytest.raises(ScoreError, match="not numbers") as raised:
            broken.translate(["one", "", "canary two"])
        assert raised.value.positions == (0, 2)  # type: ignore[attr-defined]
        assert "canary" not in str(raised.value)
        with pytest.raises(ScoreError):
            broken.score(["one"], ["eins"])


def test_a_glossary_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    """Of a bundle that a stranger made it might lead anywhere."""
    folder = Path(shutil.copytree(FOLDER, tmp_path / "bundle"))
    (tmp_path / "terms.tsv").write_bytes(b"one\teins\n")
    (folder / "glossary.tsv").symlink_to(tmp_path / "terms.tsv")
    with pytest.raises(ModelFileError, match="is a link"):
        Translator.load(folder)


def test_signs_that_nobody_sees_stay_with_their_line_breaks(translator: Translator) -> None:
    texts = ["\ufeff\n\u202e", "\u202e\n\u200b\n", "\n\u202e"]
    assert [one.text for one in translator.translate(texts, segment=True)] == texts

"""Natural mistakes with files stop `prepare` before anything is made of them, with their cause and their fix."""

import random
import re
import shutil
from pathlib import Path

import pytest
from made_sentences import sentences
from prepare_command import FAST, given_pieces, here, write_lines

from limelight.corpus.cleaning.mistakes import losses, summary
from limelight.corpus.manifest import CorpusEntry, CorpusManifest

PAIRS = sentences(300)
OFF = ("--workers", "0")


def written(folder: Path, pairs: list[tuple[str, str]], encoding: str = "utf-8") -> tuple[Path, Path]:
    sources, targets = zip(*pairs, strict=True)
    return write_lines([text.encode(encoding) for text in sources], [text.encode(encoding) for text in targets], folder)


def uneven(pairs: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Of lengths as people write them: one to four of the sentences in a line."""
    draw = random.Random(5)
    return [
        (" ".join(a for a, _ in some), " ".join(b for _, b in some))
        for some in (draw.sample(pairs, draw.choice((1, 1, 2, 4))) for _ in pairs)
    ]


def refused(*arguments: object) -> str:
    outcome = here("prepare", *arguments)
    assert outcome.code == 65 and "Traceback" not in outcome.err, outcome.err
    assert "--anyway" in outcome.err
    return outcome.err


def test_text_as_it_should_be_is_taken_without_a_word(tmp_path: Path) -> None:
    paths = written(tmp_path, uneven(PAIRS))
    outcome = here("prepare", *paths, *OFF, given_pieces(), "-o", tmp_path / "out", "--quiet")
    assert outcome.code == 0 and outcome.err == ""


@pytest.mark.slow
def test_swapped_files_are_told_and_swap_reads_them_right(tmp_path: Path) -> None:
    pairs = uneven(PAIRS)
    paths = written(tmp_path, [(german, english) for english, german in pairs])
    told = refused(*paths, *OFF, "-o", tmp_path / "out")
    assert "the source side is German (de) and the target side English (en)" in told and "--swap" in told
    assert not (tmp_path / "out").exists()
    outcome = here("prepare", *paths, *OFF, given_pieces(), "--swap", "-o", tmp_path / "out", "--json")
    assert outcome.code == 0, outcome.err
    by_mistake = refused(*written(tmp_path, pairs), *OFF, "--swap", "-o", tmp_path / "mistaken")
    assert "leave out --swap" in by_mistake
    right = here("prepare", *written(tmp_path, pairs), *OFF, given_pieces(), "-o", tmp_path / "right", "--json")
    kept = [outcome.report["corpora"][0]["kept"], right.report["corpora"][0]["kept"]]
    assert kept[0] == kept[1]
    assert outcome.report["statistics"]["tally"]["characters"] == right.report["statistics"]["tally"]["characters"]


@pytest.mark.parametrize(("language", "code"), [("fr", "--target de"), ("nl", "--target de")])
def test_a_wrong_language_code_is_told_with_the_right_one(tmp_path: Path, language: str, code: str) -> None:
    paths = written(tmp_path, uneven(PAIRS))
    told = refused(*paths, "--source", "en", "--target", language, *OFF, "-o", tmp_path / "out")
    assert "the target side is German (de)" in told and code in told


def test_another_encoding_is_told_with_how_to_convert_it(tmp_path: Path) -> None:
    paths = written(tmp_path, uneven(PAIRS), "latin-1")
    told = refused(*paths, *FAST, "-o", tmp_path / "out")
    assert "are no UTF-8" in told and f"iconv -f WINDOWS-1252 -t UTF-8 {paths[1]}" in told
    first, second = (shutil.copy(path, tmp_path / name) for path, name in zip(paths, ("b.txt", "a.txt"), strict=True))
    turned = refused(second, first, *FAST, "--swap", "--source", "en", "--target", "de", "-o", tmp_path / "out")
    assert "are no UTF-8" in turned and f"iconv -f WINDOWS-1252 -t UTF-8 {second}" in turned


def test_a_lost_line_is_told_with_how_far_the_sides_are_apart(tmp_path: Path) -> None:
    pairs = uneven(PAIRS)
    sources, targets = [a for a, _ in pairs[:-1]], [b for _, b in pairs[1:]]
    told = refused(*written(tmp_path, list(zip(sources, targets, strict=True))), *FAST, "-o", tmp_path / "out")
    assert "are 1 lines apart" in told and "line n of the source belongs to line n-1 of the target" in told


def test_a_line_lost_far_behind_the_first_pairs_is_told_with_its_place(tmp_path: Path) -> None:
    pairs = [(f"{number} {a}", f"{number} {b}") for number in range(20) for a, b in uneven(PAIRS)]
    lost = len(pairs) - 2_200
    sources = [a for a, _ in pairs[:lost] + pairs[lost + 1 :]]
    paths = written(tmp_path, list(zip(sources, [b for _, b in pairs[:-1]], strict=True)))
    told = refused(*paths, *FAST, "-o", tmp_path / "out")
    assert "source and target are 1 lines apart" in told and "belongs to line n+1" in told
    place = int(re.search(r"from about line ([0-9,]+)", told)[1].replace(",", ""))  # type: ignore[index]
    assert lost - 500 <= place <= lost + 1_000


def test_lines_that_do_not_belong_together_are_told(tmp_path: Path) -> None:
    pairs = uneven(PAIRS)
    targets = [b for _, b in pairs]
    random.Random(3).shuffle(targets)
    paths = written(tmp_path, [(a, b) for (a, _), b in zip(pairs, targets, strict=True)])
    assert "do not seem to belong together" in refused(*paths, *FAST, "-o", tmp_path / "out")


@pytest.mark.slow
def test_too_much_that_is_dropped_stops_with_its_reason_and_goes_on_when_told(tmp_path: Path) -> None:
    long = [(f"{a} " * 40, f"{b} " * 40) for a, b in PAIRS[:120]]
    paths = written(tmp_path, PAIRS[120:] + long)
    told = refused(*paths, *FAST, "-o", tmp_path / "out")
    assert "300 pairs read, 180 kept: 120 too long" in told and "filters.too_long=off" in told
    assert not (tmp_path / "out").exists()
    outcome = here("prepare", *paths, *FAST, given_pieces(), "--anyway", "-o", tmp_path / "out")
    assert outcome.code == 0, outcome.err
    assert CorpusManifest.load(tmp_path / "out").corpora[0].dropped == {"too_long": 120}


def test_a_check_says_the_same_and_does_not_stop(tmp_path: Path) -> None:
    outcome = here("prepare", *written(tmp_path, uneven(PAIRS), "latin-1"), *FAST, "--check-only")
    assert outcome.code == 0 and "mistake" in outcome.out and "iconv" in outcome.out


def entry(read: int, **dropped: int) -> CorpusEntry:
    kept = {"train": read - sum(dropped.values())}
    return CorpusEntry(name="corpus", weight=1, read=read, kept=kept, dropped=dropped, warned={})


@pytest.mark.parametrize(
    ("corpus", "stops"),
    [
        (entry(1000, too_long=330), False),
        (entry(1000, too_long=340), True),
        (entry(1000, too_long=250, copied=240), False),
        (entry(1000, too_long=260, copied=250), True),
        (entry(1000, duplicate=900), False),
        (entry(1000, fuzzy=900), False),
        (entry(1000, empty=800), False),
        (entry(1000, empty=800, too_long=60), False),
        (entry(1000, empty=800, too_long=70), True),
        (entry(3000, duplicate=2000, length_ratio=900), True),
        (entry(3000, fuzzy=2000, length_ratio=300), False),
        (entry(99, too_long=99), False),
        (entry(0), False),
    ],
)
def test_more_than_half_or_a_third_for_one_reason_is_too_much(corpus: CorpusEntry, stops: bool) -> None:
    assert bool(losses([corpus])) == stops


def test_what_was_dropped_is_one_line_with_the_greatest_reason_first() -> None:
    both = [entry(3000, too_long=100, duplicate=770), entry(2178, too_long=3000 - 1878)]
    assert summary(both) == "5,178 pairs read, 3,186 kept: 1,222 too long, 770 duplicate"
    assert summary([entry(7)]) == "7 pairs read, 7 kept"

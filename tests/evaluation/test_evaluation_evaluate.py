"""The whole of an evaluation: parts that belong together, notes before one quotes a score, and refusals that name everything."""

from pathlib import Path

import pytest

from limelight.errors import DataError
from limelight.evaluation.config import EvaluateSettings
from limelight.evaluation.evaluate import evaluate
from limelight.evaluation.inputs import language_of, read_parallel
from limelight.evaluation.metrics.buckets import by_length, is_spaced
from limelight.evaluation.metrics.metrics import count

FAST = EvaluateSettings(metrics=("bleu", "chrf"), resamples=100)


def lines(lengths: list[int]) -> list[str]:
    return [" ".join(f"word{n}x{i}" for i in range(length)) for n, length in enumerate(lengths)]


def test_buckets_hold_every_sentence_once_and_score_their_own() -> None:
    reference = lines([1, 10, 11, 20, 21, 40, 41, 90] * 20)
    system = [text if len(text.split()) <= 20 else text.replace("word", "other") for text in reference]
    counted = [count("chrf", system, [reference], FAST)]
    buckets = by_length(reference, counted, FAST)
    assert [bucket.name for bucket in buckets] == ["up to 10", "11–20", "21–40", "41 and more"]  # noqa: RUF001
    assert [bucket.sentences for bucket in buckets] == [40] * 4 and all(bucket.few for bucket in buckets)
    assert [bucket.scores[0].value for bucket in buckets[:2]] == [pytest.approx(100)] * 2
    alone = [i for i, text in enumerate(reference) if len(text.split()) > 40]
    expected = count("chrf", [system[i] for i in alone], [[reference[i] for i in alone]], FAST).value
    assert buckets[3].scores[0].value == pytest.approx(expected) and expected < 80


def test_a_bucket_of_a_hundred_is_not_few_and_an_empty_one_is_left_out() -> None:
    reference = lines([5] * 100 + [50] * 99)
    short, long = by_length(reference, [count("chrf", reference, [reference], FAST)], FAST)
    assert not short.few and long.few and (short.shortest, short.longest, long.shortest, long.longest) == (0, 10, 41, None)


def test_writing_without_spaces_is_measured_in_characters() -> None:
    chinese = ["我们明天早上一起去北京看长城吧你说好不好。", "好。"]
    assert not is_spaced(chinese) and is_spaced(["eins", "zwei"]) and is_spaced(["네 알겠습니다 내일 만나요"])
    buckets = by_length(chinese, [count("chrf", chinese, [chinese], FAST)], FAST)
    assert [(bucket.name, bucket.unit) for bucket in buckets] == [("up to 20", "characters"), ("21–40", "characters")]  # noqa: RUF001


def test_buckets_are_of_the_source_where_there_is_one() -> None:
    system, source = lines([5] * 3), lines([30] * 3)
    assert evaluate(system, [system], source, settings=FAST).buckets[0].shortest == 21
    assert evaluate(system, [system], settings=FAST).buckets[0].shortest == 0
    assert evaluate(system, [system], settings=FAST).bucketed_by == "reference"


def test_a_second_reference_can_only_help_bleu() -> None:
    first, second = lines([8] * 30), [text.replace("word", "other") for text in lines([8] * 30)]
    system = [a if n % 2 else b for n, (a, b) in enumerate(zip(first, second, strict=True))]
    one, both = evaluate(system, [first], settings=FAST), evaluate(system, [first, second], settings=FAST)
    assert one.scores[0].value < 60 and both.scores[0].value == pytest.approx(100)
    assert both.references == 2 and "nrefs:2" in both.scores[0].signature


def test_lists_that_do_not_match_are_all_named() -> None:
    with pytest.raises(DataError) as error:
        evaluate(["a", "b"], [["a"], ["a", "b"], ["a", "b", "c"]], ["x"])
    for said in ("reference 1 has 1", "reference 3 has 3", "the source has 1", "the system has 2"):
        assert said in str(error.value)
    assert "reference 2" not in str(error.value)
    with pytest.raises(DataError, match="nothing to score"):
        evaluate([], [[]])


@pytest.mark.parametrize(
    ("system", "reference", "language", "note"),
    [
        (["a b c"] * 5, ["a b d"] * 5, None, "5 sentences are few"),
        (["a b c"] * 300, ["a b c"] * 300, None, "the reference itself"),
        (["a b c ."] * 300, ["a b d."] * 300, None, "the translations seem to be tokenized"),
        (["a b c."] * 300, ["a b d ."] * 300, None, "the reference seems to be tokenized"),
        (["我们去"] * 300, ["我们去北京吧"] * 300, None, "--to zh"),
        (["ไป"] * 300, ["ไปกัน"] * 300, "th", "BLEU counts characters"),
        (["a b c"] * 300, ["a b c"] * 270 + ["a b c d"] * 30, None, "look at chrF"),
        (["a"] * 300, ["b"] * 299 + [" "], None, "1 sentences have an empty reference"),
        (["für uns."] * 300, ["fu\u0308r uns."] * 300, None, "the references have letters in parts (Unicode NFD) in 300 lines"),
    ],
)
def test_what_makes_a_score_doubtful_is_said(system: list[str], reference: list[str], language: str | None, note: str) -> None:
    assert any(note in said for said in evaluate(system, [reference], language=language, settings=FAST).notes)


def test_an_ordinary_evaluation_has_no_notes() -> None:
    assert evaluate(["a b c."] * 300, [["a b d."] * 300], language="de", settings=FAST).notes == []
    assert evaluate(["我们去。"] * 300, [["我们去北京。"] * 300], language="zh", settings=FAST).notes == []


def test_four_words_are_counted_as_bleu_counts_them_and_only_if_it_is_asked_for() -> None:
    def said(reference: list[str], settings: EvaluateSettings = FAST, language: str | None = None) -> bool:
        return any("look at chrF" in note for note in evaluate(reference, [reference], None, language, settings).notes)

    assert evaluate(["a b c"] * 9, [["a b c"] * 9], settings=FAST).scores[0].value == 0, "else the note is not needed"
    assert said(["a b c"] * 9) and not said(["a b c."] * 9), "to BLEU a full stop is a word"
    assert not said(["我们去吧"] * 9, language="zh"), "and so is a Chinese character"
    assert not said(["a b c"] * 8 + ["a b c d"])
    assert not said(["a b c"] * 9, FAST.changed(metrics=("chrf",)))


def test_a_line_ends_at_a_newline_and_nowhere_else(tmp_path: Path) -> None:
    path = tmp_path / "a.de"
    path.write_bytes("eins\u2028zwei\u0085drei\rvier\x0cfünf\r\nsechs".encode())
    assert read_parallel([str(path)]) == [["eins\u2028zwei\u0085drei\rvier\x0cfünf", "sechs"]]


@pytest.mark.slow
def test_every_file_that_cannot_be_used_is_named_in_one_error(tmp_path: Path) -> None:
    names = {name: str(tmp_path / name) for name in ("good", "empty", "broken", "missing", "longer")}
    Path(names["good"]).write_bytes(b"a\nb\n")
    Path(names["longer"]).write_bytes(b"a\nb\nc\n")
    Path(names["empty"]).write_bytes(b"")
    Path(names["broken"]).write_bytes(b"a\n\xff\n")
    with pytest.raises(DataError) as error:
        read_parallel(list(names.values()))
    text = str(error.value)
    assert f"{names['empty']} is empty" in text
    assert f"{names['broken']}: line 2 is not UTF-8" in text
    assert f"{names['missing']} does not exist" in text
    assert f"{names['good']} has 2" in text and f"{names['longer']} has 3" in text


@pytest.mark.parametrize(
    ("path", "language"),
    [
        ("test.de", "de"),
        ("newstest2018.de-en.de.gz", "de"),
        ("x/devtest.zho_Hans.gz", "zho_Hans"),
        ("a.txt", None),
        ("out", None),
    ],
)
def test_the_language_is_told_by_the_name(path: str, language: str | None) -> None:
    assert language_of(path) == language

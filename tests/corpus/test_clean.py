"""The stage every batch goes through: no row is lost, the first objection counts, and equal letters have equal keys."""

import pickle
import unicodedata
from collections.abc import Sequence
from functools import cache
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from limelight.corpus.cleaning.clean import SHOWN, Cleaner, hash_texts, mode_of
from limelight.corpus.cleaning.leaks import LeakIndex
from limelight.corpus.cleaning.reasons import Reason
from limelight.corpus.config import CorpusSettings, FilterSettings, PrepareSettings
from limelight.corpus.reading.raw import RowFault
from limelight.corpus.reading.raw_batches import RAW
from limelight.text.identify import Identifier

Pair = tuple[str, str]
FINE = ("Two dogs run across the snow.", "Zwei Hunde laufen über den Schnee.")


@pytest.fixture(autouse=True)
def _one_identifier(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its model takes a second to load; all tests share one."""
    monkeypatch.setattr("limelight.corpus.cleaning.clean.Identifier", shared_identifier, raising=False)


@cache
def shared_identifier() -> Identifier:
    return Identifier()


def wanted(languages: tuple[str, str] = ("en", "de"), **chosen: Any) -> PrepareSettings:
    return PrepareSettings(languages=languages, corpora=[CorpusSettings(name="one", paths=["x"])], **chosen)


def raw(pairs: Sequence[Pair], faults: Sequence[int] | None = None) -> pa.Table:
    rows = len(pairs)
    columns = [
        [source for source, _ in pairs],
        [target for _, target in pairs],
        [number % 3 for number in range(rows)],
        [number % 2 for number in range(rows)],
        list(range(1, rows + 1)),
        [f"s{number}" if number % 2 else None for number in range(rows)],
        faults or [0] * rows,
        [None] * rows,
    ]
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, RAW, strict=True)], schema=RAW)


def clean(pairs: Sequence[Pair], settings: PrepareSettings | None = None, faults: Sequence[int] | None = None, **rest: Any) -> pl.DataFrame:
    return Cleaner(settings or wanted(), rest.pop("buckets", 5), **rest).judge_rows(raw(pairs, faults))


def reason(pair: Pair, settings: PrepareSettings | None = None, fault: int = 0, **rest: Any) -> Reason:
    return Reason(clean([FINE, pair], settings, [0, fault], **rest)["reason"][1])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pair", "expected"),
    [
        (FINE, Reason.KEPT),
        ((" \u00ad\n", "x"), Reason.EMPTY),
        (("a" * 1501, "a" * 1501), Reason.TOO_LONG),
        (("a \ufffd", "b"), Reason.BROKEN_TEXT),
        (("Yes", "Ja, das war " + "sehr " * 12), Reason.LENGTH_RATIO),
        (("We all go home.", "We all go home"), Reason.COPIED),
        (("Yes", "Да"), Reason.WRONG_SCRIPT),
        (("Hello %s", "Hallo"), Reason.PLACEHOLDERS),
        (("<b>Yes</b>", "Ja"), Reason.MARKUP),
        (("ha " * 12, "ha " * 9 + "Schluss"), Reason.REPETITION),
        ((FINE[0], "La commission se réunira de nouveau jeudi."), Reason.WRONG_LANGUAGE),
    ],
)
def test_each_filter_gives_its_reason(pair: Pair, expected: Reason) -> None:
    assert reason(pair) == expected


def test_text_is_normalized_before_it_is_judged_and_handed_on() -> None:
    cleaned = clean([("  Cafe\u0301\u00a0 au\tlait \n", "Milch\u00adkaffee")])
    assert cleaned.select("source", "target", "reason").row(0) == ("Café au lait", "Milchkaffee", Reason.KEPT)


def test_the_steps_of_normalization_are_a_setting() -> None:
    pair = ("„a“  b", "c")
    assert clean([pair], wanted(normalize=["quotes"]))["source"][0] == '"a"  b'
    assert clean([pair], wanted(normalize=[]))["source"][0] == "„a“  b"


FAULTY = [
    (RowFault.MALFORMED, Reason.MALFORMED),
    (RowFault.FUZZY, Reason.FUZZY),
    (RowFault.TOO_LONG, Reason.TOO_LONG),
    (RowFault.BROKEN_ENCODING, Reason.BROKEN_TEXT),
]


@pytest.mark.parametrize(("fault", "expected"), FAULTY)
def test_what_the_reader_found_wrong_is_a_reason(fault: RowFault, expected: Reason) -> None:
    assert reason(FINE, fault=fault) == expected


def test_every_fault_has_a_reason() -> None:
    assert {fault for fault, _ in FAULTY} == set(RowFault) - {RowFault.NONE}


BAD = {
    Reason.EMPTY: ("", "."),
    Reason.LENGTH_RATIO: ("Yes", "Ja" * 60),
    Reason.PLACEHOLDERS: ("Hello %s", "Hallo"),
    Reason.MARKUP: ("<b>Yes</b>", "Ja"),
    Reason.NUMBERS: ("in 1999", "in 1998"),
    Reason.WRONG_LANGUAGE: (FINE[0], "La commission se réunira de nouveau jeudi."),
}


@pytest.mark.parametrize("why", BAD)
def test_a_filter_is_off_or_warns_or_drops(why: Reason) -> None:
    cleaned = {
        mode: clean([FINE, BAD[why]], wanted(filters={why.label: mode})).select("reason", "warnings") for mode in ("off", "warn", "drop")
    }
    assert {mode: rows.row(1) for mode, rows in cleaned.items()} == {
        "off": (Reason.KEPT, 0),
        "warn": (Reason.KEPT, 1 << why),
        "drop": (why, 0),
    }
    assert all(rows.row(0) == (Reason.KEPT, 0) for rows in cleaned.values())


def test_numbers_only_warn_unless_asked() -> None:
    assert clean([BAD[Reason.NUMBERS]]).select("reason", "warnings").row(0) == (Reason.KEPT, 1 << Reason.NUMBERS)


def test_the_first_that_objects_gives_the_reason() -> None:
    """A pair with four faults loses them from the front, one filter after the other."""
    pair = ("%s <b> 10", "Ja" * 60)
    order = [Reason.LENGTH_RATIO, Reason.PLACEHOLDERS, Reason.MARKUP, Reason.NUMBERS]
    modes: dict[str, str] = {"numbers": "drop"}
    for why in order:
        assert reason(pair, wanted(filters=modes)) == why
        modes[why.label] = "off"
    assert reason(pair, wanted(filters=modes)) == Reason.KEPT


def test_what_the_reader_found_comes_in_the_same_order() -> None:
    assert reason(("", ""), fault=RowFault.MALFORMED) == Reason.MALFORMED
    assert reason(("", ""), wanted(filters={"malformed": "off"}), fault=RowFault.MALFORMED) == Reason.EMPTY


def test_several_warnings_are_a_bit_each_and_what_is_dropped_later_keeps_them() -> None:
    pair = ("%s <b> 10", "Ja")
    modes = {"placeholders": "warn", "markup": "warn", "numbers": "drop"}
    row = clean([pair], wanted(filters=modes)).select("reason", "warnings").row(0)
    assert row == (Reason.NUMBERS, 1 << Reason.PLACEHOLDERS | 1 << Reason.MARKUP)


def test_every_filter_of_the_settings_is_a_reason_and_can_be_switched() -> None:
    modes = {name for name, field in FilterSettings.model_fields.items() if field.default in ("off", "warn", "drop")}
    for name in modes:
        assert mode_of(wanted(filters={name: "off"}), Reason[name.upper()]) == "off"
    assert modes == {why.label for why in Reason if Reason.KEPT < why < Reason.LEAK}


def test_everything_off_keeps_everything() -> None:
    modes = {why.label: "off" for why in Reason if Reason.KEPT < why < Reason.LEAK}
    pairs = [FINE, *BAD.values()]
    cleaned = clean(pairs, wanted(filters=modes), [4, 1, 0, 2, 0, 0, 0])
    assert cleaned["reason"].to_list() == cleaned["warnings"].to_list() == [0] * len(pairs)


def test_a_line_of_which_only_the_beginning_was_read_is_dropped_whatever_the_filters_say() -> None:
    assert reason(FINE, wanted(filters={"too_long": "off"}), fault=RowFault.TOO_LONG) == Reason.TOO_LONG


def test_dropped_text_is_left_out_unless_asked_for_but_for_the_first_few() -> None:
    many = [BAD[Reason.PLACEHOLDERS]] * 60
    few, full = (pl.DataFrame(Cleaner(wanted(keep_dropped=kept), 5)(raw(many))) for kept in (False, True))
    shown = few.filter(pl.col("source") != "").group_by("corpus").len()["len"].to_list()
    assert set(shown) == {SHOWN}
    assert few["pairs"].sum() == full["pairs"].sum() == len(many)
    assert full.select("source", "target").rows() == many


def test_no_row_and_no_place_is_lost() -> None:
    pairs = [FINE, *BAD.values(), FINE]
    before, after = pl.DataFrame(raw(pairs)), clean(pairs)
    assert before.select("corpus", "file", "line", "segment").equals(after.select("corpus", "file", "line", "segment"))


def test_an_empty_batch_has_the_columns_of_a_full_one() -> None:
    for settings in (wanted(), wanted(dedup={"near": True})):
        assert clean([], settings).schema == clean([FINE], settings).schema
        assert clean([], settings).height == 0


def test_leaks_are_dropped_warned_of_or_left() -> None:
    leaks = LeakIndex((FINE[0].upper(),), ("x",), 0.8)
    modes = {mode: wanted(held_out={"leaks": mode}) for mode in ("drop", "warn", "off")}
    rows = {mode: clean([FINE], chosen, leaks=leaks).select("reason", "warnings").row(0) for mode, chosen in modes.items()}
    assert rows == {"drop": (Reason.LEAK, 0), "warn": (Reason.KEPT, 1 << Reason.LEAK), "off": (Reason.KEPT, 0)}
    assert reason(FINE) == Reason.KEPT


def test_a_cleaner_that_travelled_cleans_alike() -> None:
    cleaner = Cleaner(wanted(), 5, LeakIndex((FINE[0],), (FINE[1],), 0.8))
    pairs = raw([FINE, *BAD.values()])
    here = cleaner(pairs)
    assert pickle.loads(pickle.dumps(cleaner))(pairs).equals(here)


def test_the_region_of_a_language_does_not_matter_for_identification() -> None:
    pair = (FINE[0], "Der Ausschuss tagt am Donnerstagnachmittag wieder.")
    assert reason(pair, wanted(("en", "pt"))) == Reason.WRONG_LANGUAGE
    assert reason(pair, wanted(("en", "pt-BR"))) == Reason.WRONG_LANGUAGE


@pytest.mark.parametrize(
    "pair",
    [
        (FINE[0], "Save all files"),  # too short to tell
        ("Johann Sebastian Bach in Leipzig", "Johann Sebastian Bach in Leipzig an der Pleiße"),
        (FINE[0], FINE[1] + " The End"),
        ("1234567890 1234567890 1234567890", "1234567890 1234567890 1234567890"),
    ],
)
def test_short_text_and_names_are_not_taken_for_another_language(pair: Pair) -> None:
    assert reason(pair) == Reason.KEPT


def test_either_side_may_be_in_the_wrong_language() -> None:
    french = "La commission se réunira de nouveau jeudi."
    assert reason((french, FINE[1])) == reason((FINE[0], french)) == Reason.WRONG_LANGUAGE
    assert reason((french, FINE[1]), wanted(("fr", "de"))) == Reason.KEPT


def test_a_language_that_cannot_be_identified_is_not_judged() -> None:
    assert reason(FINE, wanted(("en", "tlh"))) == Reason.KEPT


letters = st.text("aBcÖé e\u0301ßж字1 ,.-%s<b>\u00a0\n", max_size=25)


@pytest.mark.slow
@given(st.lists(st.tuples(letters, letters), max_size=8), st.data(), st.booleans())
@examples(max_examples=40, deadline=None)
def test_however_the_rows_are_cut_into_batches_they_come_out_the_same(pairs: list[Pair], data: st.DataObject, near: bool) -> None:
    table = raw(pairs, data.draw(st.lists(st.integers(0, 4), min_size=len(pairs), max_size=len(pairs))))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(pairs)), max_size=3)))
    chosen = wanted(dedup={"near": near}, filters={"wrong_language": "off"}, keep_dropped=data.draw(st.booleans()))
    cleaner = Cleaner(chosen, 5, LeakIndex(("a a a a a a",), ("b",), 0.8))
    whole = cleaner.judge_rows(table)
    parts = [cleaner.judge_rows(table[start:stop]) for start, stop in zip([0, *cuts], [*cuts, len(pairs)], strict=True)]
    assert pl.concat(parts).equals(whole)
    assert whole.height == len(pairs)


def test_a_record_batch_is_as_good_as_a_table() -> None:
    table = raw([FINE, *BAD.values()])
    assert Cleaner(wanted(), 5)(table.to_batches()[0]).equals(Cleaner(wanted(), 5)(table))


def test_the_batch_that_is_cleaned_stays_as_it_was() -> None:
    table = raw([("  Cafe\u0301 ≠  1", "Ö"), ("", "")])
    before = table.to_pylist()
    Cleaner(wanted(dedup={"near": True}), 5)(table)
    assert table.to_pylist() == before


SAME_SOURCES = ["Öffne Datei 12 ...", "offne datei", "O\u0308FFNE-DATEI!"]


def test_sources_of_the_same_letters_have_the_same_key_and_bucket() -> None:
    cleaned = clean([(source, "x") for source in [*SAME_SOURCES, "offne datein"]])
    assert len(set(cleaned["source_key"][:3])) == len(set(cleaned["bucket"][:3])) == 1
    assert cleaned["source_key"][3] != cleaned["source_key"][0]


def test_near_keys_are_there_when_asked_for_and_look_at_both_sides() -> None:
    pairs = [("Öl 1", "Oil!"), ("ol", "oil"), ("ol", "oils"), ("olo", "il")]
    assert "near_key" not in clean(pairs).columns
    keys = clean(pairs, wanted(dedup={"near": True}))["near_key"].to_list()
    assert keys[0] == keys[1]
    assert len(set(keys)) == 3


def test_text_without_letters_is_its_own_key() -> None:
    cleaned = clean([("12", "x"), ("13", "x"), ("12", "y"), ("¿?", "x")], wanted(dedup={"near": True}))
    keys = cleaned["source_key"].to_list()
    assert keys[0] == keys[2]
    assert len(set(keys)) == 3
    assert len(set(cleaned["near_key"])) == 4


def test_keys_are_the_same_for_ever() -> None:
    """If this fails, prepared text is cut otherwise than before: restore the arithmetic, do not change the numbers."""
    assert hash_texts("k", pl.Series(["", "a", "offnedatei", "字"])).to_list() == FROZEN
    cleaned = clean([("Öffne Datei", "x"), ("12", "x")], wanted(dedup={"near": True}), buckets=7)
    assert cleaned["source_key"].to_list() == [FROZEN[2], FROZEN_NUMBER]
    assert cleaned["bucket"].to_list() == [FROZEN[2] % 7, FROZEN_NUMBER % 7]
    assert cleaned["near_key"].to_list() == FROZEN_NEAR


FROZEN = [3244421341483603138, 16629034431890738719, 14062809460425586407, 10106998871491330753]
FROZEN_NUMBER = 9137010170949574516
FROZEN_NEAR = [8958050933169045564, 1468810645912931137]


@pytest.mark.slow
@given(st.lists(letters, max_size=20), st.integers(1, 9))
@examples(max_examples=40, deadline=None)
def test_every_row_has_a_bucket_that_its_source_key_alone_decides(sources: list[str], buckets: int) -> None:
    chosen = wanted(filters={"wrong_language": "off"})
    cleaned = clean([(source, "x") for source in sources], chosen, buckets=buckets)
    assert cleaned["bucket"].is_between(0, buckets - 1).all()
    assert cleaned.select(pl.struct("source_key", "bucket").n_unique()).item() == cleaned["source_key"].n_unique()


def test_buckets_fill_evenly() -> None:
    words = [f"{a}{b}{c}" for a in "abcdefghij" for b in "klmnopqrst" for c in "uvwxyzabcd"]
    chosen = wanted(filters={"wrong_language": "off"})
    counts = clean([(word, "x") for word in words], chosen, buckets=5)["bucket"].value_counts()["count"]
    assert len(counts) == 5
    assert counts.min() > 150
    assert counts.max() < 250


@pytest.mark.slow
@given(letters)
def test_case_and_composition_do_not_change_the_key(text: str) -> None:
    variants = [text, text.swapcase() if "ß" not in text else text, unicodedata.normalize("NFD", text)]
    chosen = wanted(filters={"wrong_language": "off"})
    keys = clean([(variant, "x") for variant in variants if any(map(str.isalpha, text))], chosen)["source_key"]
    assert keys.n_unique() <= 1

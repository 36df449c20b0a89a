"""Settling a bucket: everything read is kept or dropped, the first of equals stays, and no source is in two splits."""

import itertools
import json
import random
from collections import Counter
from collections.abc import Sequence
from functools import reduce
from typing import Any, NamedTuple

import polars as pl
import pytest
import xxhash
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from limelight.corpus.cleaning.clean import SHOWN
from limelight.corpus.cleaning.reasons import Reason
from limelight.corpus.config import CorpusSettings, PrepareSettings
from limelight.corpus.exchange.settle import LENGTHS, SHOWN_CHARACTERS, BucketResult, add, settle

SPLITS = ("train", "valid", "test")
NOTHING_HELD_OUT = {"valid_pairs": 0, "test_pairs": 0}


class Row(NamedTuple):
    source: str
    target: str
    corpus: int = 0
    reason: int = 0
    warnings: int = 0


def wanted(held_out: dict[str, Any] | None = None, seed: int = 17, **dedup: Any) -> PrepareSettings:
    return PrepareSettings(
        languages=("en", "de"),
        corpora=[CorpusSettings(name="one", paths=["x"])],
        held_out=held_out or NOTHING_HELD_OUT,
        dedup=dedup,
        seed=seed,
    )


def cleaned(rows: Sequence[Row]) -> pl.DataFrame:
    """As the cleaner leaves them, one line each. Equal keys mean equal letters, whatever their case."""

    def key(text: str) -> int:
        return xxhash.xxh3_64_intdigest(text.lower().encode())

    return pl.DataFrame(
        {
            "source": [row.source for row in rows],
            "target": [row.target for row in rows],
            "corpus": [row.corpus for row in rows],
            "file": [row.corpus + number % 2 for number, row in enumerate(rows)],
            "line": list(range(1, len(rows) + 1)),
            "segment": [None if number % 3 else f"s{number}" for number in range(len(rows))],
            "reason": [row.reason for row in rows],
            "warnings": [row.warnings for row in rows],
            "source_key": [key(row.source) for row in rows],
            "near_key": [key(row.source + "\0" + row.target) for row in rows],
            "pairs": [1] * len(rows),
            "copies": [1] * len(rows),
            "bucket": [0] * len(rows),
        },
        schema={
            "source": pl.String, "target": pl.String, "corpus": pl.Int16, "file": pl.Int32, "line": pl.Int64, "segment": pl.String,
            "reason": pl.UInt8, "warnings": pl.UInt32, "source_key": pl.UInt64, "near_key": pl.UInt64, "pairs": pl.Int64,
            "copies": pl.Int64, "bucket": pl.Int32,
        },
    )  # fmt: skip


def settled(rows: Sequence[Row] | pl.DataFrame, chosen: PrepareSettings, bucket: int = 0, buckets: int = 1) -> BucketResult:
    table = rows if isinstance(rows, pl.DataFrame) else cleaned(rows)
    return settle(table.to_arrow(), chosen, bucket, buckets)


def in_buckets(rows: pl.DataFrame, chosen: PrepareSettings, buckets: int) -> list[BucketResult]:
    return [settled(rows.filter(pl.col("source_key") % buckets == bucket), chosen, bucket, buckets) for bucket in range(buckets)]


def lines(result: BucketResult, *splits: str) -> list[int]:
    return sorted(line for split in splits or SPLITS for line in result.splits[split]["line"].to_pylist())


def reasons(result: BucketResult) -> dict[int, Reason]:
    return dict(zip(result.dropped["line"].to_pylist(), map(Reason, result.dropped["reason"].to_pylist()), strict=True))


def ordered(tally: dict[str, Any]) -> dict[str, Any]:
    """Tables as sorted rows: their order is no part of what is counted."""
    return {
        name: sorted(value, key=lambda row: json.dumps(row, sort_keys=True)) if isinstance(value, list) else value
        for name, value in tally.items()
    }


rows_drawn = st.lists(
    st.builds(
        Row,
        source=st.sampled_from(["a", "A", "b", "c d", "C d", "e"]),
        target=st.sampled_from(["u", "U", "v", "w x", "y", "z"]),
        corpus=st.integers(0, 2),
        reason=st.sampled_from([0, 0, 0, 0, Reason.EMPTY, Reason.MARKUP]),
        warnings=st.sampled_from([0, 0, 1 << Reason.NUMBERS, 1 << Reason.NUMBERS | 1 << Reason.LEAK]),
    ),
    max_size=25,
)
settings_drawn = st.builds(
    wanted,
    held_out=st.fixed_dictionaries(
        {
            "valid_pairs": st.integers(0, 5),
            "test_pairs": st.integers(0, 5),
            "largest_share": st.sampled_from([0.1, 0.4]),
        }
    ),
    exact=st.booleans(),
    near=st.booleans(),
    targets_per_source=st.sampled_from([None, 1, 2, 4]),
)


@pytest.mark.slow
@given(rows_drawn, settings_drawn)
@settings(max_examples=30, deadline=None)
def test_what_is_read_is_kept_once_or_dropped_once(rows: list[Row], chosen: PrepareSettings) -> None:
    result = settled(rows, chosen)
    assert sorted([*lines(result), *reasons(result)]) == list(range(1, len(rows) + 1))

    def counted(table: str) -> Counter[int]:
        counts: Counter[int] = Counter()
        for row in result.tally[table]:
            counts[row["corpus"]] += row["pairs"]
        return counts

    assert counted("read") == Counter(row.corpus for row in rows) == counted("kept") + counted("dropped")
    for split in SPLITS:
        kept = sum(row["pairs"] for row in result.tally["kept"] if row["split"] == split)
        assert kept == result.splits[split].num_rows


@pytest.mark.slow
@given(rows_drawn, settings_drawn, st.randoms(use_true_random=False))
@settings(max_examples=30, deadline=None)
def test_the_order_of_arrival_does_not_matter(rows: list[Row], chosen: PrepareSettings, chance: random.Random) -> None:
    table = cleaned(rows)
    places = list(range(len(rows)))
    chance.shuffle(places)
    one, other = settled(table, chosen), settled(table[places], chosen)
    assert one.splits == other.splits
    assert one.dropped.equals(other.dropped)
    assert ordered(one.tally) == ordered(other.tally)


def by_hand(rows: Sequence[Row], chosen: PrepareSettings) -> dict[int, Reason]:
    """The rules for repeats, row by row. Rows are sorted by corpus, file and line."""
    table = cleaned(rows).sort("corpus", "file", "line").to_dicts()
    kept = [row for row in table if not row["reason"]]
    copies = Counter((row["source"], row["target"]) for row in kept)
    found = {row["line"]: Reason(row["reason"]) for row in table if row["reason"]}
    for switched, key, why in (
        (chosen.dedup.exact, lambda row: (row["source"], row["target"]), Reason.DUPLICATE),
        (chosen.dedup.near, lambda row: row["near_key"], Reason.NEAR_DUPLICATE),
    ):
        seen: set[Any] = set()
        for row in kept if switched else []:
            if key(row) in seen:
                found[row["line"]] = why
            seen.add(key(row))
        kept = [row for row in kept if row["line"] not in found]
    for _, group in itertools.groupby(sorted(kept, key=lambda row: row["source"]), key=lambda row: row["source"]):
        ranked = sorted(group, key=lambda row: -copies[row["source"], row["target"]])
        for row in ranked[chosen.dedup.targets_per_source :] if chosen.dedup.targets_per_source else []:
            found[row["line"]] = Reason.CONFLICT
    return found


@pytest.mark.slow
@given(rows_drawn, settings_drawn)
def test_repeats_are_found_as_by_hand(rows: list[Row], chosen: PrepareSettings) -> None:
    assume(chosen.dedup.exact or chosen.dedup.targets_per_source is None)
    assert reasons(settled(rows, chosen)) == by_hand(rows, chosen)


def test_of_equal_pairs_the_first_in_the_order_of_the_corpora_stays() -> None:
    rows = [Row("a", "u", corpus=1), Row("a", "u", corpus=0), Row("a", "u", corpus=1), Row("a", "v", corpus=1)]
    result = settled(rows, wanted())
    assert lines(result) == [2, 4]
    assert reasons(result) == {1: Reason.DUPLICATE, 3: Reason.DUPLICATE}


def test_what_was_dropped_before_makes_no_duplicate() -> None:
    rows = [
        Row("a", "u", reason=Reason.MARKUP),
        Row("a", "u"),
        Row("", "", reason=Reason.EMPTY),
        Row("", "", reason=Reason.EMPTY),
    ]
    assert reasons(settled(rows, wanted())) == {1: Reason.MARKUP, 3: Reason.EMPTY, 4: Reason.EMPTY}


def test_near_duplicates_are_dropped_when_asked_and_named_apart() -> None:
    rows = [Row("a", "u"), Row("A", "U"), Row("a", "u"), Row("A", "v")]
    assert reasons(settled(rows, wanted())) == {3: Reason.DUPLICATE}
    assert reasons(settled(rows, wanted(near=True))) == {2: Reason.NEAR_DUPLICATE, 3: Reason.DUPLICATE}


def test_the_most_frequent_targets_of_a_source_stay_and_of_equals_the_first() -> None:
    rows = [Row("a", target) for target in "uvwxyzyzvz"] + [Row("b", "u")]

    def kept(cap: int) -> set[tuple[str, str]]:
        train = settled(rows, wanted(targets_per_source=cap)).splits["train"]
        return set(zip(train["source"].to_pylist(), train["target"].to_pylist(), strict=True))

    assert kept(1) == {("a", "z"), ("b", "u")}
    assert kept(3) == {("a", "z"), ("a", "y"), ("a", "v"), ("b", "u")}
    assert kept(4) == kept(3) | {("a", "u")}
    assert list(reasons(settled(rows, wanted(targets_per_source=3))).values()).count(Reason.CONFLICT) == 3
    assert Reason.CONFLICT not in reasons(settled(rows, wanted(targets_per_source=None))).values()


def test_copies_that_may_stay_are_no_conflict() -> None:
    assert reasons(settled([Row("a", "u")] * 6, wanted(exact=False, targets_per_source=4))) == {}


def many(groups: int, size: int = 1, corpora: int = 1) -> list[Row]:
    """Groups of one source key each; within a group the case of the source differs or the target does."""
    return [
        Row(f"source {group}" if member % 2 else f"Source {group}", f"target {member}", corpus=group % corpora)
        for group in range(groups)
        for member in range(size)
    ]


@pytest.mark.slow
@given(st.lists(st.integers(1, 4), min_size=1, max_size=30), settings_drawn, st.sampled_from([1, 2, 3]))
@settings(max_examples=40, deadline=None)
def test_no_source_is_in_two_splits_and_no_share_is_exceeded_by_more_than_a_group(
    sizes: list[int], chosen: PrepareSettings, buckets: int
) -> None:
    rows = cleaned([Row(f"s{group}", f"t{member}") for group, size in enumerate(sizes) for member in range(size)])
    results = in_buckets(rows, chosen, buckets)
    where: dict[int, set[str]] = {}
    for result, split in itertools.product(results, SPLITS):
        for key in result.splits[split]["source_key"].to_pylist():
            where.setdefault(key, set()).add(split)
    assert all(len(splits) == 1 for splits in where.values())
    held_out = chosen.held_out
    for split, asked in (("valid", held_out.valid_pairs), ("test", held_out.test_pairs)):
        assert sum(result.splits[split].num_rows for result in results) < asked + max(sizes, default=0) * buckets + 1
        for result in results:
            assert result.splits[split].num_rows < held_out.largest_share * len(lines(result)) + max(sizes, default=0) + 1


@pytest.mark.slow
@pytest.mark.parametrize("buckets", [1, 7, 40])
def test_the_held_out_sets_have_the_size_asked_for_over_any_buckets(buckets: int) -> None:
    chosen = wanted({"valid_pairs": 30, "test_pairs": 45, "largest_share": 0.3})
    results = in_buckets(cleaned(many(2000)), chosen, buckets)
    assert [sum(result.splits[split].num_rows for result in results) for split in SPLITS] == [1925, 30, 45]


def test_the_largest_share_bounds_each_held_out_set() -> None:
    result = settled(many(100), wanted({"valid_pairs": 1000, "test_pairs": 1000, "largest_share": 0.06}))
    assert [result.splits[split].num_rows for split in SPLITS] == [88, 6, 6]


def test_whole_groups_are_held_out() -> None:
    result = settled(many(100, size=3), wanted({"valid_pairs": 13, "test_pairs": 30, "largest_share": 0.4}))
    assert [result.splits[split].num_rows for split in SPLITS] == [255, 15, 30]


@pytest.mark.slow
def test_groups_larger_than_the_share_of_a_bucket_are_held_out_too() -> None:
    chosen = wanted({"valid_pairs": 20, "test_pairs": 20})
    results = in_buckets(cleaned(many(1000, size=2)), chosen, 20)
    assert sum(result.splits["test"].num_rows for result in results) >= 15


@pytest.mark.parametrize(("given_set", "left"), [("valid", "test"), ("test", "valid")])
def test_a_given_set_is_not_split_off_again(given_set: str, left: str) -> None:
    held_out = {given_set: ("some.tsv",), "valid_pairs": 5, "test_pairs": 7}
    result = settled(many(400), wanted(held_out))
    assert result.splits[given_set].num_rows == 0
    assert result.splits[left].num_rows == held_out[f"{left}_pairs"]


@pytest.mark.parametrize("held_out", [NOTHING_HELD_OUT, {"valid": ("a",), "test": ("b",)}, {"largest_share": 0}])
def test_nothing_is_held_out_when_nothing_is_asked_for(held_out: dict[str, Any]) -> None:
    assert lines(settled(many(50), wanted(held_out)), "train") == list(range(1, 51))


@pytest.mark.slow
@given(rows_drawn, settings_drawn)
@settings(max_examples=15, deadline=None)
def test_one_bucket_or_seven_keep_and_drop_the_same_pairs(rows: list[Row], chosen: PrepareSettings) -> None:
    table = cleaned(rows)
    whole, parts = settled(table, chosen), in_buckets(table, chosen, 7)
    assert lines(whole) == sorted(itertools.chain.from_iterable(map(lines, parts)))
    assert reasons(whole) == {line: why for part in parts for line, why in reasons(part).items()}


def test_the_held_out_sets_are_a_random_sample_that_the_seed_decides() -> None:
    held_out = {"valid_pairs": 50, "test_pairs": 50, "largest_share": 0.3}
    drawn = [lines(settled(many(1000), wanted(held_out, seed)), "test") for seed in (1, 1, 2)]
    assert drawn[0] == drawn[1] != drawn[2]
    assert 350 < sum(drawn[0]) / 50 < 650  # neither the first nor the last
    valid = lines(settled(many(1000), wanted(held_out, 1)), "valid")
    assert not set(valid) & set(drawn[0])


def test_training_pairs_are_shuffled_within_their_corpus() -> None:
    first, again, other = (settled(many(300, corpora=3), wanted(seed=seed)).splits["train"] for seed in (1, 1, 2))
    assert first.equals(again)
    assert first["line"] != other["line"]
    assert first["corpus"].to_pylist() == sorted(first["corpus"].to_pylist())
    read = [line for line, corpus in zip(first["line"].to_pylist(), first["corpus"].to_pylist(), strict=True) if corpus == 1]
    assert sorted(read) == list(range(2, 301, 3))
    ascents = sum(a < b for a, b in itertools.pairwise(read))
    assert 30 < ascents < 70


def test_an_empty_bucket_is_settled() -> None:
    result = settled([], wanted({"valid_pairs": 3}))
    assert [result.splits[split].num_rows for split in SPLITS] == [0, 0, 0]
    assert result.tally["read"] == result.tally["kept"] == result.tally["dropped"] == []


@pytest.mark.slow
@given(rows_drawn, st.integers(1, 4))
@settings(max_examples=25, deadline=None)
def test_added_tallies_of_the_buckets_are_the_tally_of_all(rows: list[Row], buckets: int) -> None:
    chosen, table = wanted(near=True), cleaned(rows)
    parts = [part.tally for part in in_buckets(table, chosen, buckets)]
    assert ordered(reduce(add, parts)) == ordered(settled(table, chosen).tally)


@pytest.mark.slow
@given(rows_drawn)
@settings(max_examples=20, deadline=None)
def test_tallies_can_be_added_in_any_order_and_grouping(rows: list[Row]) -> None:
    a, b, c = (part.tally for part in in_buckets(cleaned(rows), wanted(), 3))
    assert add(add(a, b), c) == add(a, add(b, c)) == add(c, add(b, a))
    assert json.loads(json.dumps(add(a, b))) == add(a, b)


def test_a_tally_counts_lengths_words_and_characters_of_what_is_kept() -> None:
    rows = [Row("ab cd", "ü" * 10), Row("x" * 400, "one two three"), Row("gone", "gone", reason=Reason.MARKUP)]
    assert settled([Row("一只大猫睡", "ab")], wanted()).tally["words"] == {"source": 3, "target": 1}
    tally = settled(rows, wanted()).tally
    assert tally["words"] == {"source": 3, "target": 4}
    assert tally["characters"] == {"source": 405, "target": 23}
    for side, lengths in (("source", (5, 400)), ("target", (10, 13))):
        counts = [0] * len(LENGTHS)
        for length in lengths:
            counts[max(place for place, bound in enumerate(LENGTHS) if bound <= length)] += 1
        assert tally["lengths"][side] == counts


def test_warnings_are_counted_for_kept_pairs_by_corpus() -> None:
    both = 1 << Reason.NUMBERS | 1 << Reason.LEAK
    rows = [
        Row("a", "u", warnings=both), Row("b", "u", corpus=1, warnings=1 << Reason.NUMBERS), Row("c", "u"),
        Row("d", "u", warnings=1 << Reason.NUMBERS), Row("e", "u", reason=Reason.MARKUP, warnings=both),
    ]  # fmt: skip
    warned = settled(rows, wanted()).tally["warned"]
    assert sorted((row["corpus"], row["reason"], row["pairs"]) for row in warned) == [
        (0, "leak", 1),
        (0, "numbers", 2),
        (1, "numbers", 1),
    ]


def test_the_first_dropped_pairs_of_each_corpus_and_reason_are_shown_cut_to_length() -> None:
    rows = [Row(f"{number}" * 200, "x", corpus=number % 2, reason=Reason.MARKUP) for number in range(10)]
    shown = settled([*rows, Row("e", "", reason=Reason.EMPTY)], wanted()).tally["shown"]
    assert Counter((row["corpus"], row["reason"]) for row in shown) == {
        (0, "markup"): SHOWN,
        (1, "markup"): SHOWN,
        (0, "empty"): 1,
    }
    assert {row["line"] for row in shown if row["corpus"] == 1} == {2, 4, 6}
    assert {len(row["source"]) for row in shown if row["reason"] == "markup"} == {SHOWN_CHARACTERS}

"""Translations of similar texts, told after a source while it is fed: which pair's, after which tag, and the same after a stop."""

import itertools
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from made_sentences import sentences
from prepare_command import FAST, given_pieces, here, write_pairs
from prepared_corpora import fingerprint, stops_that_differ
from rapidfuzz.distance import Indel

from limelight.corpus.feeding.alter import DRAWN, AlteredPair, Change, Speech, Texts, alter_pair
from limelight.corpus.feeding.augment import AugmentSettings, draw_alterations
from limelight.corpus.feeding.batches import Batcher, BatchSettings
from limelight.corpus.feeding.loader import Loader
from limelight.corpus.feeding.matches import LEAST_SIMILAR, UNRELATED, find_matches
from limelight.corpus.feeding.shards import PreparedCorpus
from limelight.text.pieces.tokenizer import MATCH_TAG

TOLD = BatchSettings(budget=900, window=140, longest=200, augment=AugmentSettings(matches=0.5))
SIMILAR = [
    "Could not open the file",
    "The cat sleeps on the mat",
    "Could not open the folder",
    "She saw a dog in the garden",
    "A dog sleeps on the mat",
    "Could not open the file",
    "zq 17",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("matches")
    again = [(source.replace(".", " again."), target.replace(".", " noch einmal.")) for source, target in sentences(60)]
    assert here("prepare", *write_pairs([*sentences(160), *again], place), *FAST, given_pieces(), "-o", place / "prepared").code == 0
    return place / "prepared"


@pytest.fixture(scope="module")
def prepared(folder: Path) -> PreparedCorpus:
    return PreparedCorpus.open(folder)


def told_to(texts: list[str], *, drawn: int = 1, groups: list[int] | None = None) -> list[int]:
    """The row that each is told; of what is drawn, only the multiples of UNRELATED want an unrelated pair."""
    every = np.arange(len(texts))
    chances = np.full(len(texts), drawn, np.uint64)
    return find_matches(pa.array(texts), np.array(groups or [0] * len(texts)), every, chances).tolist()


# --- which pair


def test_the_most_similar_text_is_found_from_the_front_and_from_the_back() -> None:
    found = told_to(SIMILAR)
    assert found[0] == found[5] == 2 and found[2] in (0, 5)
    assert found[1] == 4 and found[4] == 1, "their ends are alike, and their beginnings are not"


def test_the_same_text_is_never_told_and_neither_is_another_direction_or_tag() -> None:
    for drawn in range(60):
        found = told_to(SIMILAR, drawn=drawn)
        assert all(at == -1 or SIMILAR[at] != text for at, text in zip(found, SIMILAR, strict=True))
        groups = [0, 0, 1, 1, 0, 1, 1]
        apart = told_to(SIMILAR, drawn=drawn, groups=groups)
        assert all(at == -1 or groups[at] == own for at, own in zip(apart, groups, strict=True))
    assert told_to(["one"]) == [-1] and told_to(["one", "one"]) == [-1, -1] and told_to(["one", "two"], groups=[0, 1]) == [-1, -1]


def test_what_has_no_similar_text_and_one_in_five_of_the_others_gets_any() -> None:
    assert len({told_to(SIMILAR, drawn=drawn)[6] for drawn in range(300)}) >= 6
    unrelated = {told_to(SIMILAR, drawn=UNRELATED * number)[0] for number in range(60)}
    assert unrelated == {-1, 1, 2, 3, 4, 6}, "itself and the same text were drawn, too"
    assert {told_to(SIMILAR, drawn=UNRELATED * number + 1)[0] for number in range(60)} == {2}


def test_a_long_text_is_compared_by_its_beginning() -> None:
    long = "".join(f"word{number} " for number in range(50_000))
    assert told_to([long, f"{long}!", "other"])[:2] == [1, 0]


# --- what becomes of the pair


def altered(pair: Texts, other: Texts | None, protect: bool = True) -> AlteredPair | None:
    return alter_pair(pair, Change("matches", protect, plain=False, numbers=12345, detail=7), other, Speech(("en", "de"), 16))


def test_what_both_texts_have_has_one_mark_and_what_the_source_lacks_goes() -> None:
    found = altered(("Open %s in %d", "%s in %d öffnen"), ("Close %d", "_Schließe %d und <b>{0}</b> ganz"))
    assert found is not None and found.kinds == ("protect", "matches")
    first, second = found.source.removeprefix("Open ").split(" in ")
    assert found.target == f"{first} in {second} öffnen"
    assert found.match == f"Schließe {second} und ganz", "the sign of an accelerator goes, too"


def test_a_pair_that_is_not_masked_is_told_no_placeholder_either() -> None:
    found = altered(("Open %s", "%s öffnen"), ("Close %s", "%s schließen"), protect=False)
    assert found == AlteredPair("Open %s", "%s öffnen", (), ("matches",), "schließen")


def test_without_a_match_nothing_is_told() -> None:
    assert altered(("Open", "Öffnen"), None) is None
    assert altered(("Open", "Öffnen"), ("%s", "%s")) is None, "nothing is left of it"


# --- batches


def test_a_source_ends_in_the_target_of_another_pair_after_its_tag(prepared: PreparedCorpus) -> None:
    batches = Batcher(prepared.split("train"), TOLD)
    tokenizer, similar = prepared.tokenizers()[0], []
    for epoch in range(3):
        window = batches.window(epoch, 0)
        assert window.changed is not None
        pairs = dict(zip(*(side.to_pylist()[::-1] for side in batches.pairs.texts(window.samples)[::-1]), strict=True))
        sources, targets = (side.to_pylist() for side in batches.pairs.texts(window.samples))
        for at, row in enumerate(window.changed.rows.tolist()):
            if "matches" in window.changed.kinds[at]:
                pieces = window.changed.source
                ids = pieces.values[pieces.offsets[at] : pieces.offsets[at + 1]].tolist()
                own, told = (tokenizer.decode([part])[0] for part in np.split(ids, [ids.index(tokenizer.tag(MATCH_TAG))]))
                assert own == sources[row] and told in targets and pairs[told] != own
                similar.append(Indel.normalized_similarity(pairs[told], own))
                beside = window.changed.target
                assert tokenizer.decode([beside.values[beside.offsets[at] : beside.offsets[at + 1]].tolist()]) == [targets[row]]
    assert len(similar) > 150 and 0.5 < np.mean(np.array(similar) >= LEAST_SIMILAR) < 0.9


def test_a_match_that_would_not_fit_is_not_told(prepared: PreparedCorpus) -> None:
    pairs = prepared.split("train")
    most = max(int(side.max()) for side in pairs.lengths(np.arange(pairs.rows)))
    window = Batcher(pairs, TOLD.changed(longest=most)).window(0, 0)
    assert window.skipped == 0 and max(side.max() for side in window.lengths) <= most + 1


def test_other_draws_stay_what_they_were_and_with_a_share_of_zero_all_do() -> None:
    places = np.arange(30_000)
    plain, told = (draw_alterations(AugmentSettings(matches=share), 1, 2, places) for share in (0.0, 0.25))
    new = told.kinds == DRAWN.index("matches")
    assert np.array_equal(plain.kinds[~new], told.kinds[~new]) and (plain.kinds[new] == len(DRAWN)).all()
    assert np.mean(new) == pytest.approx(0.25, abs=0.01)
    assert "matches" not in AugmentSettings().model_dump(mode="json") and AugmentSettings(matches=0.25).model_dump()["matches"] == 0.25


def test_a_loader_goes_on_with_the_same_matches_and_ranks_share_them(prepared: PreparedCorpus) -> None:
    alone = list(itertools.islice(Loader(prepared, TOLD), 40))
    state = json.loads(json.dumps(alone[17].state))
    assert [fingerprint(each) for each in itertools.islice(Loader(prepared, TOLD, state=state), 22)] == list(map(fingerprint, alone[18:]))
    for rank in range(3):
        for whole, share in zip(alone, Loader(prepared, TOLD, rank=rank, world=3), strict=False):
            assert np.array_equal(share.source, whole.source[rank::3]) and np.array_equal(share.target, whole.target[rank::3])


@pytest.mark.process
def test_a_new_process_goes_on_with_the_same_matches(folder: Path) -> None:
    assert stops_that_differ(folder, TOLD, [3, 11, 20], last=30, per_process=3) == []

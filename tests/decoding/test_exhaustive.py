"""The beam against every translation there is, on random tables small enough to list them all."""

import itertools
import math
from dataclasses import dataclass

import pytest
from slow_search import LengthPenalty, check_sound, exhaustive, gnmt, power, reference_beam
from table_models import TableModel, find, listed_rows, random_rows, sentence

from limelight.decoding.config import SearchSettings

KINDS = ["plain", "ties", "holes", "eos_first", "shy"]
PENALTIES = [0.0, 0.6, 1.0]
BATCH = 7


@dataclass(frozen=True)
class Case:
    """Seven sentences of one table: `pieces` kinds of piece with the end, at most `length` of them."""

    kind: str
    pieces: int
    length: int
    settings: SearchSettings
    model: TableModel

    @property
    def numbers(self) -> range:
        return range(100, 100 + BATCH)


def case(kind: str, pieces: int, length: int, alpha: float, norm: str = "gnmt") -> Case:
    """The beam is as wide as there are prefixes one piece shorter than the longest translation, so that nothing good is lost."""
    width = pieces ** (length - 1)
    settings = SearchSettings(beam=width, nbest=min(width, 5), length_penalty=alpha, length_norm=norm, max_length=length)
    seed = hash((KINDS.index(kind), pieces, length))
    return Case(kind, pieces, length, settings, TableModel(random_rows(pieces + 1, abs(seed), kind), pieces + 1))


def all_cases() -> list[Case]:
    choices = itertools.product(KINDS, [3, 4, 5], [1, 2, 3, 4, 5])
    ways = itertools.cycle([(alpha, norm) for norm in ("gnmt", "power") for alpha in PENALTIES])
    return [case(*choice, *way) for choice, way in zip(choices, ways, strict=False)]


def mismatches(cases: list[Case], penalty: LengthPenalty | None = None) -> tuple[int, int]:
    """How many sentences were compared, and in how many the beam's best is not the oracle's. `penalty` is the oracle's."""
    compared = wrong = 0
    for one in cases:
        outcomes = find(one.model, [sentence(number) for number in one.numbers], one.settings)
        for number, outcome in zip(one.numbers, outcomes, strict=True):
            check_sound(one.model, number, outcome, one.settings, one.length)
            best = exhaustive(one.model, number, one.settings, penalty)[:1]
            found = outcome.hypotheses[:1]
            compared += 1
            if len(best) != len(found) or any(abs(f.score - b.score) > 1e-5 for f, b in zip(found, best, strict=True)):
                wrong += 1
    return compared, wrong


@pytest.mark.slow
def test_a_beam_of_full_width_finds_the_best_of_all_translations():
    """500 of 500, also with ties, impossible pieces, and ends that come first."""
    compared, wrong = mismatches(all_cases())
    assert compared >= 500
    assert wrong == 0


@pytest.mark.parametrize("off", [1, -1])
def test_a_length_penalty_that_is_off_by_one_is_caught(off):
    compared, wrong = mismatches([case("plain", 3, 4, 0.6)], lambda n: gnmt(0.6)(n + off))
    assert wrong == compared == BATCH


@pytest.mark.slow
def test_a_length_penalty_that_is_off_by_one_also_chooses_other_translations():
    """So that noticing it does not rest on the scores alone."""
    chosen = []
    for kind in ("plain", "shy"):
        one = case(kind, 4, 5, 1.0, "power")
        found = find(one.model, [sentence(number) for number in one.numbers], one.settings)
        off = [exhaustive(one.model, number, one.settings, lambda n: power(1.0)(n + 1)) for number in one.numbers]
        chosen += [f.hypotheses[0].ids == o[0].ids for f, o in zip(found, off, strict=True)]
    assert not all(chosen)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("length", [1, 2, 3, 4])
def test_with_room_for_all_translations_the_n_best_are_all_of_them(kind, length):
    """A beam of pieces^length never drops anything."""
    one = case(kind, 3, length, 0.6)
    settings = one.settings.changed(beam=3**length, nbest=3**length)
    for number, outcome in zip(one.numbers, find(one.model, [sentence(n) for n in one.numbers], settings), strict=True):
        wanted = exhaustive(one.model, number, settings)
        assert {tuple(h.ids) for h in outcome.hypotheses} == {tuple(h.ids) for h in wanted}
        assert [h.score for h in outcome.hypotheses] == pytest.approx([h.score for h in wanted], abs=1e-5)
        check_sound(one.model, number, outcome, settings, length)


def test_the_slow_beam_of_full_width_agrees_with_the_oracle():
    """The reference that narrow beams are compared with is itself right where that can be known."""
    for one in all_cases():
        if one.pieces == 3:
            for number in one.numbers:
                slow, best = (
                    reference_beam(one.model, number, one.settings),
                    exhaustive(one.model, number, one.settings),
                )
                assert [h.score for h in slow[:1]] == pytest.approx([h.score for h in best[:1]], abs=1e-9)


def test_a_translation_worked_out_by_hand():
    """Piece 2 looks better at first (.6), but 3 and then the end is better (.4 * .9 = .36 against .6 * .5 = .30)."""
    table = {(): {2: 0.6, 3: 0.4}, (2,): {1: 0.5, 2: 0.25, 3: 0.25}, (3,): {1: 0.9, 2: 0.1}}
    model = TableModel(listed_rows(table, 4), 4)
    settings = SearchSettings(beam=2, nbest=2, length_penalty=1.0, max_length=2)
    first, second = find(model, [sentence(100)], settings)[0].hypotheses
    assert (first.ids, first.finish, second.ids, second.finish) == ([3], "eos", [2], "eos")
    assert first.score == pytest.approx(math.log(0.36) / ((5 + 2) / 6), abs=1e-6)
    assert second.log_probs == pytest.approx([math.log(0.6), math.log(0.5)], abs=1e-6)
    greedy = find(model, [sentence(100)], settings.changed(beam=1, nbest=1))[0].hypotheses
    assert [h.ids for h in greedy] == [[2]]

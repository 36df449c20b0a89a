"""Causes of a word: every method against what it is defined by, planted omissions and additions, and patches from another sentence."""

import math
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from lit_models import INPUTS, KINDS, SOURCE, model_of
from trace_bundle import BUNDLE

from limelight import Translator
from limelight.decoding.steps import never
from limelight.errors import ConfigError, DeadlineError
from limelight.inspection.analysis import varied_pass
from limelight.inspection.analysis.attribution import MOST, POINTS, _integrate, find_effects
from limelight.inspection.analysis.varied_pass import VariedPass
from limelight.inspection.causes import METHODS, Attribution, PatchMap, PieceEffect
from limelight.inspection.drawing.heatmaps import patch_picture
from limelight.inspection.tracing.forced_translation import find_rows
from limelight.inspection.tracing.live_trace import LiveTrace

TEXT, OTHER = "four nine six", "seven nine six"  # a piece for each word
SPLIT = len(SOURCE)


@pytest.fixture(scope="module")
def translator() -> Translator:
    return Translator.load(BUNDLE, engine="torch", threads=1)


@pytest.fixture(scope="module")
def trace(translator: Translator) -> LiveTrace:
    return translator.trace(TEXT)


def passes_of(kind: int, wanted: int = 1, over=never) -> VariedPass:
    return VariedPass(model_of(**KINDS[kind]), (SOURCE, INPUTS), [7, 12, 9][:wanted], over)


@pytest.mark.parametrize("number", range(4))
@pytest.mark.slow
def test_a_hidden_source_piece_is_the_one_that_a_trace_hides(translator: Translator, trace: LiveTrace, number: int) -> None:
    ids = [token.id for token in trace.target.tokens[:-1]]
    hidden = translator.trace(TEXT, ids, mask_source=[number])
    for row in range(len(ids)):
        told = trace.why(row)
        assert told.logp == pytest.approx(trace.target.tokens[row].logp, abs=1e-4)
        assert told.source[number].effect == pytest.approx(told.logp - hidden.target.tokens[row].logp, abs=1e-4)
    assert max(abs(trace.why(row).source[number].effect) for row in range(len(ids))) > 1e-3, "each of them does something"


@pytest.mark.parametrize("kind", range(len(KINDS)))
def test_a_hidden_prefix_piece_is_as_if_it_were_the_blank_and_nobody_saw_it(kind: int) -> None:
    """Whatever stands there changes nothing any more, also what comes to the word without attention, by the residual."""
    passes, place = passes_of(kind), 4
    assert passes.size - 1 == SPLIT + place and passes.pieces[-1] == SPLIT + place
    others = [VariedPass(passes.model, (SOURCE, [*INPUTS[:place], number]), [7], never) for number in (4, 11)]
    hidden = [float(each.without([[SPLIT + place]])) for each in (passes, *others)]
    assert hidden[1:] == pytest.approx([hidden[0]] * 2, abs=1e-5)
    assert abs(float(others[0].without([()])) - float(passes.without([()]))) > 1e-3


@pytest.mark.parametrize("kind", range(len(KINDS)))
def test_zeroed_values_are_looked_at_and_give_nothing(kind: int) -> None:
    passes = passes_of(kind)
    found = find_effects(passes, "value-zeroing").each
    lights = [light for light in passes.model.spotlights() if light.kind != "decoder"]
    for light in lights:
        light.attention.looks.append(lambda stage, value: value * torch.tensor([1, 1, 0, 1, 1, 1, 1.0])[:, None] if stage == "v" else None)
    changed = float(passes.without([()]))
    for light in lights:
        light.attention.looks.clear()
    assert float(found[2]) == pytest.approx(float(passes.without([()])) - changed, abs=1e-5) != 0


@pytest.mark.parametrize("kind", range(len(KINDS)))
def test_gradients_are_slopes_and_their_mean_is_complete(kind: int) -> None:
    passes = passes_of(kind, 3)
    passes.model.double()
    found = passes.gradients([0.6])[0].sum()
    (low,), (high,) = (passes.gradients([light])[1].tolist() for light in (0.599, 0.601))
    assert float(found) == pytest.approx((high - low) / 0.002, rel=0.03, abs=1e-3)
    blank, own = passes.gradients([0.0, 1.0])[1].tolist()
    told = find_effects(passes, "integrated")
    assert float(told.each.sum()) == pytest.approx(own - blank, abs=0.02 * float(told.each.abs().sum()))
    assert told.whole == pytest.approx(own - blank) and told.missed == pytest.approx(float(told.each.sum()) - told.whole)


@pytest.mark.parametrize("method", METHODS)
def test_the_start_the_word_itself_and_what_comes_later_are_credited_nothing(method) -> None:
    found = find_effects(passes_of(0, 2), method).each.tolist()
    assert len(found) == SPLIT + len(INPUTS) and found[SPLIT] == found[-1] == 0
    assert all(abs(effect) > 1e-9 for effect in [*found[:SPLIT], *found[SPLIT + 1 : -1]])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("cells", [4096, 30, 1])
def test_how_it_is_cut_into_batches_does_not_matter(monkeypatch, method, cells) -> None:
    whole = find_effects(passes_of(0), method)
    monkeypatch.setattr(varied_pass, "CELLS", cells)
    parts = find_effects(passes_of(0), method)
    assert parts.each.tolist() == pytest.approx(whole.each.tolist(), abs=1e-5) and parts.logp == pytest.approx(whole.logp)


def test_hooks_are_gone_also_when_time_is_over(trace: LiveTrace) -> None:
    asked = iter([False, True])
    passes = passes_of(0, over=lambda: next(asked))
    passes.without([()])
    with pytest.raises(DeadlineError, match="more time"):
        passes.without([[0]])
    assert not any(module._forward_pre_hooks or module._forward_hooks for module in passes.model.modules())
    assert not any(light.attention.looks for light in passes.model.spotlights())


def test_hiding_all_that_is_left_is_a_blank_and_no_division_by_zero(translator: Translator) -> None:
    trace = translator.trace(TEXT, mask_source=range(1, len(translator.trace(TEXT).source.tokens)))
    told = trace.why(0)
    assert math.isfinite(told.source[0].effect) and told.source[0].effect and not any(each.effect for each in told.source[1:])
    assert all(math.isfinite(each.effect) for each in trace.check())


def test_the_way_from_blank_is_cut_into_no_more_points_than_is_said() -> None:
    """Steps are what no polynomial follows, so every part is halved for as long as may be."""

    class Stepped:
        taken = 0

        def gradients(self, lights: list[float]) -> tuple[torch.Tensor, torch.Tensor]:
            self.taken += len(lights)
            told = torch.tensor(lights, dtype=torch.float64)
            return torch.zeros(len(lights), 3, dtype=torch.float64), torch.floor(told * 97)

    passes = Stepped()
    _integrate(passes)  # type: ignore[arg-type]
    assert MOST - 2 * (POINTS + 2) < passes.taken <= MOST


def test_this_and_not_that_is_the_difference(translator: Translator, trace: LiveTrace) -> None:
    word, other = trace.target.text.split(" ")[1], translator.trace("seven").target.text
    for method in METHODS:
        contrast, own = trace.why(word, method, instead_of=other), trace.why(word, method)
        swapped = [token.id for token in trace.target.tokens[: own.first]] + translator.target_ids([other])[0]
        against = translator.trace(TEXT, swapped).why(own.first if len(translator.target_ids([word])[0]) == 1 else other, method)
        assert contrast.instead_of == other and contrast.logp == pytest.approx(own.logp - against.logp, abs=1e-4)
        for one, two, both in zip(own.source, against.source, contrast.source, strict=True):
            assert both.effect == pytest.approx(one.effect - two.effect, abs=1e-3)


def test_each_number_came_from_its_own(trace: LiveTrace) -> None:
    for place, word in enumerate(trace.target.text.split(" ")):
        told = trace.why(word)
        assert trace.source.tokens[max(range(len(told.source)), key=lambda at: told.source[at].effect)].word == place
        assert sum(abs(each.share) for each in (*told.source, *told.prefix)) == pytest.approx(1)
        assert told.source_share == sum(abs(each.share) for each in told.source)
        assert f"followed the source by {100 * told.source_share:.0f} %" in str(told) and f"why {word}:" in str(told)


def test_where_nothing_has_an_effect_nothing_is_divided() -> None:
    told = Attribution("a", 0, None, "occlusion", -1.0, 0.0, (PieceEffect("a", 0.0, 0.0),), ())
    assert "0 %" in str(told)


@pytest.mark.parametrize("word", ["", "foo", 99, -1])
def test_a_word_that_is_not_there_is_refused_with_those_that_are(trace: LiveTrace, word) -> None:
    with pytest.raises(ConfigError, match=r"0:.* 1:"):
        trace.why(word)


def test_what_cannot_be_asked_is_said(translator: Translator, trace: LiveTrace) -> None:
    twice = translator.trace("two two two", "zwei zwei zwei")
    with pytest.raises(ConfigError, match="is 3 times"):
        twice.why("zwei")
    assert twice.why(1).first == 1
    with pytest.raises(ConfigError, match="occlusion, value-zeroing"):
        trace.why(0, "magic")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="cannot stand there"):
        trace.why(0, instead_of="  ")
    with pytest.raises(ConfigError, match="source, target, heads"):
        trace.patch(trace, 0, "attics")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="4 and 2 pieces"):
        trace.patch(translator.trace("nine"), 0)
    with pytest.raises(ConfigError, match="the word needs"):
        trace.patch(translator.trace(TEXT, ""), len(trace.target.tokens) - 1, "target")


def test_nothing_is_missed_in_a_good_translation_and_planted_words_are_found(translator: Translator, trace: LiveTrace) -> None:
    assert trace.check() == []
    words = trace.target.text.split(" ")
    shorter = translator.trace(TEXT, " ".join(words[:-1])).check()
    assert [(each.kind, each.word) for each in shorter] == [("omission", "six")]
    assert "likelier without it" in str(shorter[0])
    longer = translator.trace(TEXT, " ".join([*words[:1], translator.trace("seven").target.text, *words[1:]])).check()
    added = [each for each in longer if each.kind == "addition"]
    assert [each.word for each in added] == ["sieben"] and "does not call for it" in str(added[0])


def test_a_sentence_patched_by_itself_stays_as_it_is(trace: LiveTrace) -> None:
    for places, shape in (("source", (3, 4)), ("target", (3, 2)), ("heads", (6, 4))):
        found = trace.patch(trace, 1, places)  # type: ignore[arg-type]
        assert found.change.shape == shape == (len(found.rows), len(found.columns))
        np.testing.assert_allclose(found.change, 0, atol=1e-4)


def test_a_patch_of_the_last_layer_is_what_the_other_sentence_says(translator: Translator, trace: LiveTrace) -> None:
    other = translator.trace(OTHER)
    for row in range(3):
        found = trace.patch(other, row, "target")
        theirs = math.log(float(other["probs"][row, trace.target.tokens[row].id]))
        assert found.logp + found.change[-1, row] == pytest.approx(theirs, abs=1e-3)


def test_only_the_place_that_differs_carries_the_difference(translator: Translator, trace: LiveTrace) -> None:
    other = translator.trace(OTHER)  # another first word
    found = trace.patch(other, 0)
    assert found.columns[0].endswith("four") and found.rows == ("enc.in", "enc.0", "enc.1")
    np.testing.assert_allclose(found.change[0, 1:], 0, atol=1e-4)
    assert found.change[0, 0] < -1
    whole = trace.patch(other, 0, "heads")
    assert whole.rows[0] == "enc.0" and whole.rows[-1] == "dec.1.cross" and np.isfinite(whole.change).all()


def test_patched_heads_are_the_other_sentences_heads() -> None:
    """One head alone, against a hook that puts it there by hand."""
    from limelight.inspection.analysis.patching import find_changes

    passes = passes_of(0)
    light = passes.model.spotlights()[-1]
    other = {f"enc.{i}.heads": np.zeros((4, SPLIT, 6), np.float32) for i in range(3)}
    other |= {f"dec.{i}.{part}.heads": np.zeros((4, len(INPUTS), 6), np.float32) for i in range(2) for part in ("self", "cross")}
    found, own = find_changes(passes, "heads", other)
    for head in range(4):
        light.attention.gate = torch.tensor([float(head != each) for each in range(4)])
        assert found[-1, head] == pytest.approx(float(passes.without([()])) - own, abs=1e-5)
    light.attention.gate = None


def test_a_patch_map_is_drawn(translator: Translator, trace: LiveTrace) -> None:
    svg = patch_picture(trace, trace.patch(translator.trace(OTHER), 0)).svg
    assert "size of the change" in svg and "enc.1" in svg and OTHER in svg
    nothing = PatchMap("a", "source", "b", 0.0, ("enc.in",), ("▁a", "▁b"), np.zeros((1, 2), np.float32))
    assert "nan" not in patch_picture(trace, nothing).svg


def test_the_work_is_bounded_by_pieces_and_not_by_their_square_in_passes(monkeypatch) -> None:
    """Every batch has at most CELLS ids, and there are as many as that needs."""
    sizes = []
    monkeypatch.setattr(varied_pass, "CELLS", 48)
    passes = passes_of(0)
    run = passes.run
    monkeypatch.setattr(passes, "run", lambda rows, alike=False: (sizes.append(rows), run(rows, alike))[1])
    find_effects(passes, "occlusion")
    assert max(sizes) * passes.size <= 48 and sum(sizes) == 1 + len(passes.pieces)


@pytest.mark.parametrize("method", METHODS)
def test_words_of_different_length_are_compared_by_what_stands_before_both(trace: LiveTrace, method) -> None:
    """The other word has more pieces; they are read after the place, and so caused nothing."""
    told, alone = trace.why(1, method, instead_of="neunneun"), trace.why(1, method)
    assert len(told.source) == len(alone.source) and len(told.prefix) == len(alone.prefix) == 1
    assert math.isfinite(told.logp) and told.logp != alone.logp


@dataclass(frozen=True)
class Spelled:
    piece: str
    word: int


@pytest.mark.parametrize(
    ("pieces", "word", "found"),
    [(["▁Hund", "e"], "Hunde", range(2)), (["▁Hund", "e"], "e", range(1, 2)), (["▁", "abc"], "abc", range(2))],
)
def test_a_word_is_found_by_all_of_its_pieces(pieces: list[str], word: str, found: range) -> None:
    tokens = [Spelled(piece, 0) for piece in pieces]
    assert find_rows(SimpleNamespace(target=SimpleNamespace(tokens=tokens)), word) == found

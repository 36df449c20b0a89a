"""Traces of a real translator: what it shows is what it did."""

import threading
from dataclasses import replace

import numpy as np
import pytest
from trace_bundle import BUNDLE, TEXT

from limelight import Translator
from limelight.decoding.config import SearchSettings
from limelight.errors import ConfigError, DataError, LengthError
from limelight.inspection.head_names import Head, heads_of, stage_names
from limelight.inspection.interventions import Changes, Pin
from limelight.inspection.tracing.live_trace import LiveTrace

OTHER = "six one three eight"
DARK = {"cross.*.*": 0.0}


@pytest.fixture(scope="module")
def translator() -> Translator:
    return Translator.load(BUNDLE, engine="torch", threads=1)


@pytest.fixture(scope="module")
def trace(translator: Translator) -> LiveTrace:
    return translator.trace(TEXT)


def test_a_trace_shows_the_translation_that_translate_gives(translator: Translator, trace: LiveTrace) -> None:
    given = translator.translate([TEXT])[0]
    assert trace.target.text == given.text and trace.target.score == pytest.approx(given.score, abs=1e-5)
    assert [token.piece for token in trace.target.tokens[:-1]] == [piece.text for piece in given.pieces]
    assert trace.target.finish == "eos" and trace.target.tokens[-1].piece == "</s>"
    assert trace.target.inputs == ["<s>", *(token.piece for token in trace.target.tokens[:-1])]
    assert trace.nbest[0].text == given.text and len(trace.nbest) == 4
    assert trace.nbest[0].logp == pytest.approx(trace.target.logp, abs=1e-4)
    assert trace.baseline is None and set(trace.timing) == {"search", "trace"}


def test_the_pass_and_the_search_agree_and_it_is_said(trace: LiveTrace, translator: Translator) -> None:
    assert trace.verified and trace.difference < 1e-3
    scored = translator.score([TEXT], [trace.target.text])[0]
    assert trace.target.logp == pytest.approx(scored.log_prob, abs=1e-4)
    assert sum(token.logp for token in trace.target.tokens) == pytest.approx(trace.target.logp)


def test_a_search_and_a_pass_that_do_not_agree_are_found_out(translator: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    class Wrong(type(translator._tracer.finder)):  # type: ignore[misc]
        def find(self, *args: object) -> object:
            found = super().find(*args)
            best = found.hypotheses[0]
            worse = replace(best, log_probs=[best.log_probs[0] - 0.002, *best.log_probs[1:]])
            return replace(found, hypotheses=[worse, *found.hypotheses[1:]])

    tracer = translator._tracer
    monkeypatch.setattr(tracer, "finder", Wrong(tracer.engine, translator.settings, tracer.target))
    found = translator.trace(TEXT)
    assert not found.verified and found.difference == pytest.approx(0.002, abs=1e-4)


def test_attention_sums_to_one_and_never_looks_ahead(trace: LiveTrace) -> None:
    rows, columns = len(trace.target.tokens), len(trace.source.tokens)
    shapes = {"enc": (2, 4, columns, columns), "dec": (2, 4, rows, rows), "cross": (2, 4, rows, columns)}
    assert {kind: weights.shape for kind, weights in trace.attention.items()} == shapes
    for weights in trace.attention.values():
        assert weights.dtype == np.float32
        np.testing.assert_allclose(weights.sum(axis=-1), 1, atol=1e-5)
    ahead = np.triu(np.ones((rows, rows), bool), 1)
    assert (trace.attention["dec"][..., ahead] == 0).all()
    assert (trace.attention["dec"][..., ~ahead] > 0).all()


def test_stages_made_anew_are_those_that_were_kept(translator: Translator, trace: LiveTrace) -> None:
    kept = translator.trace(TEXT, stages=True)
    names = stage_names(2, 2)
    assert set(kept.kept) == set(names) and not trace.kept
    made = trace.stages(names)
    assert all(np.array_equal(made[name], kept[name]) for name in names)
    assert np.array_equal(trace["cross.1.attn"], trace.attention["cross"][1])
    assert np.array_equal(trace["dec.1.cross.masked"], kept["cross.1.masked"])
    assert trace["src.ids"].tolist() == [token.id for token in trace.source.tokens]
    probabilities = trace["probs"][np.arange(len(trace.target.tokens)), [token.id for token in trace.target.tokens]]
    np.testing.assert_allclose(np.log(probabilities), [token.logp for token in trace.target.tokens], atol=1e-4)
    with pytest.raises(ConfigError, match=r"no stage enc\.0\.weights"):
        trace["enc.0.weights"]
    with pytest.raises(ConfigError, match=r"read from a file and has no enc\.0\.q"):
        replace(trace, remake=None)["enc.0.q"]


def test_all_gates_at_one_change_no_bit(translator: Translator, trace: LiveTrace) -> None:
    ones = {str(head): 1.0 for head in heads_of(translator.settings.model)}
    again = translator.trace(TEXT, gates=ones)
    assert again.target == trace.target and again.nbest == trace.nbest and again.baseline is None
    assert all(np.array_equal(again.attention[kind], trace.attention[kind]) for kind in trace.attention)


def test_with_all_cross_heads_muted_two_sources_have_one_translation(translator: Translator) -> None:
    one, two = (translator.trace(text, gates=DARK) for text in (TEXT, OTHER))
    assert len(one.source.tokens) == len(two.source.tokens)
    assert one.target == two.target and one.verified
    assert translator.trace(TEXT).target.text != translator.trace(OTHER).target.text
    assert all(head.gate == (0 if head.id.startswith("cross") else 1) for head in one.heads)


def test_the_verdict_compares_the_old_translation_without_and_with_the_changes(translator: Translator, trace: LiveTrace) -> None:
    changed = translator.trace(TEXT, gates=DARK)
    base = changed.baseline
    assert base is not None and base.tokens == [token.piece for token in translator.trace(TEXT).target.tokens]
    assert len(base.tokens) == len(base.deltas)
    assert base is not None and base.text == trace.target.text
    assert base.logp == pytest.approx(trace.target.logp, abs=1e-4)
    forced = translator.trace(TEXT, trace.target.text, gates=DARK)
    assert base.delta_logp == pytest.approx(forced.target.logp - trace.target.logp, abs=1e-4)
    assert base.delta_logp < -1 and sum(base.deltas) == pytest.approx(base.delta_logp)
    assert len(base.deltas) == len(trace.target.tokens)
    assert 0 <= base.chrf < 100 and changed.target.text != base.text
    assert forced.baseline is not None and forced.baseline.chrf == 100


def test_a_given_target_is_looked_at_and_not_searched_for(translator: Translator) -> None:
    wrong = translator.trace(TEXT, "drei vier")
    assert wrong.target.text == "drei vier" and wrong.verified and wrong.beam is None
    assert wrong.target.logp == pytest.approx(translator.score([TEXT], ["drei vier"])[0].log_prob, abs=1e-4)
    assert translator.trace(TEXT, "").target.tokens[0].piece == "</s>"


def test_a_prefix_is_a_text_or_pieces(translator: Translator) -> None:
    by_text = translator.trace(TEXT, prefix="drei")
    ids = [token.id for token in by_text.target.tokens]
    pieces = translator.tokenizers[1].pieces(ids)
    assert by_text.target.text.startswith("drei") and by_text.verified
    assert translator.trace(TEXT, prefix=ids[:2]).target == translator.trace(TEXT, prefix=pieces[:2]).target
    with pytest.raises(DataError, match="'▁Nothing' is no piece"):
        translator.trace(TEXT, prefix=["▁Nothing"])
    with pytest.raises(DataError, match="9999 is no piece"):
        translator.trace(TEXT, prefix=[9999])


def test_pieces_of_a_trace_are_not_begun_twice(translator: Translator) -> None:
    """A model of many languages writes a tag first. It is among the pieces of a trace, which come back as a prefix or a target."""
    begin = tuple(translator.tokenizers[1].pieces([7, 9])), (7, 9)
    engine, settings = translator.engine, translator.settings.changed(target_begin=begin[1])
    tagged = Translator(engine, settings, *translator.tokenizers)
    by_text = tagged.trace(TEXT, prefix="drei")
    ids = [token.id for token in by_text.target.tokens]
    assert ids[:2] == [7, 9] and ids[2] not in (7, 9)
    pieces = tagged.tokenizers[1].pieces(ids)
    for some in (ids[:3], pieces[:3], ids[2:3]):
        assert tagged.trace(TEXT, prefix=some).target == by_text.target
    free = tagged.trace(TEXT).target
    assert all(tagged.trace(TEXT, prefix=some).target == free for some in (ids[:1], list(begin[0]), []))
    looked = tagged.trace(TEXT, [token.id for token in free.tokens[:-1]]).target
    assert looked.text == free.text and looked.inputs == free.inputs


def test_the_tree_holds_what_was_found_and_what_was_cut(trace: LiveTrace) -> None:
    assert trace.beam is not None
    for guess in trace.nbest:
        assert guess.node is not None
        assert trace.beam.nodes[guess.node].done and trace.beam.nodes[guess.node].cum == pytest.approx(guess.logp, abs=1e-4)
    assert any(not node.kept for node in trace.beam.nodes)


def test_a_translation_cut_at_its_limit_has_no_end(translator: Translator) -> None:
    cut = translator.trace(TEXT, search=SearchSettings(beam=2, max_length=3, min_length=2))
    assert cut.target.finish == "length" and len(cut.target.tokens) == 3 and cut.target.tokens[-1].piece != "</s>"
    assert len(cut.target.inputs) == 3 and cut.verified and cut.attention["cross"].shape[2] == 3


@pytest.mark.parametrize(
    "search",
    [
        SearchSettings(beam=1),
        SearchSettings(coverage_penalty=0.3),
        SearchSettings(patience=None),
        SearchSettings(sampling={"seed": 3}),
    ],
    ids=["greedy", "coverage", "classical", "sampling"],
)
def test_every_kind_of_search_can_be_traced(translator: Translator, search: SearchSettings) -> None:
    pinned = Changes(pins=(Pin(step=0, source=2),), attention_temperature=1.3)
    assert translator.trace(TEXT, search=search).verified
    assert translator.trace(TEXT, search=search, changes=pinned).verified


def test_the_alignment_head_is_the_one_that_the_bundle_measured(translator: Translator, trace: LiveTrace) -> None:
    assert translator.settings.alignment == ((1, 1),) and trace.align.head == "cross.1.1"
    assert [(source, target) for source, target, _ in trace.align.words] == [(0, 0), (1, 1), (2, 2), (3, 3)]
    assert Head.parse(trace.align.head) in heads_of(translator.settings.model)
    assert len(trace.coverage) == len(trace.source.tokens)


@pytest.mark.slow
def test_traces_under_changes_and_translations_at_the_same_time_do_not_meet(translator: Translator) -> None:
    texts = [TEXT, OTHER, "nine", "one two three"]
    alone = [each.text for each in translator.translate(texts)]
    dark = translator.trace(TEXT, gates=DARK).target
    seen: list[object] = []

    def look() -> None:
        seen.append(translator.trace(TEXT, gates=DARK, mask_source=()).target == dark)

    def translate() -> None:
        seen.append([each.text for each in translator.translate(texts)] == alone)

    threads = [threading.Thread(target=work) for work in (look, translate) * 3]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [True] * 6


def test_what_cannot_be_traced_says_why(translator: Translator) -> None:
    for text, error, said in (
        ("  ", DataError, "nothing to translate"),
        ("one " * 130, LengthError, "the model takes 127"),
    ):
        with pytest.raises(error, match=said):
            translator.trace(text)
    with pytest.raises(LengthError, match="a trace shows at most 3"):
        translator.trace(TEXT, longest=3)
    with pytest.raises(LengthError, match="the source has 7 pieces, and positions=shift:500 leaves 0"):
        translator.trace(TEXT, positions="shift:500")
    with pytest.raises(LengthError, match="the target has"):
        translator.trace(TEXT, "drei " * 20, positions="shift:120")
    with pytest.raises(ConfigError, match="topk=0"):
        translator.trace(TEXT, topk=0)
    with pytest.raises(ConfigError, match="given twice"):
        translator.trace(TEXT, gates=DARK, changes=Changes(positions="zero"))
    with pytest.raises(ConfigError, match="mbr_samples"):
        translator.trace(TEXT, search=SearchSettings(sampling={"seed": 1}, mbr_samples=4))


def test_a_trace_can_be_drawn_and_sent(trace: LiveTrace) -> None:
    assert trace.heatmap("cross", layer=-1, head=1).svg.startswith("<svg")
    assert trace.as_json(layers=[1])["target"]["text"] == trace.target.text

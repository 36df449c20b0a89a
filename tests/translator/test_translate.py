"""What a translator does around an engine: order, batches, limits, second searches, errors. The engine is a function that keeps a diary."""

import json
import math
import random
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from table_engine import WORDS, TableEngine, hypothesis, ids_of, tokenizer, translator, upside_down

from limelight.decoding.config import Sampling, SearchSettings
from limelight.decoding.steps import Hypothesis, Request
from limelight.errors import ConfigError, DataError, LengthError, ScoreError
from limelight.translator import Translator
from limelight.translator.pipeline import TranslationOptions

LOOP = " ".join(["the cat"] * 12)


def mixed(count: int, seed: int = 1) -> list[str]:
    draw = random.Random(seed)
    return [" ".join(draw.choices(WORDS, k=draw.randint(1, 30))) for _ in range(count)]


def expected(text: str) -> str:
    return tokenizer().decode([list(reversed(ids_of(text)))])[0]


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 3])
def test_sentences_of_mixed_length_come_back_in_order(workers: int) -> None:
    texts = mixed(300)
    with translator(TableEngine(workers=workers)) as made:
        found = made.translate(texts)
    assert [one.text for one in found] == [expected(text) for text in texts]
    assert [one.source for one in found] == texts
    assert all(one.source_pieces == len(ids_of(one.source)) for one in found)


@pytest.mark.slow
def test_batches_hold_the_longest_first_and_as_many_as_fit() -> None:
    engine = TableEngine()
    made = translator(engine)
    made.batch_pieces = 100
    made.translate(mixed(300))
    lengths = [[len(request.source) for request in batch] for batch in engine.batches]
    every = [length for batch in lengths for length in batch]
    assert every == sorted(every, reverse=True)
    assert all(len(batch) * max(batch) <= 100 for batch in lengths)
    assert all((len(batch) + 1) * max(batch) > 100 for batch in lengths[:-1]), "a batch could have taken one more"


def test_a_sentence_longer_than_a_batch_is_a_batch_of_its_own() -> None:
    engine = TableEngine()
    made = translator(engine)
    made.batch_pieces = 3
    assert len(made.translate(["the cat sat on the mat", "the dog"])) == 2
    assert len(engine.batches) == 2


@pytest.mark.slow
def test_short_sentences_do_not_fill_thousands_of_rows() -> None:
    engine = TableEngine()
    translator(engine).translate(["cat"] * 3000, SearchSettings(beam=8))
    assert max(len(batch) for batch in engine.batches) * 8 <= 1024
    drawn = SearchSettings(nbest=64, sampling=Sampling())
    engine.batches.clear()
    translator(engine).translate(["cat"] * 100, drawn)
    assert max(len(batch) for batch in engine.batches) * 64 <= 1024


@pytest.mark.parametrize("pieces", [0, -5])
def test_batches_without_room_are_refused(pieces: int) -> None:
    with pytest.raises(ConfigError, match="give 1 or more"):
        translator(TableEngine()).batch_pieces = pieces


def test_workers_run_batches_at_the_same_time() -> None:
    meeting = threading.Barrier(2, timeout=20)  # breaks unless two batches are in the engine at once

    def met(request: Request, settings: SearchSettings) -> list[Hypothesis]:
        meeting.wait()
        return upside_down(request, settings)

    with translator(TableEngine(met, workers=2)) as made:
        made.batch_pieces = 1
        assert len(made.translate(["the cat", "the dog"])) == 2


def test_an_error_in_one_batch_of_several_workers_reaches_the_caller() -> None:
    def fails(request: Request, settings: SearchSettings) -> list[Hypothesis]:
        raise MemoryError("too much")

    with translator(TableEngine(fails, workers=2)) as made, pytest.raises(MemoryError, match="too much"):
        made.batch_pieces = 10
        made.translate(mixed(20))


def test_closing_closes_the_engine() -> None:
    engine = TableEngine(workers=2)
    with translator(engine) as made:
        pass
    assert engine.closed
    with pytest.raises(ConfigError, match="the translator was closed; load it again"):
        made.translate(["the cat"])


def test_one_text_instead_of_a_list_is_a_slip_that_is_told() -> None:
    made = translator(TableEngine())
    with pytest.raises(TypeError, match=r"write \[text\]"):
        made.translate("the cat")
    with pytest.raises(TypeError, match=r"texts\[1\] is no text but NoneType"):
        made.translate(["the cat", None])  # type: ignore[list-item]
    with pytest.raises(TypeError, match=r"prefixes wants a list"):
        made.translate(["the cat"], prefixes="a")
    with pytest.raises(TypeError, match=r"a list of phrases for each text"):
        made.translate(["the cat"], phrases=["cat"])
    with pytest.raises(TypeError, match=r"sources wants a list"):
        made.score("the cat", ["a"])


def test_half_a_character_is_an_error_that_names_the_text() -> None:
    with pytest.raises(DataError, match=r"texts\[1\] holds half a character"):
        translator(TableEngine()).translate(["fine", "broken \ud800"])


def test_no_texts_have_no_translations() -> None:
    engine = TableEngine()
    assert translator(engine).translate([]) == [] and translator(engine).translate(()) == []
    assert engine.batches == []


def test_empty_and_blank_sources_never_reach_the_engine() -> None:
    engine = TableEngine()
    found = translator(engine).translate(["", "the cat", " \t ", "\u200b\u00ad", "\n"])
    assert [one.finish for one in found] == ["empty_input", "eos", "empty_input", "empty_input", "empty_input"]
    assert [one.text for one in found if one.finish == "empty_input"] == [""] * 4
    assert [one.source for one in found] == ["", "the cat", " \t ", "\u200b\u00ad", "\n"]
    assert len(engine.batches) == 1 and len(engine.batches[0]) == 1


def test_blank_text_is_empty_also_where_spaces_are_not_normalized() -> None:
    engine = TableEngine()
    found = translator(engine, normalization=()).translate([" \u3000 ", "the  cat"])
    assert found[0].finish == "empty_input" and found[0].source == " \u3000 "
    assert engine.batches == [[engine.batches[0][0]]] and engine.batches[0][0].source == ids_of("the  cat") != ids_of("the cat")


def test_a_source_is_normalized_as_the_bundle_says() -> None:
    engine = TableEngine()
    translator(engine).translate(["  the\u00a0 cat\u200b \r\n"])
    assert engine.batches[0][0].source == ids_of("the cat")


def test_a_source_that_is_too_long_is_cut_and_says_so() -> None:
    engine = TableEngine(longest=10)
    long = " ".join(["cat"] * 40)
    found = translator(engine).translate([long, "the dog"], segment=False)
    assert engine.batches[0][0].source == ids_of(long)[:10]
    assert found[0].source == long and found[0].source_pieces == 10
    [notice] = [notice for notice in found[0].warnings if notice.code == "source_cut"]
    assert f"{len(ids_of(long))} pieces" in notice.message and "takes 10" in notice.message
    assert not found[1].warnings


@pytest.mark.parametrize("score", [None, math.nan, math.inf, -math.inf])
def test_scores_that_are_no_numbers_are_an_error_after_everything_was_tried(score: float | None) -> None:
    def answer(request: Request, settings: SearchSettings) -> list[Hypothesis]:
        if request.source == ids_of("the dog"):
            return [] if score is None else [hypothesis("a"), hypothesis("cat", score)]
        return upside_down(request, settings)

    engine = TableEngine(answer)
    made = translator(engine)
    made.batch_pieces = 1
    with pytest.raises(ScoreError) as raised:
        made.translate(["the dog", "", "the cat", "the dog", "a red house"])
    assert raised.value.positions == (0, 3)  # type: ignore[attr-defined]
    assert "0, 3" in str(raised.value) and "dog" not in str(raised.value)
    assert len(engine.batches) == 4, "the others were tried too"


def looping_at_first(second: str) -> TableEngine:
    def answer(request: Request, settings: SearchSettings) -> list[Hypothesis]:
        if len(request.source) <= 2:
            return upside_down(request, settings)
        return [hypothesis(LOOP if settings.no_repeat_ngram is None else second, -2.0)]

    return TableEngine(answer)


def test_a_loop_is_searched_again_without_repeats_and_only_the_loop() -> None:
    engine = looping_at_first("the old dog")
    found = translator(engine).translate(["red house", "he sat on it", "blue mat"])
    assert [one.text for one in found] == [expected("red house"), "the old dog", expected("blue mat")]
    assert [settings.no_repeat_ngram for settings in engine.asked] == [None, 3]
    assert [request.source for request in engine.batches[1]] == [ids_of("he sat on it")]
    assert [notice.code for notice in found[1].warnings] == ["redecoded"]
    assert not found[1].degenerate and not found[0].warnings


def test_a_loop_that_stays_is_degenerate() -> None:
    found = translator(looping_at_first("dog dog dog dog dog dog dog dog")).translate(["he sat on it"])[0]
    assert found.degenerate and found.text == LOOP, "of two loops, the better scored; the first of equals"
    assert "loop" in [notice.code for notice in found.warnings]
    assert "redecoded" not in [notice.code for notice in found.warnings]


def test_of_two_loops_the_better_scored_stays() -> None:
    def answer(request: Request, settings: SearchSettings) -> list[Hypothesis]:
        return [hypothesis(LOOP, -3.0) if settings.no_repeat_ngram is None else hypothesis("dog" + " dog" * 8, -2.5)]

    assert translator(TableEngine(answer)).translate(["he sat on it"])[0].text == "dog" + " dog" * 8


def test_a_second_search_that_fails_leaves_the_first_and_says_degenerate() -> None:
    def answer(request: Request, settings: SearchSettings) -> list[Hypothesis]:
        return [hypothesis(LOOP)] if settings.no_repeat_ngram is None else []

    found = translator(TableEngine(answer)).translate(["he sat on it"])[0]
    assert found.degenerate and found.text == LOOP


def test_an_empty_translation_is_searched_again_with_at_least_a_piece() -> None:
    def answer(request: Request, settings: SearchSettings) -> list[Hypothesis]:
        if request.source != ids_of("he sat on it"):
            return upside_down(request, settings)
        return [Hypothesis([], -1.0, [-1.0], "eos")] if settings.min_length == 0 else [hypothesis("the old dog", -5.0)]

    engine = TableEngine(answer)
    found = translator(engine).translate(["red house", "he sat on it"])
    assert [settings.min_length for settings in engine.asked] == [0, 1] and len(engine.batches[1]) == 1
    assert found[1].text == "the old dog" and not found[1].degenerate
    assert [notice.code for notice in found[1].warnings] == ["redecoded"] and not found[0].warnings
    unguarded = translator(engine).translate(["he sat on it"], guards=False)[0]
    assert unguarded.text == "" and unguarded.finish == "eos" and not unguarded.warnings


def test_a_translation_that_stays_empty_is_degenerate() -> None:
    found = translator(TableEngine(lambda request, settings: [hypothesis("")])).translate(["he sat on it"])[0]
    assert found.degenerate and [notice.code for notice in found.warnings] == ["empty"]


def test_one_cure_does_not_bring_back_what_another_cured() -> None:
    """Empty at first, then a loop; without repeats it would be empty again, were it not for the least length."""

    def answer(request: Request, settings: SearchSettings) -> list[Hypothesis]:
        if settings.min_length == 0:
            return [Hypothesis([], -1.0, [-1.0], "eos")]
        return [hypothesis(LOOP if settings.no_repeat_ngram is None else "the old dog", -2.0)]

    engine = TableEngine(answer)
    found = translator(engine).translate(["he sat on it"])[0]
    assert [(settings.min_length, settings.no_repeat_ngram) for settings in engine.asked] == [
        (0, None),
        (1, None),
        (1, 3),
    ]
    assert found.text == "the old dog" and not found.degenerate


def test_a_loop_that_becomes_nothing_is_not_mended() -> None:
    def answer(request: Request, settings: SearchSettings) -> list[Hypothesis]:
        nothing = [Hypothesis([], -3.0, [-3.0], "eos")]
        return nothing if settings.no_repeat_ngram is not None else [hypothesis(LOOP, -1.0)]

    found = translator(TableEngine(answer)).translate(["he sat on it"])[0]
    assert found.text == LOOP and found.degenerate


def test_pieces_that_no_text_has_are_never_asked_for() -> None:
    engine = TableEngine()
    translator(engine).translate(["the cat"])
    controls = {i for i, piece in enumerate(tokenizer().vocabulary) if piece.startswith("<tag:")}
    assert controls <= set(engine.asked[0].suppress)
    assert tokenizer().end not in engine.asked[0].suppress


def test_guards_can_be_turned_off() -> None:
    engine = looping_at_first("the old dog")
    found = translator(engine).translate(["he sat on it"], guards=False)[0]
    assert found.text == LOOP and not found.warnings and not found.degenerate
    assert len(engine.asked) == 1


def test_a_search_that_already_forbids_repeats_is_not_done_again() -> None:
    engine = TableEngine(lambda request, settings: [hypothesis(LOOP)])
    found = translator(engine).translate(["he sat on it"], SearchSettings(no_repeat_ngram=2))[0]
    assert len(engine.asked) == 1 and found.degenerate


def test_the_guards_tell_copies_odd_lengths_and_limits() -> None:
    def answer(request: Request, settings: SearchSettings) -> list[Hypothesis]:
        copy = Hypothesis(list(request.source), -1.0, [-0.1] * len(request.source), "length")
        return [hypothesis("a")] if len(request.source) > 30 else [copy]

    made = translator(TableEngine(answer))
    source = "the cat sat on the mat"
    copied, short = made.translate([source, " ".join(WORDS + WORDS)])
    assert [notice.code for notice in copied.warnings] == ["length", "copied"]
    assert f"after {len(ids_of(source))} pieces" in copied.warnings[0].message
    assert [notice.code for notice in short.warnings] == ["too_short"]
    dialect = translator(TableEngine(answer), languages=("pt-BR", "pt-PT"))
    assert [notice.code for notice in dialect.translate([source])[0].warnings] == ["length"]


def test_the_density_of_the_languages_decides_what_is_short() -> None:
    short = TableEngine(lambda request, settings: [hypothesis("he sat on it and it ran")])
    source = [" ".join(WORDS)]
    assert [n.code for n in translator(short).translate(source)[0].warnings] == ["too_short"]
    assert translator(short, languages=("en", "zh")).translate(source)[0].warnings == []


def test_nbest_gives_distinct_alternatives() -> None:
    twice = ids_of("cat")
    spelt = [tokenizer().processor.piece_to_id(piece) for piece in ("▁", "c", "a", "t")]
    assert tokenizer().decode([twice]) == tokenizer().decode([spelt]) and twice != spelt

    def answer(request: Request, settings: SearchSettings) -> list[Hypothesis]:
        cats = [Hypothesis(twice, -2, [-1], "eos"), Hypothesis(spelt, -3, [-1], "eos")]
        return [hypothesis("he"), *cats, hypothesis("dog", -4, "length")]

    made = translator(TableEngine(answer))
    found = made.translate(["a"], SearchSettings(nbest=4))[0]
    assert (found.text, found.score) == ("he", -1)
    assert [(one.text, one.score, one.finish) for one in found.alternatives] == [
        ("cat", -2, "eos"),
        ("dog", -4, "length"),
    ]
    drawn = made.translate(["a"], SearchSettings(nbest=4, sampling=Sampling()))[0]
    assert [one.text for one in drawn.alternatives] == ["cat", "cat", "dog"], "what is drawn twice is there twice"


def test_of_samples_the_one_most_like_the_others_is_taken() -> None:
    drawn = ["a red house", "the old cat sat", "the old cat ran", "the old cat sat on it", "it is blue"]
    engine = TableEngine(lambda request, settings: [hypothesis(text, -float(i)) for i, text in enumerate(drawn)])
    settings = SearchSettings(mbr_samples=5, nbest=2, sampling=Sampling(top_p=0.9))
    found = translator(engine).translate(["x"], settings)[0]
    assert found.text == "the old cat sat on it", "which has most of the others in it"
    assert len(found.alternatives) == 1
    assert engine.asked[0].nbest == 5 and engine.asked[0].sampling == Sampling(top_p=0.9)


def test_what_is_drawn_depends_on_the_sentence_and_not_on_its_place() -> None:
    keys: dict[str, set[int]] = {}
    texts = mixed(50)
    for order in (texts, list(reversed(texts)), texts[:7]):
        engine = TableEngine()
        translator(engine).translate(order)
        for batch in engine.batches:
            for request in batch:
                keys.setdefault(str(request.source), set()).add(request.key)
    assert all(len(found) == 1 for found in keys.values())
    every = [key for found in keys.values() for key in found]
    assert len(set(every)) == len(keys) and all(0 <= key < 2**63 for key in every)


def test_prefixes_and_phrases_become_pieces_of_the_target() -> None:
    engine = TableEngine()
    made = translator(engine)
    made.translate(["he", "she sat"], prefixes=["the ca", ""], phrases=[["on it", " "], []])
    by_source = {tuple(request.source): request for batch in engine.batches for request in batch}
    assert by_source[tuple(ids_of("he"))].prefix == ids_of("the ca")
    assert by_source[tuple(ids_of("he"))].phrases == [ids_of("on it")]
    assert tokenizer().pieces(ids_of("on it"))[0].startswith("▁")
    assert by_source[tuple(ids_of("she sat"))].prefix == [] and by_source[tuple(ids_of("she sat"))].phrases == []
    with pytest.raises(DataError, match="1 prefixes for 2 texts"):
        made.translate(["he", "she"], prefixes=["a"])
    with pytest.raises(DataError, match="phrases for 1 texts, but 2 texts"):
        made.translate(["he", "she"], phrases=[["a"]])


def test_an_engine_says_what_it_lacks_before_it_is_asked() -> None:
    engine = TableEngine(lacking=["no coverage penalty", "no phrases"])
    with pytest.raises(ConfigError) as raised:
        translator(engine).translate(["the cat"])
    assert raised.value.problems == ("no coverage penalty", "no phrases") and not engine.batches


def test_confidence_is_the_geometric_mean_and_pieces_carry_their_probability() -> None:
    made = Hypothesis(ids_of("the cat"), -1.0, [math.log(0.5), math.log(0.25), math.log(0.125)], "eos")
    found = translator(TableEngine(lambda request, settings: [made])).translate(["x"])[0]
    assert len(made.ids) == 2
    assert found.confidence == pytest.approx(0.25)
    assert [piece.text for piece in found.pieces] == ["▁the", "▁cat"]
    assert [piece.probability for piece in found.pieces] == pytest.approx([0.5, 0.25])


def test_a_translation_turns_into_json_and_back() -> None:
    engine = looping_at_first("the old dog")
    found = translator(engine).translate(["he sat on it", ""], align=True)
    plain = json.loads(json.dumps([one.as_dict() for one in found], allow_nan=False))
    assert plain[0]["text"] == "the old dog" and plain[0]["source"] == "he sat on it"
    assert plain[0]["warnings"][0]["code"] == "redecoded" and plain[0]["degenerate"] is False
    assert plain[0]["pieces"][0]["text"] == "▁the" and 0 < plain[0]["pieces"][0]["probability"] <= 1
    assert plain[0]["alignment"]["words"] and plain[0]["alignment"]["source"] == ["▁he", "▁sat", "▁on", "▁it"]
    assert plain[1]["finish"] == "empty_input" and plain[1]["alignment"] is None


def test_alignment_is_given_when_asked_for_and_for_alternatives_too() -> None:
    def answer(request: Request, settings: SearchSettings) -> list[Hypothesis]:
        return [*upside_down(request, settings), hypothesis("dog")]

    made = translator(TableEngine(answer))
    settings = SearchSettings(nbest=2)
    assert made.translate(["the cat sat"], settings)[0].alignment is None
    found = made.translate(["house", "the cat sat"], settings, align=True)[1]
    assert found.alignment is not None
    assert found.alignment.pharaoh == "0-2 1-1 2-0"
    assert found.alternatives[0].alignment is not None
    assert found.alternatives[0].alignment.pharaoh == "2-0"


def test_alignment_counts_the_words_as_they_were_given() -> None:
    """A zero-width space alone is a word for `awk` and none for the model; a no-break space is the other way round."""
    made = translator(TableEngine())
    found = made.translate(["the \u200b cat\u00a0sat  on"], align=True)[0]
    assert expected("the cat sat on") == found.text
    assert found.alignment is not None
    assert found.alignment.pharaoh == "0-3 2-1 2-2 3-0"


def test_given_translations_are_scored_in_order() -> None:
    made = translator(TableEngine())
    made.batch_pieces = 6
    sources, targets = mixed(20, 1), mixed(20, 2)
    found = made.score(sources, targets)
    for source, target, scored in zip(sources, targets, found, strict=True):
        pieces = len(ids_of(target))
        assert scored.log_prob == pytest.approx(-len(ids_of(source)) * (pieces + 1))
        assert scored.confidence == pytest.approx(math.exp(-len(ids_of(source))))
        assert [piece.text for piece in scored.pieces] == tokenizer().pieces(ids_of(target))
    assert made.score(["the cat"], [""])[0].pieces == []


def test_pairs_that_cannot_be_scored_are_named() -> None:
    made = translator(TableEngine(longest=5))
    with pytest.raises(DataError, match="2 sources and 1 targets"):
        made.score(["a", "a"], ["a"])
    with pytest.raises(DataError, match=r"sources\[1\] has 0 pieces"):
        made.score(["a", " "], ["a", "a"])
    with pytest.raises(DataError, match=r"sources\[0\] has 9 pieces; give 1 to 5"):
        made.score([" ".join(["cat"] * 9)], ["a"])
    with pytest.raises(DataError, match=r"targets\[1\] has 3000 pieces; give 0 to"):
        made.score(["a", "a"], ["a", " ".join(["cat"] * 3000)])


@pytest.mark.parametrize("more", [{"prefixes": ["", " ".join(["cat"] * 3000)]}, {"phrases": [[], [" ".join(["cat"] * 3000)]]}])
def test_what_is_longer_than_the_model_can_write_is_refused_before_the_search(more: dict[str, list[object]]) -> None:
    engine = TableEngine()
    with pytest.raises(LengthError, match="pieces, for its prefix or phrases, and the model writes"):
        translator(engine).translate(["the dog", "the cat"], **more)
    assert not engine.batches


@pytest.mark.slow
def test_several_threads_may_use_one_translator() -> None:
    made = translator(TableEngine())
    texts = [mixed(60, seed) for seed in range(8)]
    found: dict[int, list[str]] = {}
    threads = [threading.Thread(target=lambda n=n: found.update({n: [one.text for one in made.translate(texts[n])]})) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(found[n] == [expected(text) for text in texts[n]] for n in range(8))


@pytest.mark.process
def test_the_room_loads_nothing_until_a_name_is_used() -> None:
    code = "import sys, limelight.translator; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    assert Translator.__name__ == "Translator"
    import limelight.translator as room

    for name in room.__all__:
        assert getattr(room, name).__name__ == name
    with pytest.raises(AttributeError, match="it offers"):
        _ = room.Interpreter


def test_few_sentences_are_shared_out_among_the_workers() -> None:
    engine = TableEngine(workers=2)
    with translator(engine) as made:
        made.translate([" ".join(WORDS)] * 40)
    assert sorted(map(len, engine.batches)) == [20, 20]


def test_what_is_over_reaches_no_engine_and_those_beside_it_do() -> None:
    """Whatever the engine is, and where it could not be stopped any more."""
    engine = TableEngine()
    made = translator(engine)
    [waits] = made.plan(["the cat"]).asked
    gone = replace(waits, request=replace(waits.request, is_over=lambda: True))
    first, second = made.run([waits, gone], SearchSettings(), TranslationOptions())
    assert first is not None and second is None
    assert [len(batch) for batch in engine.batches] == [1]

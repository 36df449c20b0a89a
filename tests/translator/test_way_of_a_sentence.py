"""The way of a sentence through a translator is short: few frames to the engine, few types, and its pieces are looked up once."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import is_dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from table_engine import SENTENCE, TableEngine, tokenizer, translator, upside_down

from limelight.decoding.config import SearchSettings
from limelight.decoding.steps import Hypothesis, Request
from limelight.text.pieces.tokenizer import Tokenizer
from limelight.translator import Translator
from limelight.translator.pipeline import TranslationOptions

BUNDLE = Path(__file__).parents[1] / "bundles" / "format-1"
MOST_FRAMES, MOST_TYPES = 6, 9


def frames_up_to(name: str, frame: FrameType | None) -> int:
    """How many calls lie between the frame and the innermost one of that name."""
    calls = 0
    while frame is not None and frame.f_code.co_qualname != name:
        frame, calls = frame.f_back, calls + 1
    assert frame is not None, f"{name} was not called"
    return calls


def test_few_frames_lie_between_a_translator_and_its_engine() -> None:
    seen = []

    class Watched(TableEngine):
        def search(self, requests: Any, settings: Any) -> Any:
            seen.append(frames_up_to("Translator.translate", sys._getframe()))
            return super().search(requests, settings)

    translator(Watched()).translate(["the cat sat", "", "the dog"])
    assert len(seen) == 1 and seen[0] <= MOST_FRAMES


@contextmanager
def types_made() -> Iterator[set[type]]:
    """The dataclasses of the translator and of the search that are made meanwhile."""
    made: set[type] = set()

    def look(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_name == "__init__":
            kind = type(frame.f_locals.get("self"))
            if is_dataclass(kind) and kind.__module__.startswith(("limelight.translator", "limelight.decoding")):
                made.add(kind)

    sys.setprofile(look)
    try:
        yield made
    finally:
        sys.setprofile(None)


def test_a_sentence_passes_through_few_types() -> None:
    """With a model and a beam."""
    with Translator.load(BUNDLE, threads=1) as real:
        real.translate(["one two %s"])
        with types_made() as made:
            found = real.translate(["one two %s"], SearchSettings(beam=3))
    names = {kind.__name__ for kind in made} - {
        "Cutter",
        "TranslationOptions",
        "TranslationPlan",
    }  # they hold texts, or none
    assert found[0].text and {"SourceSentence", "Request", "Hypothesis", "Translation"} <= names, "the control: it sees them"
    assert len(names) <= MOST_TYPES, sorted(names)


@pytest.mark.parametrize("text", [SENTENCE, "the cat.\nthe dog"])
def test_each_sentence_is_cut_into_pieces_once(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also by a server, which asks for the lengths of sentences before they are searched."""
    encoded: list[str] = []
    encode = Tokenizer.encode_texts
    monkeypatch.setattr(Tokenizer, "encode_texts", lambda self, texts: (encoded.extend(texts), encode(self, texts))[1])
    engine = TableEngine(longest=400)
    made = translator(engine)
    planned = made.plan([text], segment=True)
    lengths = made.lengths(planned)
    done = made.begin(planned.asked, SearchSettings(), TranslationOptions())
    assert sorted(encoded) == sorted(text.split("\n"))
    assert sorted(lengths) == sorted(len(request.source) for batch in engine.batches for request in batch)
    assert [each.source for each in done] == text.split("\n")  # type: ignore[union-attr]


def test_an_unusual_way_is_a_way_too() -> None:
    """The control of the first test: what the engine lacks goes further, and what loops is searched twice."""
    depths = []

    def answer(request: Request, settings: SearchSettings) -> list[Hypothesis]:
        depths.append(frames_up_to("Translator.translate", sys._getframe()))
        return upside_down(request, settings)

    spare = TableEngine(answer)
    first = TableEngine(lacking=["everything"])
    known = translator(first)
    Translator(first, known.settings, tokenizer(), tokenizer(), lambda: spare).translate(["the cat"])
    assert not first.batches and min(depths) > MOST_FRAMES

"""A `ForcedTranslation` is the sentence of a live trace with its model, to be run again: for a stage, or to find what caused a word."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

from limelight.decoding.steps import IsOver, never
from limelight.errors import ConfigError
from limelight.inspection.analysis.attribution import Effects, find_effects, subtract
from limelight.inspection.analysis.omissions import find_unmatched, spell
from limelight.inspection.analysis.patching import find_changes, stages_to_patch
from limelight.inspection.analysis.varied_pass import VariedPass
from limelight.inspection.causes import METHODS, Attribution, Method, PatchMap, PieceEffect, Places, Unmatched
from limelight.inspection.trace import Stages, Trace
from limelight.inspection.tracing.relit_model import IntervenedModel
from limelight.inspection.tracing.stages import run_forced
from limelight.text.pieces.tokenizer import SPACE, Tokenizer


@dataclass(frozen=True, eq=False)
class ForcedTranslation:
    """The ids: `source` with its end, `inputs` from the start on, `outputs` as the rows should predict them, `given` of which were never a
    choice. One thread at a time uses the twin, since looking hangs hooks on it."""

    lit: IntervenedModel
    source: Sequence[int]
    inputs: Sequence[int]
    outputs: Sequence[int]
    given: int
    tokenizer: Tokenizer
    is_over: IsOver = never
    lock: threading.Lock = field(default_factory=threading.Lock)

    def remake(self, names: Sequence[str]) -> Stages:
        with self.lock:
            return run_forced(self.lit, self.source, self.inputs, names)[1]

    def attribute(self, trace: Trace, word: str | int, method: Method, instead_of: str | None) -> Attribution:
        if method not in METHODS:
            raise ConfigError(f"there is no method {method!r}; there are {', '.join(METHODS)}")
        rows = find_rows(trace, word)
        instead = None if instead_of is None else self._spelled(trace, rows, instead_of)
        with self.lock:
            effects = find_effects(self._passes(rows), method)
            if instead is not None:
                effects = subtract(effects, find_effects(self._passes(rows, instead), method))
        split = len(self.source)
        source = _share(trace.axes("cross")[1], effects, range(split))
        prefix = _share(trace.target.inputs, effects, range(split + 1, split + 1 + rows.start), split)
        complete = None if effects.missed is None else abs(effects.missed) / max(abs(effects.whole), 1e-9)
        return Attribution(spell(trace.target.tokens, rows), rows.start, instead_of, method, effects.logp, source, prefix, complete)

    def match(self, trace: Trace) -> list[Unmatched]:
        with self.lock:
            return find_unmatched(self._passes(range(len(self.outputs))), trace.source.tokens, trace.target.tokens, self.given)

    def patch(self, trace: Trace, other: Trace, word: str | int, places: Places) -> PatchMap:
        rows = find_rows(trace, word)
        passes = self._passes(rows)
        _check_alike(trace, other, places, len(passes.inputs[0]))
        names = stages_to_patch(passes, places)
        stages = other.stages(names)
        with self.lock:
            change, logp = find_changes(passes, places, stages), float(passes.own().sum())
        columns = {"source": trace.axes("cross")[1], "target": trace.target.inputs, "heads": [str(h) for h in range(trace.model.heads)]}[
            places
        ]
        labels = tuple(name.removesuffix(".heads").removesuffix(".out") for name in names)
        named = spell(trace.target.tokens, rows)
        return PatchMap(named, places, other.source.text, logp, labels, tuple(columns[: change.shape[1]]), change)

    def _passes(self, rows: range, instead: Sequence[int] | None = None) -> VariedPass:
        """Reads up to the last row; with `instead`, these pieces stand where the word did."""
        wanted = list(self.outputs[rows.start : rows.stop]) if instead is None else list(instead)
        return VariedPass(self.lit.model, self.source, [*self.inputs[: rows.start + 1], *wanted[:-1]], wanted, self.is_over)

    def _spelled(self, trace: Trace, rows: range, text: str) -> list[int]:
        """The pieces of another word at the same place: one as the vocabulary spells it there, or as the tokenizer cuts it."""
        begins = trace.target.tokens[rows.start].piece.startswith(SPACE)
        single = (SPACE if begins else "") + text
        if single in self.tokenizer.vocabulary:
            return [self.tokenizer.vocabulary.index(single)]
        cut = self.tokenizer.encode_texts([text])[0] if begins and text.strip() else []
        room = self.lit.model.config.max_length - rows.start
        if not 0 < len(cut) < room:
            raise ConfigError(
                f"instead_of={text!r} cannot stand there: it is no piece of the vocabulary, and inside of a word, or at the end of what the "
                "model can hold, nothing longer is tried; give a piece, or a whole word"
            )
        return cut


def find_rows(trace: Trace, word: str | int) -> range:
    """The pieces of a word of the translation: by the number of a piece, or by spelling, all of a word or some of its pieces."""
    tokens = trace.target.tokens
    if isinstance(word, int):
        if not 0 <= word < len(tokens):
            raise ConfigError(f"there is no piece {word} in the translation; they are 0 to {len(tokens) - 1}")
        return range(word, word + 1)
    found = []
    for first, token in enumerate(tokens):
        spelled = ""
        for last in range(first, len(tokens)):
            spelled += tokens[last].piece
            if tokens[last].word != token.word or len(spelled) > len(word) + 1:
                break
            if word and word in (spelled, spelled.removeprefix(SPACE)):
                found.append(range(first, last + 1))
    if len(found) == 1:
        return found[0]
    pieces = " ".join(f"{at}:{token.piece}" for at, token in enumerate(tokens))
    problem = f"is {len(found)} times in the translation" if found else "is not in the translation"
    raise ConfigError(f"{word!r} {problem}, whose pieces are {pieces}; give a word of these, or the number of a piece")


def _share(pieces: Sequence[str], effects: Effects, places: range, offset: int = 0) -> tuple[PieceEffect, ...]:
    whole = float(effects.each.abs().sum()) or 1.0
    return tuple(PieceEffect(pieces[at - offset], float(effects.each[at]), float(effects.each[at]) / whole) for at in places)


def _check_alike(trace: Trace, other: Trace, places: Places, read: int) -> None:
    """A place of one sentence must be a place of the other too."""
    problems = []
    if trace.model.sha != other.model.sha:
        problems.append("they come from different models; make both traces with one")
    if places != "target" and len(trace.source.tokens) != len(other.source.tokens):
        mine, theirs = len(trace.source.tokens), len(other.source.tokens)
        problems.append(f"the sources have {mine} and {theirs} pieces, and places are patched one by one; give one of {mine} pieces")
    if places != "source" and len(other.target.inputs) < read:
        problems.append(f"the other translation has {len(other.target.inputs)} places, and the word needs {read}; give a longer one")
    if problems:
        raise ConfigError("this sentence cannot be patched from that one:", problems)

"""A `ForcedTranslation` is the sentence of a live trace with its model, to be run again: for a stage, or to find what caused a word."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

from limelight.decoding.steps import IsOver
from limelight.errors import ConfigError
from limelight.inspection.analysis.attribution import Effects, find_effects, find_unmatched, spell
from limelight.inspection.analysis.patching import find_changes, modules_to_patch
from limelight.inspection.analysis.varied_pass import VariedPass
from limelight.inspection.causes import METHODS, Attribution, Method, PatchMap, PieceEffect, Places, Unmatched
from limelight.inspection.trace import Stages, Trace
from limelight.inspection.tracing.relit_model import IntervenedModel
from limelight.inspection.tracing.stages import run_forced
from limelight.text.pieces.tokenizer import SPACE, Tokenizer

LONGEST_WORD = 16  # pieces of a word that is asked for instead


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
    is_over: IsOver
    lock: threading.Lock = field(default_factory=threading.Lock)

    def remake(self, names: Sequence[str]) -> Stages:
        with self.lock:
            return run_forced(self.lit, self.source, self.inputs, names)[1]

    def attribute(self, trace: Trace, word: str | int, method: Method, instead_of: str | None) -> Attribution:
        if method not in METHODS:
            raise ConfigError(f"there is no method {method!r}; there are {', '.join(METHODS)}")
        rows, split = find_rows(trace, word), len(self.source)
        instead = None if instead_of is None else self._spell_instead(trace, rows.start, instead_of)
        with self.lock:
            effects = find_effects(self._passes(rows), method)
            if instead is not None:
                effects = effects.minus(find_effects(self._passes(rows, instead), method))
        source = _share(trace.axes("cross")[1], effects, 0)
        prefix = _share(trace.target.inputs[1 : rows.start + 1], effects, split + 1)
        gap = None if effects.missed is None else abs(effects.missed) / max(abs(effects.whole), 1e-9)
        named, followed = spell(trace.target.tokens, rows), sum(abs(each.share) for each in source)
        return Attribution(named, rows.start, instead_of, method, effects.logp, followed, source, prefix, gap)

    def match(self, trace: Trace) -> list[Unmatched]:
        with self.lock:
            return find_unmatched(self._passes(range(len(self.outputs))), trace.source.tokens, trace.target.tokens, self.given)

    def patch(self, trace: Trace, other: Trace, word: str | int, places: Places) -> PatchMap:
        rows = find_rows(trace, word)
        passes = self._passes(rows)
        names = list(modules_to_patch(passes, places))
        _check_alike(trace, other, places, rows.stop)
        stages = other.stages(names)
        with self.lock:
            change, logp = find_changes(passes, places, stages)
        heads = [str(head) for head in range(trace.model.heads)]
        columns = {"source": trace.axes("cross")[1], "target": trace.target.inputs[: rows.stop], "heads": heads}[places]
        named = tuple(name.removesuffix(".heads").removesuffix(".out") for name in names)
        return PatchMap(spell(trace.target.tokens, rows), places, other.source.text, logp, named, tuple(columns), change)

    def _passes(self, rows: range, instead: Sequence[int] | None = None) -> VariedPass:
        """Reads up to the last row; with `instead`, these pieces stand where the word did."""
        wanted = list(self.outputs[rows.start : rows.stop]) if instead is None else instead
        return VariedPass(self.lit.model, (self.source, [*self.inputs[: rows.start + 1], *wanted[:-1]]), wanted, self.is_over)

    def _spell_instead(self, trace: Trace, row: int, text: str) -> list[int]:
        """The pieces of another word at the same place: one as the vocabulary spells it there, or as the tokenizer cuts it."""
        begins = trace.target.tokens[row].piece.startswith(SPACE)
        single = (SPACE if begins else "") + text
        if single in self.tokenizer.vocabulary:
            return [self.tokenizer.vocabulary.index(single)]
        cut = self.tokenizer.encode_texts([text])[0] if begins and text.strip() else []
        if not 0 < len(cut) < min(LONGEST_WORD + 1, self.lit.model.config.max_length - row):
            raise ConfigError(f"{text!r} cannot stand there: it is no piece, nor a word where one begins and fits; give such a one")
        return cut


def find_rows(trace: Trace, word: str | int) -> range:
    """The pieces of a word of the translation: by the number of a piece, or by spelling, all of a word or some of its pieces."""
    tokens, found = trace.target.tokens, []
    if isinstance(word, int):
        found = [range(word, word + 1)] if 0 <= word < len(tokens) else []
    else:
        size = len(word.removeprefix(SPACE))
        for first, token in enumerate(tokens):
            spelled, last = token.piece, first + 1
            while len(spelled.removeprefix(SPACE)) < size and last < len(tokens) and tokens[last].word == token.word:
                spelled, last = spelled + tokens[last].piece, last + 1
            if word and word in (spelled, spelled.removeprefix(SPACE)) and not (found and found[-1].stop == last):
                found.append(range(first, last))
    if len(found) == 1:
        return found[0]
    pieces = " ".join(f"{at}:{token.piece}" for at, token in enumerate(tokens))
    problem = f"is {len(found)} times in the translation" if found else "is not in the translation"
    raise ConfigError(f"{word!r} {problem}, whose pieces are {pieces}; give a word of these, or the number of a piece")


def _share(pieces: Sequence[str], effects: Effects, first: int) -> tuple[PieceEffect, ...]:
    whole, some = float(effects.each.abs().sum()) or 1.0, effects.each[first:].tolist()
    return tuple(PieceEffect(piece, effect, effect / whole) for piece, effect in zip(pieces, some, strict=False))


def _check_alike(trace: Trace, other: Trace, places: Places, read: int) -> None:
    """A place of one sentence must be a place of the other too."""
    mine, theirs, long = len(trace.source.tokens), len(other.source.tokens), len(other.target.inputs)
    problems = {
        "they come from different models; make both traces with one": trace.model.sha != other.model.sha,
        f"the sources have {mine} and {theirs} pieces, and must have equally many": places != "target" and mine != theirs,
        f"the other translation has {long} places, and the word needs {read}; give a longer one": places != "source" and long < read,
    }
    if any(problems.values()):
        raise ConfigError("this sentence cannot be patched from that one:", [said for said, wrong in problems.items() if wrong])

"""A `TextTracer` gives `Translator.trace` the ids, the changes and an engine that can be looked into.

The text is normalized and cut into pieces as for a translation, and stays whole. Nothing is protected, no glossary is used, and what loops
or is empty is not searched again: what the model does is what is shown.
"""

import threading
from collections.abc import Mapping, Sequence
from typing import Literal

from limelight.bundle import BundleSettings
from limelight.decoding.config import SearchSettings
from limelight.decoding.steps import IsOver
from limelight.engines.engine import Engine
from limelight.engines.torch import TorchEngine
from limelight.errors import ConfigError, DataError
from limelight.inspection.interventions import Changes, Pin
from limelight.inspection.tracing.live_trace import LiveTrace
from limelight.inspection.tracing.tracer import Tracer
from limelight.translator.searching import Spare
from limelight.translator.sentences import Reader, check_texts

Text = str | Sequence[int | str]  # a text, or its pieces by id or as they are spelled


class TextTracer:
    """A text tracer traces the texts of a translator; it is made with it, and ready when it is first asked."""

    def __init__(self, engine: Engine, spare: Spare, settings: BundleSettings, reader: Reader) -> None:
        self._engine, self._spare, self._settings, self._reader = engine, spare, settings, reader
        self._tracer: Tracer | None = None
        self._lock = threading.Lock()

    def trace(
        self,
        text: str,
        target: Text | None,
        prefix: Text,
        search: SearchSettings | None,
        changes: Changes,
        topk: int,
        nbest: int,
        stages: bool,
        longest: int,
        is_over: IsOver,
    ) -> LiveTrace:
        reader = self._reader
        tidy = reader.normalize_texts(check_texts([text], "text"))
        return self._ready().trace(
            tidy[0],
            source_ids=reader.add_source_begin(reader.source_ids(tidy)[0]),
            target_ids=None if target is None else _add_target_begin(reader, target),
            prefix_ids=_add_target_begin(reader, prefix),
            search=search,
            changes=changes,
            topk=topk,
            nbest=nbest,
            stages=stages,
            longest=longest,
            is_over=is_over,
        )

    def _ready(self) -> Tracer:
        with self._lock:
            if self._tracer is None:
                self._tracer = Tracer(self.engine, self._settings, self._reader.source, self._reader.target)
            return self._tracer

    @property
    def engine(self) -> TorchEngine:
        """The translator's, or the one that is loaded for what it lacks."""
        if isinstance(self._engine, TorchEngine):
            return self._engine
        other = self._spare.searcher()
        if other is None or not isinstance(other.engine, TorchEngine):
            raise ConfigError(
                f"the engine {self._engine.name} cannot be looked into; load the translator with engine='torch', or without naming one"
            )
        return other.engine


def loose_changes(
    gates: Mapping[str, float] | None,
    gate_mode: Literal["zero", "mean"],
    mask_source: Sequence[int],
    pins: Sequence[Pin],
    positions: str,
    temperature: float,
    whole: Changes | None,
) -> Changes:
    """Return the changes that were given one by one, or as a whole."""
    loose = Changes(
        gates=dict(gates or {}),
        gate_mode=gate_mode,
        mask_source=tuple(mask_source),
        pins=tuple(pins),
        positions=positions,
        attention_temperature=temperature,
    )
    if whole is not None and loose != Changes():
        raise ConfigError("changes were given twice, as `changes` and one by one; put all of them into `changes`")
    return whole or loose


def _add_target_begin(reader: Reader, text: Text) -> list[int]:
    """Put ids after those that every translation begins with. Pieces that come from a trace have it, or a part of it, already."""
    ids, begin = _ids(reader, text), reader.target_begin
    if not isinstance(text, str) and ids[: len(begin)] == begin[: len(ids)]:
        return max(ids, begin, key=len)
    return [*begin, *ids]


def _ids(reader: Reader, text: Text) -> list[int]:
    if isinstance(text, str):
        return reader.target_ids(reader.normalize_texts(check_texts([text], "text")))[0]
    known = {piece: number for number, piece in enumerate(reader.target.vocabulary)} if text else {}
    problems = [
        f"{each!r} is no piece of the target"
        for each in text
        if (each not in known if isinstance(each, str) else not 0 <= each < reader.target.size)
    ]
    if problems:
        raise DataError("these pieces cannot be used:\n" + "\n".join(f"  - {problem}" for problem in problems))
    return [known[each] if isinstance(each, str) else each for each in text]

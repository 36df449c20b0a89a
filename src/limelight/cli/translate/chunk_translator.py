"""A `ChunkTranslator` does what the options of `limelight translate` ask for, in this process or on a node of a cluster."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from limelight.cli.translate.document import load_glossary
from limelight.cli.translate.memory_first import MemoryFirst
from limelight.cli.translate.output import as_json, as_lines
from limelight.cli.translate.text_lines import Chunk
from limelight.errors import ConfigError

if TYPE_CHECKING:
    from limelight.decoding.config import SearchSettings
    from limelight.store.store import Store
    from limelight.translator.translate import Translator
    from limelight.translator.translation import Translation

# Of the samples of --mbr, unless asked otherwise: whole tails of improbable pieces cost more than they add.
MBR_TOP_P = 0.9


@dataclass(frozen=True)
class ChunkTranslator:
    translator: "Translator"
    memory: MemoryFirst
    wishes: dict[str, Any]
    scores: bool

    @classmethod
    def of(cls, loaded: "Translator", asked: dict[str, Any], store: "Store | None" = None) -> "ChunkTranslator":
        drawing = {name: asked[name] for name in ("temperature", "top_k", "top_p", "seed")}
        wanted = {name: asked[name] for name in ("nbest", "beam", "length_penalty", "coverage_penalty", "min_length", "max_length")}
        wanted |= {"groups": asked["diverse"], "no_repeat_ngram": asked["no_repeat"], "mbr_samples": asked["mbr"]}
        translator = loaded.towards(asked["target"], asked["source"], asked["tag"] or ())
        translator.batch_pieces = asked["batch_pieces"] or translator.batch_pieces
        wishes = {
            "search": _search(translator.settings.search, _drop_unset(wanted), asked["sample"], _drop_unset(drawing)),
            "probabilities": asked["jsonl"],
            "glossary": load_glossary(asked["glossary"], translator),
            **{name: asked[name] for name in ("align", "guards", "protect", "check", "segment")},
        }

        def translate(texts: list[str], matches: list[str | None] | None) -> "list[Translation]":
            prefixes = None if asked["prefix"] is None else [asked["prefix"]] * len(texts)
            contained = [tuple(asked["phrase"])] * len(texts) if asked["phrase"] else None
            return translator.translate(texts, prefixes=prefixes, phrases=contained, matches=matches, **wishes)

        return cls(translator, MemoryFirst(translate, translator, store, asked["tell_above"]), wishes, asked["scores"])

    def translate(self, chunk: Chunk) -> "tuple[list[Translation], bytes]":
        from limelight.translator.translation import InvalidScoresError

        try:
            done = self.memory.translate(chunk.texts)
        except InvalidScoresError as error:
            raise InvalidScoresError([chunk.first + at for at in error.positions], "lines, counted from 1") from None
        nbest, align, jsonl = self.wishes["search"].nbest, self.wishes["align"], self.wishes["probabilities"]
        lines = (as_json(one) if jsonl else as_lines(one, nbest, self.scores, align) for one in done)
        return done, "".join(lines).encode()


def load_translator(asked: dict[str, Any]) -> "Translator":
    from limelight.runtime import keep_freed_memory
    from limelight.translator.translate import Translator

    keep_freed_memory()
    return Translator.load(asked["bundle"], **{name: asked[name] for name in ("device", "dtype", "threads", "engine")})


def _drop_unset(options: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in options.items() if value is not None}


def _search(default: "SearchSettings", wanted: dict[str, Any], sample: bool, drawing: dict[str, Any]) -> "SearchSettings":
    """The bundle's search with what was asked for on top. What was not asked for gives way to what was."""
    from limelight.decoding.config import Sampling

    values = dict(wanted)
    if "no_repeat_ngram" in wanted:
        values["no_repeat_ngram"] = wanted["no_repeat_ngram"] or None
    draw = sample or "mbr_samples" in wanted
    if drawing and not draw and default.sampling is None:
        names = ", ".join(f"--{key.replace('_', '-')}" for key in drawing)
        raise ConfigError(f"{names}: only for drawing, and a beam draws nothing; add --sample, or leave it out")
    if "mbr_samples" in wanted and not drawing.keys() - {"seed"}:
        drawing = {**drawing, "top_p": MBR_TOP_P}
    if draw or default.sampling is not None:
        if wanted.get("groups", 1) > 1:
            raise ConfigError("--diverse is for a beam, and --sample and --mbr draw; leave out one of them")
        values = {"coverage_penalty": 0.0, **values, "groups": 1}
        values["sampling"] = (default.sampling or Sampling()).changed(**drawing)
        return default.changed(**values)
    return default.fitted(**values)

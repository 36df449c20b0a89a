"""Classes describe the answers of the native API for OpenAPI, and functions make them of translations.

Answers are made as plain dictionaries, which costs a tenth of checking them; tests check that they have the shapes that are promised.
"""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from limelight.bundle.card import find_warning
from limelight.documents.units import Remark
from limelight.planning.cost.size import parameters
from limelight.serving.http.described_routes import MANY, Count, LanguageCode, Number, Share, Short, Text
from limelight.serving.native.requests import TranslateRequest
from limelight.serving.queue.models import Models
from limelight.serving.queue.served_model import ServedModel
from limelight.serving.queue.service import State
from limelight.serving.settings import Limits
from limelight.text.language_names import name
from limelight.translator.alignment import split_at_spaces
from limelight.translator.translation import DIGITS, Alternative, Translation, round_score

Targets = Annotated[dict[LanguageCode, Annotated[list[LanguageCode], Field(max_length=1_000)]], Field(max_length=1_000)]
Finish = Literal["eos", "length", "empty_input"]


class WordAnswer(BaseModel):
    text: Text
    confidence: Share | None


class PieceAnswer(BaseModel):
    text: Text = Field(description="As the vocabulary spells it: ▁ is a space.")
    probability: Share | None


class AlignmentAnswer(BaseModel):
    words: Annotated[list[tuple[Count, Count]], Field(max_length=MANY)] = Field(
        description="Pairs of (source, target): which word comes from which, counted from 0."
    )
    source_words: Annotated[list[Text], Field(max_length=MANY)] = Field(description="The words between spaces.")
    target_words: Annotated[list[Text], Field(max_length=MANY)]


class AlternativeAnswer(BaseModel):
    text: Text
    score: Number
    confidence: Share
    words: Annotated[list[WordAnswer], Field(max_length=MANY)]
    alignment: AlignmentAnswer | None = None


class WarningAnswer(BaseModel):
    code: Short
    message: Text


class MatchAnswer(BaseModel):
    score: Share = Field(description="1: the same text, but for blanks around it.")
    source: Text
    target: Text
    origin: Text = Field(description="Where the operator has it from.")
    difference: Annotated[list[tuple[Text, Text]], Field(max_length=MANY)] = Field(
        description="What its source has where the text has something else, and what that is."
    )


class ResultAnswer(BaseModel):
    text: Text
    score: Number | None = Field(description="What the search maximized; null for html and from the memory.")
    confidence: Share | None = Field(description="Share of the words that should be right; null for html.")
    finish: Finish = Field(description="Ended by the model, by the limit, or there was nothing to translate.")
    words: Annotated[list[WordAnswer], Field(max_length=MANY)]
    pieces: Annotated[list[PieceAnswer], Field(max_length=MANY)] | None = None
    alignment: AlignmentAnswer | None = None
    alternatives: Annotated[list[AlternativeAnswer], Field(max_length=100)]
    protected: bool = Field(description="All that must not be translated is there.")
    degenerate: bool = Field(description="It repeats itself, or is empty, and a second search did not help.")
    warnings: Annotated[list[WarningAnswer], Field(max_length=MANY)]
    characters: Count = Field(description="Of the text that was given.")
    source_pieces: Count | None = Field(description="That the model read; null for html and from the memory.")
    unedited: Share | None = Field(default=None, description="How probably it needs no edit, where the bundle knows that.")
    from_memory: Literal[True] | None = Field(default=None, description="Told where no model made it.")
    told: MatchAnswer | None = Field(default=None, description="The match that the model was told; a long text drops it.")
    matches: Annotated[list[MatchAnswer], Field(max_length=100)] | None = Field(default=None, description="Best first, if asked for.")


class TranslateAnswer(BaseModel):
    model: Short
    source: Short
    target: Short
    zero_shot: Literal[True] | None = Field(default=None, description="Told where the model was never taught this direction.")
    results: Annotated[list[ResultAnswer], Field(max_length=10_000)]
    took_ms: Number


class PlacedPiece(BaseModel):
    text: Text
    id: Count
    begin: Count = Field(description="In characters of the text that was given.")
    end: Count


class TokenizeAnswer(BaseModel):
    model: Short
    text: Text = Field(description="As the model reads it: normalized.")
    pieces: Annotated[list[PlacedPiece], Field(max_length=MANY)]


class ScoreAnswer(BaseModel):
    model: Short
    log_prob: Number = Field(description="Natural logarithm of the probability of all pieces and of the end.")
    confidence: Share
    pieces: Annotated[list[PieceAnswer], Field(max_length=MANY)]


class Layers(BaseModel):
    encoder: Count
    decoder: Count


class Names(BaseModel):
    source: Short
    target: Short


class LearntAnswer(BaseModel):
    marks: Count
    terms: bool
    longest: Count | None


class ScoreOfModel(BaseModel):
    test_set: Short
    metric: Short
    value: Number
    signature: Short
    lines: Count


class SearchAnswer(BaseModel):
    beam: Count
    length_penalty: Number
    max_length: Count


class ModelAnswer(BaseModel):
    id: Short
    source: Short
    target: Short
    names: Names
    engine: Short
    runs_on: Annotated[list[Text], Field(max_length=100)]
    parameters: Count
    layers: Layers
    heads: Count
    vocabulary: Count
    learnt: LearntAnswer | None = Field(description="What it was taught beside translating; null: not known.")
    version: Count = Field(description="Of what it has learnt from corrections; 0: as it was trained.")
    calibrated: bool = Field(description="Was measured how often it is right when it says so?")
    verdict: Short | None = Field(description="What its training said of a model that nobody should use; null: of all others.")
    scores: Annotated[list[ScoreOfModel], Field(max_length=10_000)]
    search: SearchAnswer
    reverse: Short | None = Field(description="Id of the model for the way back.")
    directions: Targets | None = Field(
        default=None, description='Told of a model that has several: {"en": ["de", "fr"]}. Its id in another one is multi:en-fr.'
    )
    languages: Annotated[dict[LanguageCode, Short], Field(max_length=2_000)] | None = Field(default=None, description="Of these, by name.")
    tags: Annotated[list[Short], Field(max_length=MANY)] | None = Field(
        default=None, description="Told of a model that has any: what a request may tell it."
    )


class LimitsAnswer(BaseModel):
    characters: Count = Field(description="Of one text.")
    texts: Count = Field(description="Of one request.")
    alternatives: Count = Field(description="Translations of one text beside the best.")
    beam: Count = Field(description="Largest that may be asked for.")
    file_bytes: Count = Field(description="Of a request with a file.")


class ModelsAnswer(BaseModel):
    models: Annotated[list[ModelAnswer], Field(max_length=10_000)]
    corrections: bool = Field(description="Are corrections kept?")
    memory: bool = Field(description="Is there a memory to ask?")
    desk: bool = Field(description="Can it look inside a translation? That wants torch.")
    limits: LimitsAnswer = Field(description="Of this server, for whoever makes requests.")


class QueueAnswer(BaseModel):
    requests: Count
    pieces: Count
    wait_seconds: Number


class CorrectionAnswer(BaseModel):
    id: Count


class HealthAnswer(BaseModel):
    status: State
    version: Short
    uptime_s: Number
    queue: QueueAnswer
    models: Annotated[list[Short], Field(max_length=10_000)]


def result(given: str, made: Translation, asked: TranslateRequest) -> dict[str, Any]:
    """A `ResultAnswer`. Pieces and alignment only if they were asked for."""
    found = {
        **_alternative(given, made, asked),
        "finish": made.finish,
        "alternatives": [_alternative(given, each, asked) for each in made.alternatives],
        "protected": made.protected,
        "degenerate": made.degenerate,
        "warnings": [{"code": notice.code, "message": notice.message} for notice in made.warnings],
        "characters": len(given),
        "source_pieces": made.source_pieces,
    }
    if made.unedited is not None:
        found["unedited"] = round(made.unedited, DIGITS)
    if asked.pieces:
        found["pieces"] = [{"text": text, "probability": round_score(likely)} for text, likely in made.pieces]
    return found


def html_result(given: str, text: str, remarks: Sequence[Remark]) -> dict[str, Any]:
    """A `ResultAnswer` of a fragment of a page: many texts, so there is no one score."""
    told = [{"code": code, "message": f"line {line}: {message}"} for line, code, message in remarks]
    nothing: dict[str, Any] = {
        **dict.fromkeys(("score", "confidence", "source_pieces")),
        "words": [],
        "alternatives": [],
    }
    facts = {"finish": "eos", "protected": True, "degenerate": False, "warnings": told, "characters": len(given)}
    return {"text": text, **nothing, **facts}


def model(served: ServedModel, models: Models) -> dict[str, Any]:
    """A `ModelAnswer`."""
    translator = served.translator
    settings = translator.settings
    shape, reverse = settings.model, models.reverse(served)
    search = settings.search
    return {
        "id": served.id,
        "source": served.source,
        "target": served.target,
        "names": {"source": name(served.source), "target": name(served.target)},
        "engine": translator.engine.name,
        "runs_on": list(translator.runs_on),
        "parameters": sum(parameters(shape).values()),
        "layers": {"encoder": shape.encoder_layers, "decoder": shape.decoder_layers},
        "heads": shape.num_heads,
        "vocabulary": shape.vocab_size,
        "learnt": None if settings.learnt is None else settings.learnt.model_dump(mode="json"),
        "version": 0 if served.bundle.loaded is None else served.bundle.loaded.version,
        "calibrated": translator.calibration is not None,
        "verdict": find_warning(settings),
        "scores": [score.model_dump(mode="json") for score in settings.scores],
        "search": {"beam": search.beam, "length_penalty": search.length_penalty, "max_length": search.max_length},
        "reverse": None if reverse is None else reverse.id,
        **_several(served),
    }


def _several(served: ServedModel) -> dict[str, Any]:
    """What only a model of several directions, or with tags, is asked for."""
    told: dict[str, Any] = {"tags": list(served.tags)} if served.tags else {}
    if len(served.directions) > 1:
        told["directions"] = served.targets
        told["languages"] = {code: name(code) for code in dict.fromkeys((*served.targets, *served.sources))}
    return told


def limits(known: Limits) -> dict[str, int]:
    """A `LimitsAnswer`."""
    return known.model_dump(include=set(LimitsAnswer.model_fields))


def _alternative(given: str, made: Alternative, asked: TranslateRequest) -> dict[str, Any]:
    found: dict[str, Any] = {
        "text": made.text,
        "score": round(made.score, DIGITS),
        "confidence": round(made.confidence, DIGITS),
        "words": [{"text": text, "confidence": round_score(sure)} for text, sure in made.words],
    }
    if asked.align:
        links = [] if made.alignment is None else made.alignment.words
        words = {"source_words": split_at_spaces(given), "target_words": split_at_spaces(made.text)}
        found["alignment"] = {"words": [list(link) for link in links], **words}
    return found

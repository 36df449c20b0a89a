"""Models describe what the DeepL-compatible routes take and answer, in JSON as clients write it: numbers may be strings, and what is absent
may be null.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from limelight.serving.compat.deepl.request import REFUSED, SPLITS, TAGS
from limelight.serving.compat.request_parameters import FALSE, TRUE
from limelight.serving.http.body import JSON, MULTIPART, URLENCODED
from limelight.serving.http.described_routes import (
    NO_ZERO,
    Count,
    GivenShort,
    LanguageCode,
    Short,
    Text,
    file_field,
    make_body,
)
from limelight.serving.settings import ServeSettings

Name = Annotated[str, Field(min_length=1, max_length=1_024, pattern=NO_ZERO)]
Bit = Annotated[int, Field(ge=0, le=1)]
Flag: Any = bool | Bit | Literal[*TRUE, *FALSE] | None
Side = Literal["source", "target", ""]


class DeepLTranslation(BaseModel):
    detected_source_language: Short
    text: Text
    billed_characters: Count = 0
    model_type_used: Short = ""


class DeepLAnswer(BaseModel):
    translations: Annotated[list[DeepLTranslation], Field(max_length=10_000)]
    data: Text = Field(default="", description="The translation of a `text` that is no list, as DeepLX answers.")


class DeepLLanguage(BaseModel):
    language: LanguageCode
    name: Short
    supports_formality: bool = False


DeepLLanguages = Annotated[list[DeepLLanguage], Field(max_length=10_000)]


class UsageAnswer(BaseModel):
    character_count: Count
    character_limit: Count


class GlossaryPair(BaseModel):
    source_lang: LanguageCode
    target_lang: LanguageCode


class GlossaryPairs(BaseModel):
    supported_languages: Annotated[list[GlossaryPair], Field(max_length=10_000)]


class GlossaryAnswer(GlossaryPair):
    glossary_id: Short
    name: Name
    ready: bool
    creation_time: Short
    entry_count: Annotated[int, Field(ge=0, le=1 << 31)]


class GlossariesAnswer(BaseModel):
    glossaries: Annotated[list[GlossaryAnswer], Field(max_length=10_000)]


class DocumentAnswer(BaseModel):
    document_id: Short
    document_key: Short


class DocumentStatus(BaseModel):
    document_id: Short
    status: Literal["queued", "translating", "done", "error"]
    billed_characters: Count = 0


class DeepLBodies:
    """These are models of bodies by content type, with the limits of this server in them; where there are two, the first is of a query."""

    def __init__(self, settings: ServeSettings, formality: bool) -> None:
        """`formality`: a model of this server can be told to be formal or informal."""
        limits = settings.limits
        text: Any = Annotated[str, Field(max_length=limits.characters, pattern=NO_ZERO)]
        texts: Any = Annotated[list[text], Field(min_length=1, max_length=limits.texts)]
        tags: Any = GivenShort | Annotated[list[GivenShort], Field(max_length=1_000)] | None
        named: Any = Annotated[str, Field(max_length=100, pattern=NO_ZERO)] | None
        optional: dict[str, Any] = {
            "source_lang": named,
            "show_billed_characters": Flag,
            "preserve_formatting": Flag,
            "split_sentences": Literal[*SPLITS] | bool | Bit | None,
            "formality": Literal["default", "prefer_more", "prefer_less", *(("more", "less") if formality else ()), ""] | None,
            "tag_handling": Literal["xml", "html", ""] | None,
            "outline_detection": Flag,
            **dict.fromkeys(TAGS, tags),
            **dict.fromkeys(REFUSED, Literal[""] | None),
            "glossary_id": named,
        }
        form = make_body("DeepLForm", {"text": texts, "target_lang": LanguageCode})
        body = make_body("DeepLBody", {"text": text | texts, "target_lang": LanguageCode}, optional)
        self.translate = form, {JSON: body, URLENCODED: form}
        form = make_body("LanguagesForm", {}, {"type": Side})
        self.languages = form, {JSON: make_body("LanguagesBody", {}, {"type": Side | None}), URLENCODED: form}
        key = make_body("DocumentKey", {"document_key": Annotated[GivenShort, Field(min_length=1)]})
        self.key = key, {JSON: key, URLENCODED: key}
        pair = {"source_lang": LanguageCode, "target_lang": LanguageCode}
        entries = {"entries": Annotated[Text, Field(min_length=1, pattern=NO_ZERO)]}
        glossary = make_body("GlossaryBody", {"name": Name, **pair, **entries}, {"entries_format": Literal["tsv", "csv", ""]})
        self.glossary = {JSON: glossary, URLENCODED: glossary}
        file = {"file": file_field(limits.file_bytes), "target_lang": LanguageCode}
        self.document = {MULTIPART: make_body("DocumentForm", file, {"source_lang": GivenShort, "filename": GivenShort})}

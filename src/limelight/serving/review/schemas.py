"""Requests and answers of the review are described here: a document goes as base64, its segments come and go by name."""

import base64
import binascii
from typing import Annotated, Any

from pydantic import BaseModel, Field

from limelight.decoding.guards import Notice
from limelight.documents.kinds import Kind, kind_of
from limelight.documents.translating import LONGEST, GivenText
from limelight.errors import ConfigError
from limelight.serving.http.described_routes import MANY, NO_ZERO, Count, Share, Short, Tags, Text
from limelight.serving.native.requests import DIRECTED, USED, Code, Name, StrictRequest, Terms, with_limits
from limelight.serving.native.responses import WarningAnswer
from limelight.serving.refusals import BadRequest
from limelight.serving.settings import MemoryUse, ServeSettings

MOST_SEGMENTS = 10_000  # of a document: of more the texts would not come back in one body
MOST_CHARACTERS = 64_000_000  # of an answer: of each segment its texts, reasons and terms
NAME = r"^[0-9]{1,9}(\.[0-9]{1,9})?$"
BASE64 = r"^[A-Za-z0-9+/]*={0,2}$"
UNSEEN = Notice("unseen", "nobody has looked at it, and its translator was not sure of it")
SegmentName = Annotated[str, Field(max_length=20, pattern=NAME)]


class FileRequest(StrictRequest):
    name: Annotated[str, Field(min_length=1, max_length=255, pattern=NO_ZERO)] = Field(description="Of the file; its end tells its kind.")
    data: str = Field(description="The file in base64.")
    model: Name | None = Field(default=None, description=DIRECTED)
    source: Code | None = Field(default=None, description="Language of the document, as en. Else that of the model.")
    target: Code | None = Field(default=None, description="Language of the translation, as de. Else that of the model.")

    @property
    def kind(self) -> Kind:
        try:
            return kind_of(self.name)
        except ConfigError:  # its message has the name
            raise BadRequest("name: this kind of file is not translated", "GET /frontend/settings lists those that are.") from None

    def decode(self) -> bytes:
        try:
            return base64.b64decode(self.data, validate=True)
        except binascii.Error:
            raise BadRequest("data: this is no base64") from None


class DocumentRequest(FileRequest):
    tags: Tags = Field(default=[], description="What the model is told beside the languages, as formal.")
    glossary: Terms | None = Field(default=None, description="Terms, each with its translation or several that will do.")
    memory: MemoryUse | None = Field(default=None, description=USED)
    check: bool = Field(default=False, description="Look for words left out and made up. It takes many times as long.")


class GivenSegment(StrictRequest):
    text: Annotated[str, Field(min_length=1, max_length=LONGEST, pattern=NO_ZERO)]
    confidence: Share | None = Field(default=None, description="Of a machine's translation that nobody has looked at. null: somebody has.")
    doubtful: bool = Field(default=False, description="Mark it as one to look at, where the format has a word for that.")

    def read(self) -> GivenText:
        if self.confidence is None:
            return GivenText(self.text)
        return GivenText(self.text, self.confidence, reviewed=False, warnings=(UNSEEN,) if self.doubtful else ())


class ReviewedRequest(FileRequest):
    segments: Annotated[dict[SegmentName, GivenSegment], Field(max_length=MANY)] = Field(
        description="Translations by the ids of their segments; others stay as they are."
    )


class TermAnswer(BaseModel):
    source: Text
    targets: Annotated[list[Text], Field(max_length=1_000)]
    met: bool = Field(description="Does the translation use it?")


class SegmentAnswer(BaseModel):
    id: SegmentName
    line: Count = Field(description="In which it begins; in office documents the number of the text.")
    source: Text
    text: Text = Field(description="Its translation; empty where there is none.")
    confidence: Share | None = Field(description="Share of its words that should be right.")
    unedited: Share | None = Field(description="How probably it needs no edit, where the bundle knows that.")
    from_memory: bool
    reasons: Annotated[list[WarningAnswer], Field(max_length=MANY)] = Field(description="Why somebody should look at it.")
    terms: Annotated[list[TermAnswer], Field(max_length=MANY)] = Field(description="Of the glossary, that its source has.")


class SegmentsAnswer(BaseModel):
    model: Short
    source: Short
    target: Short
    left: Count = Field(description="Texts that have a translation, or must not get one.")
    segments: Annotated[list[SegmentAnswer], Field(max_length=MANY)] = Field(description="The worst first.")


class RefusedSegment(WarningAnswer):
    line: Count


class ReviewedAnswer(BaseModel):
    data: Text = Field(description="The document in base64.")
    refused: Annotated[list[RefusedSegment], Field(max_length=MANY)] = Field(description="What was left as it was, and why.")


def review_requests(settings: ServeSettings) -> tuple[type[DocumentRequest], type[ReviewedRequest]]:
    """The same classes with the limits of this server in them."""
    limits = settings.limits
    data: dict[str, Any] = {"data": Annotated[str, Field(min_length=4, max_length=limits.file_bytes, pattern=BASE64)]}
    terms = {"glossary": Annotated[Terms, Field(max_length=limits.terms)] | None}
    return with_limits(DocumentRequest, data | terms), with_limits(ReviewedRequest, data)

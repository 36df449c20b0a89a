"""Reading and writing a document ends when nobody waits for it any more, whatever its format."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

import pytest

from limelight.documents.document import translate_document
from limelight.documents.kinds import Kind
from limelight.errors import DeadlineError

XLIFF = (
    '<xliff version="1.2"><file source-language="en" target-language="de"><body>{}</body></file></xliff>',
    '<trans-unit id="{0}"><source>Text {0}</source></trans-unit>',
)
TMX = (
    '<tmx version="1.4"><header srclang="en"/><body>{}</body></tmx>',
    '<tu><tuv xml:lang="en"><seg>Text {0}</seg></tuv></tu>',
)
WRITTEN: dict[Kind, tuple[str, str]] = {
    "txt": ("{}", "Text {0}.\n"),
    "html": ("{}", "<p>Text {0}.</p>\n"),
    "srt": ("{}", "{0}\n00:00:01,000 --> 00:00:02,000\nText {0}.\n\n"),
    "po": ('msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\n{}', 'msgid "Text {0}"\nmsgstr ""\n\n'),
    "xliff": XLIFF,
    "tmx": TMX,
}
LINES = 400


@dataclass(frozen=True)
class Shouted:
    text: str
    warnings: Sequence[object] = ()
    protected: bool = True
    confidence: float = 0.9


def shout(texts: Sequence[str]) -> list[Shouted]:
    return [Shouted(text.upper()) for text in texts]


def document(kind: Kind) -> bytes:
    whole, line = WRITTEN[kind]
    return whole.replace("{}", "".join(line.format(number) for number in range(LINES))).encode()


@pytest.mark.parametrize("kind", WRITTEN)
def test_a_document_is_not_read_to_its_end_when_nobody_waits(kind: Kind) -> None:
    looks = count(1)
    with pytest.raises(DeadlineError, match="was not done in time"):
        translate_document(document(kind), kind, ("en", "de"), shout, is_over=lambda: next(looks) >= 50)
    assert next(looks) == 51, "it was looked at again and again, and no more once it was over"


@pytest.mark.parametrize("kind", WRITTEN)
def test_a_deadline_that_is_not_reached_changes_no_byte(kind: Kind) -> None:
    looks = count()
    watched = translate_document(document(kind), kind, ("en", "de"), shout, is_over=lambda: next(looks) < 0)
    assert watched.data == translate_document(document(kind), kind, ("en", "de"), shout).data
    assert watched.counts.translated == LINES
    assert next(looks) >= 2 * LINES, "as it is read, and as it is put together"

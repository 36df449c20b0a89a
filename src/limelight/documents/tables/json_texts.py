"""`find_json` takes the texts of a JSON file of an i18n library, and `read_json` reads one with the places of all its values."""

import json
import re

from limelight.corpus.reading.language_tags import closeness
from limelight.documents.encodings import Document
from limelight.documents.splices import Splice
from limelight.documents.tables.text_tree import DEEPEST, TextNode, find_texts, refuse_depth
from limelight.documents.units import ExtractionResult, collect_splices
from limelight.errors import DataError
from limelight.text.language_names import stated_tag

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)|[\[\]{}]|[^\s,:"\[\]{}]++', re.DOTALL)  # what nobody ends goes to the end


def find_json(document: Document, languages: tuple[str, str], again: bool) -> ExtractionResult:
    root = read_json(document)
    found = find_texts(document, root, lambda node, text: write_json(document, text))
    locale = root.child("@@locale")  # of an .arb file, whose name has to say the same
    if locale is None or not locale.text or closeness(languages[0], locale.text) is None:
        return found
    stated = Splice(locale.start, locale.end, (write_json(document, stated_tag(languages[1]).replace("-", "_")),))
    return found._replace(finish=lambda units: [stated, *collect_splices(units)])


def write_json(document: Document, text: str) -> str:
    """A string as the file writes them: with \\u00fc if it has such escapes and is ASCII otherwise."""
    return json.dumps(text, ensure_ascii=document.encoding == "ascii")


def read_json(document: Document) -> TextNode:
    try:
        json.loads(document.text)
    except (ValueError, RecursionError) as error:
        why = f"{error}" if isinstance(error, ValueError) else "too many levels inside each other"
        raise DataError(f"{document.name}: no JSON ({why}); mend it, and leave out comments") from None
    return _JsonReader(document).read()


class _JsonReader:
    """The file is known to be JSON, so only what is inside what must be found."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.tokens = _TOKEN.finditer(document.text)

    def read(self) -> TextNode:
        return self._value(next(self.tokens), 0)

    def _value(self, token: re.Match[str], depth: int) -> TextNode:
        start, sign = token.start(), token[0][0]
        if sign == '"':
            return TextNode(start, token.end(), json.loads(token[0], strict=False))
        if sign not in "[{":
            return TextNode(start, token.end())
        if depth >= DEEPEST:
            raise refuse_depth(self.document, self.document.text.count("\n", 0, start) + 1)
        self.document.check_time()
        children: list[tuple[TextNode | None, TextNode]] = []
        while (token := next(self.tokens))[0] not in "]}":
            key = self._value(token, depth) if sign == "{" else None
            children.append((key, self._value(next(self.tokens) if key else token, depth + 1)))
        return TextNode(start, token.end(), None, tuple(children))

"""`States` gives the XLIFF attributes that say a machine translated a text, and how sure it was.

1.x   <target state="needs-review-translation" state-qualifier="mt-suggestion" its:mtConfidence="0.412">
2.x   <segment state="initial" subState="limelight:mt-0.412">

`translated` in both where there is no reason to look at it. Version 2 has no place for attributes of ITS on a segment or its target.
"""

import re
from collections.abc import Mapping

from limelight.documents.formats.xml_elements import Element
from limelight.documents.splices import Splice

ITS = "http://www.w3.org/2005/11/its"
ANNOTATOR = "mt-confidence|Limelight"  # ITS asks who measured: its:annotatorsRef
_ATTRIBUTE = re.compile(r"""(?<!\s)(\s++)([^\s=<>"'/]++)(\s*+=\s*+)("[^"]*+"|'[^']*+')""")


class States:
    """The states are attributes for the targets and segments of one document; `declarations` are those that its root needs for them."""

    def __init__(self, root: Element, text: str) -> None:
        tag = text[root.start : root.inner]
        declared = re.search(rf"""\sxmlns:([^\s=]+)\s*=\s*["']{re.escape(ITS)}["']""", tag)
        self.prefix: str | None = declared[1] if declared else "its"
        if text.count(ITS) > tag.count(ITS) or (not declared and f"xmlns:{self.prefix}" in text):
            self.prefix = None  # someone else's elements use the namespace or the name in ways of their own
        self.annotated = f"{self.prefix}:annotatorsRef" in tag
        wanted = {f"{self.prefix}:version": "2.0", f"{self.prefix}:annotatorsRef": ANNOTATOR}
        new = {name: value for name, value in wanted.items() if self.prefix and name not in tag}
        if self.prefix and not declared:
            new = {f"xmlns:{self.prefix}": ITS, **new}
        self.declarations = Splice(root.inner - 1, root.inner - 1, (_format_attributes(new),))

    def of_target(self, confidence: float, needs_review: bool) -> dict[str, str]:
        state = "needs-review-translation" if needs_review else "translated"
        attributes = {"state": state, "state-qualifier": "mt-suggestion"}
        if self.prefix:
            attributes[f"{self.prefix}:mtConfidence"] = f"{confidence:.3f}"
            if self.annotated:  # by another tool, or for another kind of notes
                attributes[f"{self.prefix}:annotatorsRef"] = ANNOTATOR
        return attributes


def of_segment(confidence: float, needs_review: bool) -> dict[str, str]:
    return {"state": "initial" if needs_review else "translated", "subState": f"limelight:mt-{confidence:.3f}"}


def with_attributes(tag: str, values: Mapping[str, str]) -> str:
    """with_attributes('<a b="1">', {"b": "2", "c": "3"}) -> '<a b="2" c="3">'. All others stay as they are, to the byte."""
    new = dict(values)

    def change(match: re.Match[str]) -> str:
        value = new.pop(match[2], None)
        return match[0] if value is None else f'{match[1]}{match[2]}{match[3]}"{value}"'

    changed = _ATTRIBUTE.sub(change, tag)
    return changed[:-1] + _format_attributes(new) + ">"


def _format_attributes(attributes: Mapping[str, str]) -> str:
    return "".join(f' {name}="{value}"' for name, value in attributes.items())

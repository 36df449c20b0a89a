"""Equations as MathML, which browsers draw themselves: no script, no fonts, no network.

    with_equations("where $x$ is") -> "where <span><math ...>...</math></span> is"

Written as GitHub reads them: $...$ in a line, $$...$$ in lines of their own. Code is left alone.
"""

import re

from latex2mathml.converter import convert

CODE = re.compile(r"(^```.*?^```|`[^`\n]+`)", flags=re.M | re.S)
DISPLAY = re.compile(r"^\$\$\n?(.+?)\n?\$\$$", flags=re.M | re.S)
INLINE = re.compile(r"\$(?=\S)([^$\n]+?)(?<=\S)\$")


def with_equations(markdown: str) -> str:
    parts = CODE.split(markdown)
    return "".join(part if CODE.fullmatch(part) else _converted(part) for part in parts)


def _converted(text: str) -> str:
    text = DISPLAY.sub(lambda found: f'<div class="equation">{_mathml(found[1], "block")}</div>', text)
    # In a span, since Python-Markdown takes <math> at the beginning of a line for a block.
    return INLINE.sub(lambda found: f"<span>{_mathml(found[1], 'inline')}</span>", text)


def _mathml(tex: str, display: str) -> str:
    made: str = convert(" ".join(tex.split()), display=display).replace("\n", "")
    if "\\" in made:  # a command that the converter does not know is left as it is written
        raise ValueError(f"{tex}: not all of it could be converted: {made}")
    return made

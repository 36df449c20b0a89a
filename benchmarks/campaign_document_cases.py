"""Documents of all kinds that nobody would write, and translators that answer what nobody would answer.

document(Random(1)) -> Case("xliff", b"<xliff ...", "damaged")        made, then perhaps damaged, cut or put in another encoding
"""

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "documents"))
from sample_documents import SAMPLES, mutant

from campaign_strings import KEPT, ODD, SIGNS, WORDS, hostile

KINDS = ("txt", "html", "srt", "po", "xliff", "tmx")
NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
BREAKS = re.compile("[\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029]")
TAGS = (
    "<p>", "</p>", "<b>", "</b>", "<i>", "</i>", "<br>", "<a href=x title='one'>", "</a>",
    "<script>var a='<b>one</b>'</script>", "<!-- one -->",
    "<textarea>one</textarea>", "<title>one</title>", "<pre>\none\n two</pre>", "<table><td>", "<li>one", "<span translate=no>one</span>",
    "<code>x=1</code>", '<input placeholder="one" value=one>', "<style>p{}</style>", "<svg><text>one</text></svg>", "<!doctype html>",
    "<?php echo 'x' ?>", "&notit;", "<", "<1", "</>", "<p one='two", "<b/>", "<wbr>", "<select><option>one", "<template>one</template>",
    "<noscript>one</noscript>", "<iframe>one</iframe>", "<math><mi>x</mi></math>", "<h1>", "</h1>",
    "<ruby>one<rt>two</rt></ruby>", "<meta charset=latin-1>",
    "<meta name=description content='one two'>", "<p class=notranslate>one</p>", "<![CDATA[one]]>", "<plaintext>", "<xmp>one</xmp>", "<b", "<b =>",
)  # fmt: skip
HEAD = 'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=%s\\n"\n"Plural-Forms: nplurals=%s; plural=n != 1;\\n"\n\n'
WORSE = (
    "</source>", "]]>", "<script>", "\x00", "\x0b", "\ud800", '"', "\\",
    "\n\n2\n00:00:09,000 --> 00:00:10,000\nEVIL", 'msgid "evil"', "&evil;",
    "-->", "<b>", "\u2028", '"\nmsgstr "evil', "<g id=\"1\">", "</g>", '<x id="9"/>', "\ufeff", "\\n", "<!--", "<![CDATA[", "%", "\r", "</p>", "&#0;", "00:00:01,000 --> ",
)  # fmt: skip


@dataclass(frozen=True)
class Case:
    kind: str
    data: bytes
    harm: str  # what was done to it; "" where it is as it was made


def document(random: Random) -> Case:
    kind = random.choice((*KINDS, *SAMPLES))
    if kind in SAMPLES:
        return Case(kind, mutant(kind, random), "damaged")
    text, how = MAKERS[kind](random), random.random()
    if how < 0.12:
        at = random.randrange(len(text) + 1)
        text = text[:at] + random.choice((*SIGNS, *ODD, *TAGS)) + text[at + random.randint(0, 6) :]
        return Case(kind, _encoded(text, "utf-8"), "damaged")
    if how < 0.18:
        return Case(kind, _encoded(text, "utf-8")[: random.randrange(len(text) + 1)], "cut")
    if how < 0.26:
        return Case(
            kind,
            _encoded(
                text,
                random.choice(("utf-16", "utf-16-le", "utf-32", "latin-1", "cp1252", "koi8-r", "utf-8-sig", "shift_jis")),
            ),
            "encoding",
        )
    if how < 0.30:
        return Case(
            kind,
            bytes(random.randrange(256) if random.random() < 0.01 else each for each in _encoded(text, "utf-8")),
            "bytes",
        )
    if how < 0.34:
        return Case(kind, _encoded(deep(kind, random), "utf-8"), "deep")
    return Case(kind, _encoded(text, "utf-8"), "")


def answering(random: Random) -> tuple[str, Callable[[str], str]]:
    """A translator by its name."""
    ways: dict[str, Callable[[str], str]] = {
        "unchanged": lambda text: text,
        "upper": lambda text: "".join(part if part[:1] == "<" else part.upper() for part in re.split("(<[^>]*>)", text)),
        "without tags": lambda text: re.sub("<[^>]*>", "", text) + "x",
        "worse": lambda text: text + random.choice(WORSE),
        "hostile": lambda text: hostile(random, 6),
        "empty": lambda text: random.choice(("", " ", "\n", "\u200b", "\x00")),
        "lines": lambda text: text.replace(" ", "\n"),
        "turned": lambda text: "".join(reversed(re.findall("<[^>]*>|[^<]+|<", text))),
        "long": lambda text: text + " eins zwei" * 300,
    }
    name = random.choice(list(ways))
    return name, ways[name]


def deep(kind: str, random: Random) -> str:
    """Nested, or with something huge."""
    depth, huge = random.choice((50, 400, 3000)), "a" * random.choice((1000, 40_000))
    inner = random.choice((GROUP * depth + "one" + "</g>" * depth, f'<g id="{huge}">one</g>', "<x id='1'/>" * depth, "one " * depth))
    return {
        "txt": random.choice(("one " * depth, "one\t" * depth, huge, "\n" * depth, "((" * depth)),
        "html": random.choice(
            ("<b>" * depth + "one" + "</b>" * depth, "<div>" * depth + "one", f"<p title='{huge}'>one</p>", "<!--" * depth, "<a " * depth, "<b>one" * depth)
        ),
        "srt": "".join(f"{n}\n00:{n // 60:02}:{n % 60:02},000 --> 00:{n // 60:02}:{n % 60:02},900\none\n\n" for n in range(min(depth, 600))),
        "po": HEAD % ("UTF-8", 2) + f'msgid "{"one " * depth}"\nmsgstr ""\n\n' + "#. note\n" * depth + 'msgid "two"\nmsgstr ""\n',
        "xliff": XLIFF % f'<trans-unit id="1"><source>{inner}</source></trans-unit>',
        "tmx": TMX % f'<tu><tuv xml:lang="en"><seg>{inner}</seg></tuv></tu>',
    }[kind]  # fmt: skip


GROUP = '<g id="1">'
STATES = ("", ' state="final"', ' state="initial"')
STRINGS = ('""', '""', '"x"')
XLIFF = (
    '<?xml version="1.0"?>\n<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2"><file original="a" source-language="en"'
    ' target-language="de" datatype="x"><body>%s</body></file></xliff>'
)
XLIFF2 = '<xliff version="2.0" xmlns="urn:oasis:names:tc:xliff:document:2.0" srcLang="en" trgLang="de"><file id="f">%s</file></xliff>'
TMX = '<?xml version="1.0" encoding="utf-8"?><tmx version="1.4"><header srclang="en"/><body>%s</body></tmx>'


def _text(random: Random, most: int = 6) -> str:
    sorts = (WORDS, WORDS, KEPT, SIGNS, ODD)
    return "".join(random.choice(random.choice(sorts)) + random.choice(("", " ", " ")) for _ in range(random.randint(0, most)))


def _escaped(text: str) -> str:
    return NO_XML.sub("", text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _inline(random: Random, depth: int = 0) -> str:
    made = ""
    for _ in range(random.randint(0, 5)):
        number, word = random.randint(1, 5), _escaped(_text(random, 2))
        ways = [
            word, word, word, word, word, f'<x id="{number}"/>', f'<g id="{number}">{_inline(random, depth + 1) if depth < 4 else word}</g>',
            f'<bpt id="{number}">&lt;b&gt;</bpt>{word}<ept id="{number}">&lt;/b&gt;</ept>', f'<ph id="{number}">{word}</ph>', "<!-- c -->",
            f"<![CDATA[{NO_XML.sub('', _text(random, 2)).replace(']]>', '')}]]>", '<mrk mtype="protected">x y</mrk>', "<?pi x?>", "&#65;", "&#x2028;",
            f'<sc id="{number}"/>{word}<ec startRef="{number}"/>', f'<pc id="{number}">{word}</pc>', "<sub>one</sub>", f'<it pos="begin" id="{number}"/>',
        ]  # fmt: skip
        made += random.choice(ways)
    return made


def _xliff(random: Random) -> str:
    targets = (
        "",
        "",
        "<target/>",
        "<target></target>",
        "<target>x &amp; y</target>",
        '<target state="needs-translation"> </target>',
        "<target>%s</target>",
    )
    units = []
    for number in range(random.randint(0, 5)):
        source, kind = (
            _inline(random),
            random.choice(("", "", ' translate="no"', ' approved="yes"', ' xml:space="preserve"')),
        )
        target = random.choice(targets).replace("%s", source)
        units.append(f'<trans-unit id="{number}"{kind}><source>{source}</source>{target}<note>n</note></trans-unit>')
    if random.random() < 0.6:
        return XLIFF % "".join(units)
    parts = [
        f'<unit id="{n}"><segment{random.choice(STATES)}><source>{_inline(random)}</source>'
        f"{random.choice(('', '<target/>'))}</segment></unit>"
        for n in range(random.randint(0, 4))
    ]  # fmt: skip
    return XLIFF2 % "".join(parts)


def _tmx(random: Random) -> str:
    others = (
        "",
        "",
        '<tuv xml:lang="de"><seg/></tuv>',
        '<tuv xml:lang="de"><seg>x</seg></tuv>',
        '<tuv lang="de-AT"><seg>x</seg></tuv>',
    )
    return TMX % "".join(
        f'<tu><tuv xml:lang="{random.choice(("en", "en", "EN-us", "fr"))}"><seg>{_inline(random)}</seg></tuv>{random.choice(others)}</tu>'
        for _ in range(random.randint(0, 5))
    )  # fmt: skip


def _quoted(text: str) -> str:
    for one, other in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\t", "\\t"), ("\r", "\\r")):
        text = text.replace(one, other)
    return f'"{BREAKS.sub(" ", text)}"'


def _po(random: Random) -> str:
    made = HEAD % ("UTF-8", random.choice((1, 2, 2, 2, 3, 6)))
    for number in range(random.randint(0, 5)):
        made += random.choice(("", "", "#, fuzzy\n", "#, c-format\n", "#. note\n", "#: a.c:1\n", '#| msgid "x"\n', "# Translators: x\n"))
        made += f"msgctxt {_quoted(_text(random, 1))}\n" if random.random() < 0.2 else ""
        text = f"{_text(random)}{number}"
        made += f'msgid ""\n{_quoted(text[:3])}\n{_quoted(text[3:])}\n' if random.random() < 0.3 else f"msgid {_quoted(text)}\n"
        if random.random() < 0.2:
            made += f'msgid_plural {_quoted(_text(random, 4) + "s")}\nmsgstr[0] ""\nmsgstr[1] ""\n\n'
        else:
            made += f"msgstr {random.choice(STRINGS)}\n\n"
    return made


def _srt(random: Random) -> str:
    end, made = random.choice(("\n", "\r\n")), ""
    for number in range(random.randint(0, 7)):
        lines = end.join(BREAKS.sub(" ", _text(random, 4)) or "x" for _ in range(random.randint(1, 3)))
        made += f"{number + 1}{end}00:00:{number:02},000 --> 00:00:{number:02},900{end}{lines}{end}{end}"
    return made


def _html(random: Random) -> str:
    return "".join(random.choice(TAGS) + random.choice(("", _text(random, 3))) for _ in range(random.randint(0, 14)))


def _txt(random: Random) -> str:
    ends = ("\n", "\n", "\r\n", "\n\n", "\r", " ", "\t")
    return random.choice(("", "", "\ufeff")) + "".join(_text(random) + random.choice(ends) for _ in range(random.randint(0, 7)))


def _encoded(text: str, encoding: str) -> bytes:
    return text.encode(encoding, "surrogatepass" if encoding.startswith("utf-") else "ignore")


MAKERS: dict[str, Callable[[Random], str]] = {
    "txt": _txt, "html": _html, "srt": _srt, "po": _po, "xliff": _xliff, "tmx": _tmx
}  # fmt: skip

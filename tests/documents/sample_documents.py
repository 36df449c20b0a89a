# ruff: noqa: E501
"""A small document of each kind that is kept by keys, by runs or in an archive, and damaged ones made of them.

`SAMPLES[kind]` is the document; `mutant(kind, random)` has bytes of it changed, cut, doubled or in another place. Members of archives are
damaged and packed again, so that what reads them is reached.
"""

import io
import zipfile
from random import Random

W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" xmlns:r="urn:r"'
A = 'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" xmlns:p="urn:p"'
O = 'xmlns:office="urn:o" xmlns:text="urn:t" xmlns:draw="urn:d"'

DOCX = (
    f'<?xml version="1.0"?><w:document {W}><w:body><w:p><w:pPr><w:pStyle w:val="Heading1"/></w:pPr><w:r><w:t>A heading</w:t></w:r></w:p>'
    '<w:p><w:r w:rsidR="1"><w:t xml:space="preserve">Open </w:t></w:r><w:proofErr w:type="spellStart"/><w:r w:rsidR="2"><w:t>t</w:t></w:r>'
    '<w:r><w:rPr><w:lang w:val="en-US"/></w:rPr><w:t xml:space="preserve">he </w:t></w:r><w:r><w:rPr><w:b/></w:rPr><w:t>bold</w:t></w:r>'
    '<w:bookmarkStart w:id="0" w:name="x"/><w:bookmarkEnd w:id="0"/>'
    '<w:hyperlink r:id="rId1"><w:r><w:rPr><w:rStyle w:val="Link"/></w:rPr><w:t xml:space="preserve"> linked </w:t></w:r></w:hyperlink>'
    '<w:r><w:t>words</w:t></w:r><w:r><w:rPr><w:vertAlign w:val="superscript"/></w:rPr><w:footnoteReference w:id="2"/></w:r><w:r><w:t>.</w:t>'
    "</w:r></w:p><w:p><w:r><w:t>one</w:t><w:tab/><w:t>two words</w:t><w:br/></w:r></w:p>"
    '<w:p><w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:instrText>PAGE</w:instrText></w:r><w:r><w:t>three</w:t></w:r></w:p>'
    "<w:tbl><w:tr><w:tc><w:p><w:r><w:t>a cell</w:t></w:r></w:p></w:tc></w:tr></w:tbl>"
    "<w:p><w:r><w:pict><w:txbxContent><w:p><w:r><w:t>in a box</w:t></w:r></w:p></w:txbxContent></w:pict></w:r></w:p></w:body></w:document>"
)
PPTX = (
    f'<p:sld {A}><a:p><a:pPr/><a:r><a:rPr lang="en-US" dirty="0"/><a:t>Some </a:t></a:r><a:r><a:rPr lang="en-US" b="1"/><a:t>bold</a:t></a:r>'
    '<a:r><a:rPr lang="en-GB"/><a:t> text</a:t></a:r><a:endParaRPr/></a:p><a:p><a:fld type="slidenum"><a:t>7 pages</a:t></a:fld></a:p></p:sld>'
)
ODT = (
    f'<office:document-content {O}><text:h>A heading</text:h><text:p>Hello <text:span text:style-name="B">bold world</text:span>'
    "<text:note><text:note-citation>1</text:note-citation><text:note-body><text:p>The note</text:p></text:note-body></text:note>"
    " and<text:s/> more<text:tab/>after a tab</text:p></office:document-content>"
)
XHTML = '<html xmlns="http://www.w3.org/1999/xhtml"><head><title/></head><body><p>Some <b>bold</b> text&nbsp;here.</p></body></html>'
NCX = "<ncx><navPoint><navLabel><text>Chapter one</text></navLabel></navPoint></ncx>"

MEMBERS: dict[str, dict[str, str]] = {
    "docx": {"[Content_Types].xml": "<Types/>", "word/document.xml": DOCX, "word/media/image1.png": "\x00PNG", "word/styles.xml": "<w/>"},
    "pptx": {"ppt/slides/slide1.xml": PPTX, "ppt/presentation.xml": "<p>no text</p>"},
    "odt": {"mimetype": "application/vnd.oasis.opendocument.text", "content.xml": ODT, "META-INF/manifest.xml": "<m/>"},
    "epub": {"mimetype": "application/epub+zip", "EPUB/c1.xhtml": XHTML, "EPUB/toc.ncx": NCX, "EPUB/a.css": "p {}"},
}


def archive(members: dict[str, str]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as made:
        for name, content in members.items():
            method = zipfile.ZIP_STORED if name == "mimetype" else zipfile.ZIP_DEFLATED
            made.writestr(zipfile.ZipInfo(name, (2020, 1, 2, 3, 4, 6)), content.encode(), method)
    return file.getvalue()


TEXTS: dict[str, str] = {
    "md": (
        "---\ntitle: no text\n---\n# A *title* #\n\nOpen [the settings](s.md \"t\") of **bold _it_** `code`,\nthen snake_case <https://x.org> [ref].\n\n"
        "> quoted *words\n> go* on  \n> after a break\n\n1. one **item**\n   - [ ] nested\n\n| a b | c \\| d |\n| - | - |\n| one *x* | two |\n\n"
        '<p align="center">Some <b>html</b></p>\n\n    code here\n\n```\nfenced code\n```\n\n[ref]: http://x "t"\n'
    ),
    "json": '{"menu": {"open": "Open {{name}}", "n": 3, "list": ["one two", "\\u00e4 \\"q\\""]}, "@open": {"description": "about it"},\n'
            ' "m": {"message": "Hi there", "description": "about it"}}\n',
    "yaml": "en:\n  a: plain text # comment\n  b: &x 'single ''q'' text'\n  c: \"double\\n text\"\n  d: |\n    line one\n    line two\n\n"
            "  e: >-\n    folded one\n    folded two\n  f: 3\n  g: [one two, {k: v w}]\n",
    "xml": '<?xml version="1.0" encoding="utf-8"?>\n<resources xmlns:xliff="urn:oasis:names:tc:xliff:document:1.2">\n'
           '  <string name="a">Don\\\'t open\\n <b>it</b> &amp; <xliff:g id="x">Bob Smith</xliff:g> now</string>\n'
           '  <string name="q">"It\'s   quoted"</string><string name="c"><![CDATA[<b>Bold</b> words]]></string>\n'
           '  <string name="n" translatable="false">left</string><string name="r">@string/a</string>\n'
           '  <plurals name="p"><item quantity="one">one file</item><item quantity="other">%d files</item></plurals>\n'
           '  <string-array name="z"><item>first <em>x y</em></item></string-array>\n</resources>\n',
    "resx": '<?xml version="1.0"?><root><resheader name="v"><value>no text</value></resheader><data name="A"><value>Hello {0} &lt;b&gt;</value>'
            '<comment>about it</comment></data><data name="i" type="System.X"><value>no text</value></data></root>',
    "properties": "# no text\n! no text\nopen.file = Open \\u201c{0}\\u201d it''s \\\n            now\nempty=\nkey\\ b\\:c : value one\n  t\tvalue two\n",
    "strings": '/* "no" = "text"; */\n"open" = "Open \\"%@\\"\\n now"; // no text\nkey = "two words";\n',
    "xcstrings": '{\n  "sourceLanguage" : "en",\n  "strings" : {\n    "Open it" : {\n\n    },\n    "k" : {\n      "localizations" : {\n        "en" : {\n'
                 '          "variations" : { "plural" : { "one" : { "stringUnit" : { "state" : "new", "value" : "%d file" } },\n'
                 '            "other" : { "stringUnit" : { "state" : "new", "value" : "%d files" } } } }\n        }\n      }\n    },\n'
                 '    "left" : { "shouldTranslate" : false }\n  },\n  "version" : "1.0"\n}\n',
    "vtt": "WEBVTT\n\nNOTE no text\n\nSTYLE\n::cue { color: red }\n\nintro\n00:01.000 --> 00:03.000 align:start\n<v Bob>Hello &amp; welcome <i>to</i> it</v>\n\n"
           "00:00:04.000 --> 00:00:05.000\n- One <00:00:04.500>two\n- Three\n",
    "csv": 'key,en,de\r\nopen,"Open, ""please""\nnow",\r\nclose,Close it,fertig\r\nshort,Short row\r\n',
    "tsv": "source\ttarget\nOpen it\t\n\"quoted\tleft\n",
    "usfm": '\\id GEN no text\n\\h Genesis\n\\c 1\n\\p\n\\v 1 In the beginning\\f + \\ft left\\f* God \\add made\\add* the \\w gnat|lemma="x"\\w* fly.\n'
            "\\v 2 The earth\nwas void\n\\q1\n",
}  # fmt: skip

SAMPLES: dict[str, bytes] = {kind: text.encode() for kind, text in TEXTS.items()} | {kind: archive(each) for kind, each in MEMBERS.items()}


def mutant(kind: str, random: Random) -> bytes:
    if kind in MEMBERS and random.random() < 0.7:
        members = dict(MEMBERS[kind])
        name = random.choice([name for name, content in members.items() if len(content) > 60])
        members[name] = harm(members[name].encode(), random).decode("utf-8", "replace")
        return archive(members)
    return harm(SAMPLES[kind], random)


def harm(data: bytes, random: Random) -> bytes:
    for _ in range(random.choice((1, 1, 2, 5))):
        start = random.randrange(len(data) + 1)
        end = min(len(data), start + random.choice((0, 1, 1, 3, 12, 60)))
        other = random.randrange(len(data) + 1)
        new = random.choice((b"", b"", data[start:end] * 2, data[other : other + 20], bytes([random.randrange(256)]), *SIGNS))
        data = data[:start] + new + data[end:]
    return data


SIGNS = tuple(
    sign.encode() for sign in ("<", ">", "&", '"', "'", "\\", "\n", "\r", "{", "]", "*", "_", "`", "|", "\x00", "ä", "\u2028", "\ufeff")
)

# Of each kind: what is put before, again and again, and after, to see whether its time grows with its length.
PUMPED: dict[str, list[tuple[str, str, str]]] = {
    "md": [("", one, "") for one in ("*a ", "**a _b", "[a", "[a](", "](b ", "`", "`` ` ", "<a ", "<!-- a", "> ", "- ", "| a ", "|-|\\n", "~~a", "a\\\n", "a  \n", "[^1]", "&amp;", "    a\n", "# a\n", "\\", "$5/a bc ", "\n!!! a", "\n::: a ", "\n=== \"")],
    "json": [("[", '"a%d",', '"b"]'), ('{"a":"', "\\u00e4", '"}'), ("{", '"a%d":"b",', '"c":1}'), ("", "[", ""), ('"', "\\\\", '"')],
    "yaml": [("", "a%d: b c\n", ""), ("a: |\n", "  b c\n", ""), ("- '", "a ''", "'"), ("", "[", ""), ("", "- ", "a"), ("a: b\n", "  c\n", "")],
    "xml": [("<resources>", one, "</resources>") for one in ("<string>a</string>", "<string><![CDATA[a]]></string>", "<a%d/>")]
    + [("<resources><string>", one, "</string></resources>") for one in ("a\\'", '"', "<b>a</b>", "<b/>", "&amp;", "<![CDATA[a]]>", "\\\\")],
    "resx": [("<root>", "<data name='a%d'><value>b</value></data>", "</root>"), ("<root><data><value>", "a ", "</value></data></root>")],
    "properties": [("", one, "") for one in ("a%d = b c\n", "a\\\n", "\\", " ", "a=b\\\n", "# a\n", "a=\\u00e4\n")],
    "strings": [("", one, "") for one in ('"a%d" = "b";\n', '"', "a", "a ", "/*", "// a\n", '"a" ', '"a"="b" ', "\\")],
    "xcstrings": [('{"sourceLanguage":"en","strings":{', '"a%d b":{},', '"c":{}}}')],
    "vtt": [("WEBVTT\n\n", one, "") for one in ("00:01.000 --> 00:02.000\na\n\n", "<v a>", "<00:00", "&amp;")],
    "csv": [("en,de\n", one, "") for one in ("a%d,\n", '"a ""b""",\n', '"a', '"",', "a")],
    "tsv": [("en\tde\n", one, "") for one in ("a%d\t\n", '"a\t', '"\t')],
    "usfm": [("\\id a\n\\p ", one, "") for one in ("\\v %d a\n", "\\nd a ", "\\nd a\\nd* ", "\\f ", "\\", "|", "\\w a|b\\w*")],
}  # fmt: skip
PARAGRAPHS = {  # of the main member of an archive
    "docx": ("word/document.xml", "<w:d xmlns:w='/wordprocessingml'><w:p>", "</w:p></w:d>"),
    "odt": ("content.xml", "<d><p>", "</p></d>"),
    "pptx": ("ppt/slides/slide1.xml", "<d><p>", "</p></d>"),
    "epub": ("a.xhtml", "<p>", "</p>"),
}
RUNS = ("<r><t>a </t></r>", "<r><rPr b='%d'/><t>a</t></r>", "<span>a</span>", "a<tab/>")
PUMPED |= {kind: [(head, each, tail) for each in RUNS] for kind, (_, head, tail) in PARAGRAPHS.items()}

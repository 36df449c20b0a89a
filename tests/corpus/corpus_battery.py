"""Twenty kinds of files that real corpora bring, each with the outcome that docs/corpus-battery.md promises.

`battery()` runs them all through `limelight prepare` and says which kept their promise. A check is an assertion; a corpus is small, made
here, and its lines are counted here too, so that read = kept + dropped is compared with a number that Limelight did not compute.
"""

import gzip
import json
import random
import tempfile
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from made_sentences import Pair, apart, sentences
from prepare_command import FAST, Outcome, given_pieces, here, measured, outside, write_lines, write_pairs

from limelight.corpus.feeding.shards import PreparedCorpus

Place = tuple[str, int]
Check = Callable[[Path], None]

MEGABYTES = 512  # most memory that a 10 MB line or a bomb may cost
KINDS: dict[str, Check] = {}
PAIRS = sentences(40)


def kind(name: str) -> Callable[[Check], Check]:
    def enter(check: Check) -> Check:
        KINDS[name] = check
        return check

    return enter


def battery() -> list[tuple[str, bool]]:
    """Every kind, and whether it has its documented outcome."""
    return [(name, not failure(name)) for name in KINDS]


def failure(name: str) -> str:
    """What is wrong with one kind, or nothing."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            KINDS[name](Path(folder))
        except Exception as error:
            return f"{type(error).__name__}: {error}"
    return ""


# What a run left.


def prepared(folder: Path, *arguments: object, run: Callable[..., Outcome] = here) -> Outcome:
    return run("prepare", *arguments, "-o", folder / "out", "--json", given_pieces())


def counts(outcome: Outcome, lines: int) -> tuple[int, dict[str, int]]:
    """Kept, and dropped by reason, of a run that went well. The figures must add up to the lines that were written."""
    assert outcome.code == 0, outcome.err
    corpora = outcome.report["corpora"]
    for corpus in corpora:
        assert corpus["read"] == sum(corpus["kept"].values()) + sum(corpus["dropped"].values())
    assert sum(corpus["read"] for corpus in corpora) == lines
    dropped: Counter[str] = Counter()
    for corpus in corpora:
        dropped.update(corpus["dropped"])
    return sum(sum(corpus["kept"].values()) for corpus in corpora), dict(dropped)


def kept_texts(folder: Path) -> dict[Place, Pair]:
    """(name of the first file, line) -> texts, over all splits."""
    opened = PreparedCorpus.open(folder / "out")
    found: dict[Place, Pair] = {}
    for split in opened.manifest.splits:
        pairs = opened.split(split)
        for origin in map(pairs.provenance, range(pairs.rows)):
            found[Path(origin.paths[0]).name, origin.line] = (origin.source, origin.target)
    return found


def same_but_for(folder: Path, name: str, changed: dict[int, Pair | None]) -> None:
    """All of PAIRS are there, line by line, except those given: another text, or None where the pair is dropped."""
    expected = {(name, i + 1): changed.get(i, pair) for i, pair in enumerate(PAIRS)}
    assert kept_texts(folder) == {place: pair for place, pair in expected.items() if pair is not None}


def refused(outcome: Outcome, folder: Path, *words: str) -> None:
    """Exit 65, a message that says these words, no traceback, nothing on standard output, and nothing that training would take."""
    assert outcome.code == 65, (outcome.code, outcome.err)
    assert outcome.err.startswith("error: ") and "Traceback" not in outcome.err
    assert all(word in outcome.err for word in words), outcome.err
    assert outcome.out == ""
    left = [path.name for path in (folder / "out").rglob("*") if path.suffix in (".json", ".model", ".html")]
    assert not [name for name in left if name in ("manifest.json", "report.html") or name.endswith(".model")], left


def changed_lines(changes: dict[int, tuple[bytes, bytes]]) -> tuple[list[bytes], list[bytes]]:
    lines = [changes.get(i, (s.encode(), t.encode())) for i, (s, t) in enumerate(PAIRS)]
    return [source for source, _ in lines], [target for _, target in lines]


# The twenty.

BROKEN = {
    "a continuation byte alone": b"\x80",
    "an overlong slash": b"\xc0\xaf",
    "a surrogate": b"\xed\xa0\x80",
    "a sequence cut by the end of the line": b"\xe2\x82",
    "beyond U+10FFFF": b"\xf4\x90\x80\x80",
}


@kind("invalid UTF-8")
def invalid_utf8(folder: Path) -> None:
    """The five kinds, on either side in turn."""
    changes = {}
    for number, wrong in enumerate(BROKEN.values()):
        source, target = (text.encode() for text in PAIRS[5 * number])
        changes[5 * number] = (source + wrong, target) if number % 2 else (source, target + wrong)
    outcome = prepared(folder, *write_lines(*changed_lines(changes), folder), *FAST)
    assert counts(outcome, 40) == (35, {"broken_text": 5})
    same_but_for(folder, "train.en", dict.fromkeys(changes))


@kind("NUL")
def nul(folder: Path) -> None:
    changes = {i: (f"{PAIRS[i][0]}\0".encode(), PAIRS[i][1].encode()) for i in (0, 7)}
    outcome = prepared(folder, *write_lines(*changed_lines(changes), folder), *FAST)
    assert counts(outcome, 40) == (38, {"broken_text": 2})
    same_but_for(folder, "train.en", dict.fromkeys(changes))


@kind("byte order mark")
def byte_order_mark(folder: Path) -> None:
    """At the beginning of the files, and before a line in their middle, as files put together have it."""
    mark = b"\xef\xbb\xbf"
    changes = {i: (mark + PAIRS[i][0].encode(), mark + PAIRS[i][1].encode()) for i in (0, 9)}
    outcome = prepared(folder, *write_lines(*changed_lines(changes), folder), *FAST)
    assert counts(outcome, 40) == (40, {})
    same_but_for(folder, "train.en", {})


@kind("CRLF")
def crlf(folder: Path) -> None:
    lines = [[text.encode() + b"\r" for text in side] for side in zip(*PAIRS, strict=True)]
    outcome = prepared(folder, *write_lines(lines[0], lines[1], folder), *FAST)
    assert counts(outcome, 40) == (40, {})
    same_but_for(folder, "train.en", {})


@kind("lone CR")
def lone_cr(folder: Path) -> None:
    """In one side only: the count of lines must not change."""
    source, target = PAIRS[3]
    outcome = prepared(
        folder,
        *write_lines(*changed_lines({3: (source.replace(" ", "\r", 2).encode(), target.encode())}), folder),
        *FAST,
    )
    assert counts(outcome, 40) == (40, {})
    same_but_for(folder, "train.en", {})


@kind("missing last newline")
def missing_last_newline(folder: Path) -> None:
    paths = write_pairs(PAIRS, folder)
    paths[1].write_bytes(paths[1].read_bytes().removesuffix(b"\n"))
    assert counts(prepared(folder, *paths, *FAST), 40) == (40, {})
    same_but_for(folder, "train.en", {})


@kind("empty file")
def empty_file(folder: Path) -> None:
    """Alone there is nothing to train on; beside another corpus it has no pairs."""
    nothing = write_lines([], [], folder, "nothing")
    refused(prepared(folder, *nothing, *FAST, run=outside), folder, "nothing is left to train on", "--check-only")
    outcome = prepared(folder, *nothing, *write_pairs(PAIRS, folder), *FAST)
    assert counts(outcome, 40) == (40, {})
    assert [(corpus["name"], corpus["read"]) for corpus in outcome.report["corpora"]] == [("nothing", 0), ("train", 40)]


@kind("blank lines on one side")
def blank_lines(folder: Path) -> None:
    changes = {i: (b"", PAIRS[i][1].encode()) for i in (0, 4)} | {i: (PAIRS[i][0].encode(), b" \t ") for i in (8, 39)}
    outcome = prepared(folder, *write_lines(*changed_lines(changes), folder), *FAST)
    assert counts(outcome, 40) == (36, {"empty": 4})
    same_but_for(folder, "train.en", dict.fromkeys(changes))


@kind("line of 10 MB")
def long_line(folder: Path) -> None:
    changes = {6: (b"word " * 2_000_000, PAIRS[6][1].encode())}
    outcome = prepared(folder, *write_lines(*changed_lines(changes), folder), *FAST, run=measured)
    assert counts(outcome, 40) == (39, {"too_long": 1})
    assert outcome.megabytes <= MEGABYTES, outcome.megabytes
    same_but_for(folder, "train.en", {6: None})


@kind("bidirectional controls")
def bidirectional(folder: Path) -> None:
    """All nine embeddings, overrides and isolates."""
    controls = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
    source, target = PAIRS[2]
    changes = {2: (f"{controls}{source}".encode(), f"{target[:5]}{controls}{target[5:]}".encode())}
    outcome = prepared(folder, *write_lines(*changed_lines(changes), folder), *FAST)
    assert counts(outcome, 40) == (40, {})
    same_but_for(folder, "train.en", {})


@kind("zero-width characters")
def zero_width(folder: Path) -> None:
    """Spaces of no width and soft hyphens go; joiners mean something and stay."""
    source, target = PAIRS[2]
    joined = f"{source[:3]}\u200d{source[3:]}"
    changes = {
        1: ("\u200b\u2060".join(PAIRS[1][0]).encode(), "\u00ad".join(PAIRS[1][1]).encode()),
        2: (joined.encode(), target.encode()),
    }
    outcome = prepared(folder, *write_lines(*changed_lines(changes), folder), *FAST)
    assert counts(outcome, 40) == (40, {})
    same_but_for(folder, "train.en", {2: (joined, target)})


@kind("NFC and NFD mixed")
def mixed_forms(folder: Path) -> None:
    """Half of the German lines decomposed, and five pairs once more in the other form, which makes them duplicates."""
    texts = [(s, unicodedata.normalize("NFD", t) if i % 2 else t) for i, (s, t) in enumerate(PAIRS)]
    umlauts = [i for i, (_, t) in enumerate(PAIRS) if unicodedata.normalize("NFD", t) != t]
    again = [(PAIRS[i][0], PAIRS[i][1] if i % 2 else unicodedata.normalize("NFD", PAIRS[i][1])) for i in umlauts[:5]]
    assert len(umlauts) > 10 and all(pair not in texts for pair in again)
    outcome = prepared(folder, *write_pairs([*texts, *again], folder), *FAST)
    assert counts(outcome, 45) == (40, {"duplicate": 5})
    same_but_for(folder, "train.en", {})


@kind("TSV of three columns")
def three_columns(folder: Path) -> None:
    """The third is ignored; a line of one column is no pair."""
    lines = [f"{s}\t{t}\t0.{i}" for i, (s, t) in enumerate(PAIRS)]
    lines[11] = PAIRS[11][0]
    path = folder / "train.tsv"
    path.write_bytes("".join(f"{line}\n" for line in lines).encode())
    outcome = prepared(folder, path, "--source", "en", "--target", "de", *FAST)
    assert counts(outcome, 40) == (39, {"malformed": 1})
    same_but_for(folder, "train.tsv", {11: None})


@kind("different counts of lines")
def different_counts(folder: Path) -> None:
    source, target = changed_lines({})
    paths = write_lines(source, target[1:], folder)
    refused(prepared(folder, *paths, *FAST, run=outside), folder, "train.en", "train.de", "40", "39")
    assert not list((folder / "out").glob("shards/*"))


@kind("5 % of the pairs swapped")
def swapped(folder: Path) -> None:
    """At least 90 % of them are found, and of the others at most one in a thousand is."""
    pairs = sentences(1_000, seed=3)
    places = set(random.Random(4).sample(range(1_000), 50))
    written = [(t, s) if i in places else (s, t) for i, (s, t) in enumerate(pairs)]
    outcome = prepared(folder, *write_pairs(written, folder), "--workers", 0, "--keep-dropped")
    kept, dropped = counts(outcome, 1_000)
    assert kept == 1_000 - dropped["wrong_language"] and set(dropped) == {"wrong_language"}
    found = {line - 1 for _, line in dropped_places(folder, "wrong_language")}
    assert len(found & places) >= 45, len(found & places)
    assert len(found - places) <= 1, len(found - places)


@kind("30 % duplicates")
def duplicates(folder: Path) -> None:
    """Some with other spaces, which are the same pair once normalized. Every copy is counted, the first stays."""
    pairs = sentences(1_400, seed=5)
    copies = random.Random(6).choices(range(1_400), k=600)
    again = [(pairs[i][0].replace(" ", "  "), f" {pairs[i][1]}") if n % 3 == 0 else pairs[i] for n, i in enumerate(copies)]
    outcome = prepared(folder, *write_pairs([*pairs, *again], folder), *FAST)
    assert counts(outcome, 2_000) == (1_400, {"duplicate": 600})
    assert kept_texts(folder) == {("train.en", i + 1): pair for i, pair in enumerate(pairs)}


@kind("gzip and zstd cut short")
def cut_short(folder: Path) -> None:
    """At 50 places each, among them the first byte and the last: all refused. The first of each kind by the real command."""
    paths = write_pairs(sentences(300), folder)
    whole = paths[0].read_bytes()
    packed = {".gz": gzip.compress(whole), ".zst": pa.Codec("zstd").compress(whole, asbytes=True)}
    for suffix, content in packed.items():
        cut = paths[0].with_name(f"train.en{suffix}")
        cut.write_bytes(content)
        assert here("prepare", cut, paths[1], *FAST, "--check-only", "--json").code == 0
        places = {round(step * (len(content) - 1) / 49) for step in range(50)}
        assert len(places) == 50 and {0, len(content) - 1} <= places
        for number, place in enumerate(sorted(places)):
            cut.write_bytes(content[:place])
            run = outside if number == 25 else here
            refused(prepared(folder, cut, paths[1], *FAST, run=run), folder, str(cut), "cut short")


@kind("gzip bomb")
def gzip_bomb(folder: Path) -> None:
    """A line of 768 MB in less than 1 MB, between good ones: it is too long, and costs no memory."""
    source, target = changed_lines({7: (b"?", PAIRS[7][1].encode())})
    paths = write_lines(source, target, folder)
    before, after = (b"".join(line + b"\n" for line in lines) for lines in (source[:7], source[8:]))
    paths[0].unlink()
    packed = folder / "train.en.gz"
    packed.write_bytes(gzip.compress(before) + 12 * gzip.compress(b"a" * (64 << 20), 6) + gzip.compress(b"\n" + after))
    assert packed.stat().st_size < 1 << 20
    outcome = prepared(folder, packed, paths[1], *FAST, run=measured)
    assert counts(outcome, 40) == (39, {"too_long": 1})
    assert outcome.megabytes <= MEGABYTES, outcome.megabytes
    same_but_for(folder, "train.en.gz", {7: None})


ENTITIES = "".join(f'<!ENTITY e{i} "{f"&e{i - 1};" * 10 if i else "ha" * 10}">' for i in range(10))
ATTACKS = {
    "billion laughs": (f"<!DOCTYPE tmx [{ENTITIES}]>", "&e9;", "is refused"),
    "quadratic": (f'<!DOCTYPE tmx [<!ENTITY long "{"a" * 50_000}">]>', "&long;" * 1_000, "is refused"),
    "external entity": ('<!DOCTYPE tmx [<!ENTITY file SYSTEM "file:///etc/hostname">]>', "&file;", "is refused"),
    "DTD": ("<!DOCTYPE tmx [<!ELEMENT tmx ANY>]>", "", "a DTD inside the file is refused"),
    "an entity that is nowhere declared": ('<!DOCTYPE tmx SYSTEM "tmx14.dtd">', "&who;", "&who;"),
}


@kind("attacks by TMX")
def tmx_attacks(folder: Path) -> None:
    """Each is refused, with little memory. The plain DOCTYPE that every TMX has is none, and its DTD is not looked for."""
    path = folder / "memory.tmx"
    for number, (doctype, text, words) in enumerate(ATTACKS.values()):
        path.write_bytes(tmx(doctype, [(text or "a b", "c d"), *PAIRS]))
        outcome = prepared(folder, path, "--source", "en", "--target", "de", *FAST, run=here if number else measured)
        refused(outcome, folder, str(path), words)
        assert outcome.megabytes <= MEGABYTES
    path.write_bytes(tmx('<!DOCTYPE tmx SYSTEM "tmx14.dtd">', PAIRS))
    assert counts(prepared(folder, path, "--source", "en", "--target", "de", *FAST), 40) == (40, {})


def tmx(doctype: str, pairs: Sequence[Pair]) -> bytes:
    units = "".join(f'<tu><tuv xml:lang="en"><seg>{s}</seg></tuv><tuv xml:lang="de"><seg>{t}</seg></tuv></tu>\n' for s, t in pairs)
    return f'<?xml version="1.0"?>{doctype}<tmx version="1.4"><header/><body>{units}</body></tmx>'.encode()


@kind("100 leaks of the test set")
def leaks(folder: Path) -> None:
    held_out = sentences(300, seed=9)
    same, edited, false = leaks_found(folder, held_out, apart(2_000, held_out, seed=3))
    assert same == 50, same
    assert edited >= 48, edited
    assert false <= 2, false


def leaks_found(folder: Path, held_out: Sequence[Pair], clean: Sequence[Pair]) -> tuple[int, int, int]:
    """Of 50 exact and 50 edited copies of held-out pairs among the clean ones, how many were found; and how many clean ones were."""
    chance = random.Random(8)
    chosen = chance.sample(held_out, 100)
    planted = [
        tuple(disguised(text, number) if number < 50 else edit(text, number, chance) for text in pair) for number, pair in enumerate(chosen)
    ]
    rows: list[tuple[int, Any]] = [(-1, pair) for pair in clean] + list(enumerate(planted))
    chance.shuffle(rows)
    train = write_pairs([pair for _, pair in rows], folder)
    test = write_pairs(held_out, folder, "held")
    outcome = prepared(folder, *train, "--test", test[0], "--test", test[1], "--keep-dropped", "dedup.exact=false", *FAST)
    counts(outcome, len(rows) + len(held_out))
    found = [rows[line - 1][0] for _, line in dropped_places(folder, "leak")]
    same, edited = (sum(number in group for number in found) for group in (range(50), range(50, 100)))
    return same, edited, sum(number == -1 for number in found)


def disguised(text: str, number: int) -> str:
    """Other case, other punctuation, the same letters."""
    return (
        text.upper(),
        text.lower().rstrip("."),
        f"»{text.rstrip('.')}«!",
        text.replace(" ", ", ", 1) + "..",
        f"- {text.title()}",
    )[number % 5]


def edit(text: str, number: int, chance: random.Random) -> str:
    """A word changed, a word less, a word more, a typing error, two of them."""
    words = text.split(" ")
    place = chance.randrange(1, len(words) - 1)
    if number % 5 == 0:
        words[place] = "blue"
    elif number % 5 == 1:
        del words[place]
    elif number % 5 == 2:
        words.insert(place, "indeed")
    else:
        for _ in range(number % 5 - 2):
            longest = max(range(len(words)), key=lambda i: (len(words[i]), chance.random()))
            word = words[longest]
            words[longest] = word[:2] + word[3] + word[2] + word[4:]
    return " ".join(words)


def dropped_places(folder: Path, reason: str) -> list[Place]:
    rows = [
        json.loads(line) for path in sorted((folder / "out" / "dropped").glob("*.jsonl")) for line in path.read_bytes().split(b"\n") if line
    ]
    return [(row["file"], row["line"]) for row in rows if row["reason"] == reason]

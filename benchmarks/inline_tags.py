"""Where tags inside a sentence go, by a translator whose training text had none: a word of each caption is put between <b> and </b>.

    python benchmarks/inline_tags.py RUN captions.en [--count 1000]

Counted: how often the text without its tags is the translation of the text without tags, to the letter; and, of the words whose German is
known and occurs in that translation, how many are between the tags, and alone between them. English to German, captions.
"""

import argparse
import random
import re
import time
from pathlib import Path

from limelight.translator import Translator

GERMAN = {
    "man": "mann", "woman": "frau", "girl": "mädchen", "boy": "junge", "dog": "hund", "red": "rot", "blue": "blau", "white": "weiß",
    "black": "schwarz", "green": "grün", "yellow": "gelb", "street": "straße", "water": "wasser", "ball": "ball", "children": "kinder",
    "young": "jung", "sitting": "sitz", "beach": "strand", "snow": "schnee", "two": "zwei", "bench": "bank", "old": "alt",
    "shirt": "hemd|shirt", "stage": "bühne", "horse": "pferd", "camera": "kamera",
}  # fmt: skip
WORD = re.compile("[A-Za-z]+")


def mark_words(lines: list[str], count: int) -> list[tuple[str, str, str]]:
    """Sentence, sentence with tags around one of the words, that word."""
    draw, found = random.Random(1), list[tuple[str, str, str]]()
    for line in lines:
        known = [word for word in WORD.finditer(line) if word[0].lower() in GERMAN]
        if known and len(found) < count:
            word = draw.choice(known)
            found.append((line, f"{line[: word.start()]}<b>{word[0]}</b>{line[word.end() :]}", word[0].lower()))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("captions", type=Path)
    parser.add_argument("--count", type=int, default=1000)
    asked = parser.parse_args()
    marked = mark_words(asked.captions.read_bytes().decode().splitlines(), asked.count)
    with Translator.load(asked.run) as translator:
        began = time.monotonic()
        plain = translator.translate([sentence for sentence, _, _ in marked])
        between = time.monotonic()
        tagged = translator.translate([sentence for _, sentence, _ in marked])
        seconds = between - began, time.monotonic() - between
    same = known = inside = alone = kept = 0
    for (_, _, word), one, other in zip(marked, plain, tagged, strict=True):
        kept += other.protected
        same += re.sub("</?b>", "", other.text) == one.text
        if not any(re.search(GERMAN[word], each.lower()) for each in re.findall(r"\w+", one.text)):
            continue
        known += 1
        between_tags = re.search("<b>(.*?)</b>", other.text)
        hit = between_tags is not None and re.search(GERMAN[word], between_tags[1].lower()) is not None
        inside += hit
        alone += hit and between_tags is not None and len(between_tags[1].split()) == 1
    print(f"{len(marked)} sentences, both tags kept in {kept}; the words are those of the sentence without tags in {same}")
    print(f"{known} words whose translation is there: {inside} between the tags, {alone} alone between them")
    print(f"{seconds[0]:.1f} s without tags, {seconds[1]:.1f} s with")


if __name__ == "__main__":
    main()

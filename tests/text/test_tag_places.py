"""Tags go where the words are that they were around: every tag once, nested as before, whatever the attention says."""

import random

import numpy as np
import pytest

from limelight.text.careful.tag_places import TagPlace, build_elements, find_tag_places


def place(source: str, translation: str, links: str, loose: str = ".,()") -> str:
    """Words and tags are parted by blanks: <a and >a are a pair, |a stands alone. `links`: the source word of each word, by number."""
    names, tags, nested, letters, at = [], [], [], [], 0
    for word in source.split():
        if word[0] in "<>|":
            names.append(word)
            before = at > 0 and all_words(source)[sum(end <= at for _, end in letters) - 1] in loose
            after = at < sum(map(len, all_words(source))) and all_words(source)[len(letters)] in loose
            tags.append(TagPlace(len(names) - 1, at, before, after))
            if word[0] == ">":
                nested.append((names.index("<" + word[1:]), len(names) - 1))
        else:
            letters.append((at, at + len(word)))
            at += len(word)
    words = translation.split()
    came_from = np.full((len(words), len(letters)), 0.01)
    for row, number in enumerate(links.split()):
        if number != "-":
            came_from[row, int(number)] = 1
    made = [f" {word}" for word in words] + [""]
    for word, number in reversed(find_tag_places(build_elements(tags, nested), letters, came_from, [w not in loose for w in words])):
        made[word] = f" {names[number]}" + made[word]
    return "".join(made).strip()


def all_words(source: str) -> list[str]:
    return [word for word in source.split() if word[0] not in "<>|"]


@pytest.mark.parametrize(
    ("source", "translation", "links", "expected"),
    [
        ("A <b girl >b runs .", "Ein Mädchen läuft .", "0 1 2 3", "Ein <b Mädchen >b läuft ."),
        ("<a I >a have <b seen >b it", "ich habe es gesehen", "0 1 3 2", "<a ich >a habe es <b gesehen >b"),
        ("<a red >a <b house >b", "casa roja", "1 0", "<b casa >b <a roja >a"),
        ("<p two <i big >i dogs >p .", "deux chiens gros .", "0 2 1 3", "<p deux chiens <i gros >i >p ."),
        ("<p all of it . >p", "alles davon .", "0 1 3", "<p alles davon . >p"),
        ("one |br two", "eins zwei", "0 1", "eins |br zwei"),
        ("one two |br", "eins zwei", "0 1", "eins zwei |br"),
        ("|img one two", "zwei eins", "1 0", "|img zwei eins"),
        ("not <b taken >b up", "nicht auf genommen", "0 2 1", "nicht auf <b genommen >b"),
        ("( <b guitar >b )", "( Gitarre )", "0 1 2", "( <b Gitarre >b )"),
        ("( <b guitar >b )", "( Gitarre )", "1 1 1", "( <b Gitarre >b )"),
        ("a <b lost >b word", "ein Wort", "0 2", "ein <b Wort >b"),
        ("a <b >b word", "ein Wort", "0 1", "ein <b >b Wort"),
        ("<b x >b y", "nichts , .", "- - -", "<b nichts >b , ."),
    ],
)  # fmt: skip
def test_tags_go_where_their_words_went(source: str, translation: str, links: str, expected: str) -> None:
    assert place(source, translation, links) == expected


def test_every_tag_is_there_once_and_nested_as_before_whatever_the_attention_says() -> None:
    draw = random.Random(4)
    for _ in range(300):
        words, names, opened, source = draw.randint(1, 6), iter("abcdefghijklmnop"), list[str](), list[str]()
        for _ in range(words):
            for _ in range(draw.randint(0, 2)):
                kind = draw.choice("<>|")
                if kind == ">" and opened:
                    source.append(">" + opened.pop())
                elif kind == "<":
                    opened.append(next(names))
                    source.append("<" + opened[-1])
                elif kind == "|":
                    source.append("|" + next(names))
            source.append("x")
        source += [">" + name for name in reversed(opened)]
        count = draw.randint(0, 7)
        links = " ".join(draw.choice(["-", *map(str, range(words))]) for _ in range(count))
        made = place(" ".join(source), "y " * count, links).split()
        assert sorted(made) == sorted([each for each in source if each != "x"] + ["y"] * count)
        inside = list[str]()
        for each in made:
            if each[0] == "<":
                inside.append(each[1:])
            elif each[0] == ">":
                assert inside.pop() == each[1:]
        parents = {each: around(source, each) for each in source if each[0] in "<|"}
        assert {each: around(made, each) for each in parents} == parents


def around(words: list[str], tag: str) -> list[str]:
    """The tags that are open where this one stands."""
    opened = list[str]()
    for word in words[: words.index(tag)]:
        if word[0] == "<":
            opened.append(word[1:])
        elif word[0] == ">":
            opened.pop()
    return opened

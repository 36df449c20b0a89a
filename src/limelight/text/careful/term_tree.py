"""A `TermTree` finds many terms in one pass over the words of a text, however they begin, end and overlap.

Terms form a tree, one step a word. Where the text leaves a path, a link leads to the longest end of that path which begins another term
(Aho and Corasick 1975), so that no word is read twice; and what is longest is taken first, without comparing terms with each other.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import accumulate

from limelight.text.normalize import recompose

# A word, or one sign of a script that puts no spaces between words; any other sign stands for itself.
SPACELESS = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_TOKEN = rf"[{SPACELESS}]|[^\W{SPACELESS}]+|[^\w\s]"  # compiled by the first glossary


class _Node:
    """A place in the tree: the words that lead to it are a term, or the beginning of one."""

    __slots__ = ("after", "any_case", "depth", "shorter", "suffix", "terms")

    def __init__(self, depth: int) -> None:
        self.depth = depth  # words
        self.after: dict[str, _Node] = {}
        self.terms: dict[str, int] | None = None  # those that end here, by how they are spelt
        self.any_case: int | None = None  # the first of them that is not all capitals
        self.suffix = self.shorter = self  # the longest end of these words that is in the tree; that is a term

    def step(self, word: str) -> "_Node":
        """The longest end of these words and this one that is in the tree."""
        node = self
        while word not in node.after:
            if not node.depth:
                return node
            node = node.suffix
        return node.after[word]


class TermTree:
    """Terms are known by their numbers. A term in capitals is a name ("IT", "US") and found in capitals only."""

    def __init__(self, sources: Sequence[str]) -> None:
        self._root = _Node(0)
        for number, source in enumerate(sources):
            node, tokens = self._root, _tokens(source)
            for depth, token in enumerate(tokens, 1):
                node = node.after.setdefault(token.casefold(), _Node(depth))
            if node.terms is None:
                node.terms = {}
            node.terms.setdefault(" ".join(tokens), number)
            if node.any_case is None and not source.isupper():
                node.any_case = number
        self._link()

    def find(self, text: str) -> list[int]:
        """The terms in the order in which they stand there, each once. Of those that overlap the longest is taken, then the leftmost."""
        tokens = _tokens(text)
        by_length = defaultdict[int, list[_Ending]](list)
        for ending in self._endings(tokens):
            by_length[ending.longest].append(ending)
        taken, chosen = [-1] * len(tokens), dict[int, int]()  # where the term ends that a word is part of
        for length in range(max(by_length, default=0), 0, -1):
            for ending in sorted(by_length.pop(length, ()), key=lambda each: each.last):
                first, last = ending.last + 1 - length, ending.last
                if taken[last] >= 0:
                    continue
                # What was taken is at least as long as this: it cannot lie inside, and overlaps at one of the two ends.
                fits = ending.at_most(length if taken[first] < 0 else last - taken[first])
                if fits < length:
                    by_length[fits].append(ending)
                    continue
                taken[first : last + 1] = [last] * length
                chosen[first] = ending.term(tokens[first : last + 1])
        return list(dict.fromkeys(chosen[first] for first in sorted(chosen)))

    def _endings(self, tokens: Sequence[str]) -> Iterator["_Ending"]:
        small = [0, *accumulate(token != token.upper() for token in tokens)]
        node = self._root
        for last, token in enumerate(tokens):
            heads = [node.step(form) for form in _singulars(token.casefold())]
            node = heads[0]
            if (ending := _Ending(last, token, heads, small)).longest:
                yield ending

    def _link(self) -> None:
        """From the root down: a suffix is shorter than what it is a suffix of."""
        level = list(self._root.after.values())
        for node in level:
            node.suffix = node.shorter = self._root
        while level:
            for node in level:
                for word, child in node.after.items():
                    child.suffix = node.suffix.step(word)
                    child.shorter = child.suffix if child.suffix.terms is not None else child.suffix.shorter
            level = [child for node in level for child in node.after.values()]


class _Ending:
    """A word that terms end with. `heads`: where the tree is with it, and with what it may be the plural of; the longest term first."""

    __slots__ = ("_heads", "_names", "_small", "last", "longest")

    def __init__(self, last: int, token: str, heads: list[_Node], small: Sequence[int]) -> None:
        self.last, self._heads, self._small = last, heads, small
        # The plural of a name has a small s.
        self._names = [token == token.upper(), token[:-1] == token[:-1].upper() and token[-1:] == "s", False, False]
        self.longest = 0
        self.at_most(last + 1)

    def at_most(self, length: int) -> int:
        """How many words the longest term has that ends here and has no more than `length`."""
        self.longest = 0
        for form, head in enumerate(self._heads):
            node = head
            while node.depth and (node.depth > length or not self._is_term(node, form)):
                node = node.shorter
            self._heads[form] = node
            self.longest = max(self.longest, node.depth)
        return self.longest

    def term(self, tokens: Sequence[str]) -> int:
        """The number of the longest: as it is spelt, else the first that may be spelt otherwise."""
        terms, spelt = (node := max(self._heads, key=lambda node: node.depth)).terms, " ".join(tokens)
        assert terms is not None, "only terms are endings"
        first = next(iter(terms.values())) if node.any_case is None else node.any_case
        return terms.get(spelt, terms.get(spelt.removesuffix("s"), first))

    def _is_term(self, node: _Node, form: int) -> bool:
        if node.terms is None or node.any_case is not None:
            return node.terms is not None
        return self._names[form] and self._small[self.last] == self._small[self.last + 1 - node.depth]


def _tokens(text: str) -> list[str]:
    return re.findall(_TOKEN, recompose(text))


def _singulars(word: str) -> Iterator[str]:
    """The word itself, and what it may be the plural of."""
    yield word
    if len(word) > 3 and word.endswith("s"):
        yield word[:-1]
        if word.endswith("es"):
            yield word[:-2]
        if word.endswith("ies"):
            yield word[:-3] + "y"

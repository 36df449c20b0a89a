"""Language tags in files and file names (en, en-US, en_GB, EN, eng, eng_Latn) are recognized and compared.

closeness("en", "en-US") -> 1; closeness("de", "ger") -> 1
guess_languages("train.en.gz", "train.de.gz") -> ("en", "de")
"""

import functools
import re

from limelight.corpus.reading.streams import without_packing
from limelight.text.language_names import list_codes, usual_tag

# ISO 639-1. Without the list, the `tok` and `ref` of file names would pass for languages.
_TWO_LETTERS = re.compile(
    "aa|ab|ae|af|ak|am|an|ar|as|av|ay|az|ba|be|bg|bh|bi|bm|bn|bo|br|bs|ca|ce|ch|co|cr|"
    "cs|cu|cv|cy|da|de|dv|dz|ee|el|en|eo|es|et|eu|fa|ff|fi|fj|fo|fr|fy|ga|gd|gl|gn|gu|"
    "gv|ha|he|hi|ho|hr|ht|hu|hy|hz|ia|id|ie|ig|ii|ik|io|is|it|iu|ja|jv|ka|kg|ki|kj|kk|"
    "kl|km|kn|ko|kr|ks|ku|kv|kw|ky|la|lb|lg|li|ln|lo|lt|lu|lv|mg|mh|mi|mk|ml|mn|mr|ms|"
    "mt|my|na|nb|nd|ne|ng|nl|nn|no|nr|nv|ny|oc|oj|om|or|os|pa|pi|pl|ps|pt|qu|rm|rn|ro|"
    "ru|rw|sa|sc|sd|se|sg|sh|si|sk|sl|sm|sn|so|sq|sr|ss|st|su|sv|sw|ta|te|tg|th|ti|tk|"
    "tl|tn|to|tr|ts|tt|tw|ty|ug|uk|ur|uz|ve|vi|vo|wa|wo|xh|yi|yo|za|zh|zu"
)
_NO_LANGUAGES = re.compile("all|bpe|cln|dev|hyp|low|new|old|one|out|raw|ref|seg|spm|src|tgt|tok|trg|two|txt|xml")


@functools.lru_cache(maxsize=1_000)
def closeness(wanted: str, tag: str) -> int | None:
    """How well a tag serves the language wanted: 0 the same, 1 a kind of it or another code of it, 2 more general, None another."""
    if wanted.lower().replace("_", "-") == tag.lower().replace("_", "-"):
        return 0
    ours, theirs = (usual_tag(each).lower().replace("_", "-") for each in (wanted, tag))
    if ours == theirs:
        return 1
    if theirs.startswith(ours + "-"):
        return 1
    if theirs and ours.startswith(theirs + "-"):
        return 2
    return None


def guess_languages(source_path: str, target_path: str) -> tuple[str, str] | None:
    """From two names that differ in nothing but their language, or None."""
    for separators in (r"([./\\])", r"([./\\_\-])"):  # first whole, for en-US; then in pieces, for train_en.txt
        source, target = (re.split(separators, without_packing(path)) for path in (source_path, target_path))
        if len(source) != len(target):
            continue
        different = {(a, b) for a, b in zip(source, target, strict=True) if a != b}
        if len(different) == 1:
            (pair,) = different
            if is_language(pair[0]) and is_language(pair[1]):
                return pair
    return None


def is_language(text: str) -> bool:
    """en, eng, en-US, zh_Hant and eng_Latn are; src, txt and train are not."""
    code, *rest = re.split("[-_]", text)
    code = code.lower()
    if not all(re.fullmatch("[A-Za-z]{2,4}|[0-9]{3}", piece) for piece in rest) or len(rest) > 2:
        return False
    return bool(_TWO_LETTERS.fullmatch(code) or (re.fullmatch("[a-z]{3}", code) and not _NO_LANGUAGES.fullmatch(code)))


def name_without_language(address: str, language: str, other: str) -> list[str]:
    """What a name could be called apart from its language: one key for each place the language stands in, one for all.

    corpus.en-de.en -> corpus.*-de.en, corpus.en-de.*, corpus.*-de.*
    """
    codes = [language]
    if (names := list_codes(language))[0] != list_codes(other)[0]:
        codes += names
    alternatives = "|".join(re.escape(code).replace(r"\-", "[-_]").replace("_", "[-_]") for code in codes)
    # A region is upper case and a script has a capital, so that `en-de` is two languages and `en-DE` one.
    pattern = re.compile(rf"(?<![^\W_])(?i:{alternatives})(?:[-_](?:[A-Z]{{2}}|[A-Z][a-z]{{3}}))?(?![^\W_])")
    name = without_packing(address)
    places = [match.span() for match in pattern.finditer(name)]
    keys = [name[:start] + "*" + name[end:] for start, end in places]
    return [*keys, pattern.sub("*", name)] if len(keys) > 1 else keys

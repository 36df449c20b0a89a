"""Tables say which scripts a language is written in and how dense its writing is. The checks of text need both."""

import re
from typing import Final

Direction = tuple[str, str]  # from which language, and to which

# Scripts by their Unicode names; a language may have several. From CLDR's likely subtags, for the languages people translate.
_WRITTEN_IN: Final = {
    "Latin": "af ast az bs br ca ceb co crh cs cy da de en eo es et eu fi fil fo fr fy ga gd gl ha hr ht hu id ig is it jv kl la lb lt "
    "lv mg mi ms mt nb nl nn no nso ny oc om pl pt qu rm ro rw sc se sk sl sm sn so sq ss st su sv sw tk tl tn to tr ts "
    "uz ve vi wa wo xh yo za zu",
    "Cyrillic": "ab ba be bg ce cv kk ky mk mn mhr os ru sah tg tt udm uk",
    "Latin Cyrillic": "sr sh ku",
    "Arabic": "ar arb arz ary fa pes ps ur sd ug ckb",
    "Devanagari": "hi mr ne sa mai bho",
    "Hebrew": "he yi",
    "Greek": "el",
    "Han": "zh cmn yue",
    "Han Hiragana Katakana": "ja",
    "Hangul Han": "ko",
    "Thai": "th", "Lao": "lo", "Khmer": "km", "Myanmar": "my", "Tibetan": "bo dz", "Georgian": "ka", "Armenian": "hy", "Ethiopic": "am ti",
    "Bengali": "bn as", "Gujarati": "gu", "Gurmukhi": "pa", "Kannada": "kn", "Malayalam": "ml", "Oriya": "or",
    "Sinhala": "si", "Tamil": "ta", "Telugu": "te",
}  # fmt: skip
SCRIPTS: Final = {code: tuple(scripts.split()) for scripts, codes in _WRITTEN_IN.items() for code in codes.split()}

UNSPACED: Final = frozenset({"Han", "Thai", "Lao", "Khmer", "Myanmar", "Tibetan"})  # first scripts of languages
# Their letters, for `re`, Polars and Arrow alike: Thai to Tibetan, Myanmar, Khmer, kana, Han.
UNSPACED_LETTER: Final = "[\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
LETTERS_OF_A_WORD: Final = 2  # of Chinese and Japanese; the alphabets among them have twice as many

# ISO 15924, as codes name them: uz-Cyrl.
_NAMED: Final = {
    "Latn": "Latin", "Cyrl": "Cyrillic", "Arab": "Arabic", "Deva": "Devanagari", "Hebr": "Hebrew", "Grek": "Greek", "Hans": "Han",
    "Hant": "Han", "Hani": "Han", "Jpan": "Han Hiragana Katakana", "Kore": "Hangul Han", "Hang": "Hangul", "Thai": "Thai", "Laoo": "Lao",
    "Khmr": "Khmer", "Mymr": "Myanmar", "Tibt": "Tibetan", "Geor": "Georgian", "Armn": "Armenian", "Ethi": "Ethiopic", "Beng": "Bengali",
    "Gujr": "Gujarati", "Guru": "Gurmukhi", "Knda": "Kannada", "Mlym": "Malayalam", "Orya": "Oriya", "Sinh": "Sinhala", "Taml": "Tamil",
    "Telu": "Telugu",
}  # fmt: skip

# Characters that say what 100 characters of English say, where that is far from 100 (medians over FLORES-200).
_DENSITY: Final = {"zh": 33, "cmn": 33, "yue": 33, "ja": 43, "ko": 50, "he": 77, "ar": 88}


def lower_code(code: str) -> str:
    """lower_code("zh_Hant") -> "zh-hant": codes that differ in nothing else are the same."""
    return code.lower().replace("_", "-")


def base(code: str) -> str:
    """base("pt-BR") -> "pt"; base("zho_Hans") -> "zho": longer codes are other names; a private one (x-klingon) is all of it."""
    plain = lower_code(code)
    return plain if plain.startswith("x-") else plain.split("-")[0]


def scripts_of(code: str) -> tuple[str, ...]:
    """Empty when the language, or the script that the code names, is not in the tables: then nothing is said about its script."""
    named = re.search(r"[-_]([A-Za-z]{4})(?![A-Za-z0-9])", code)
    if named is None:
        return SCRIPTS.get(base(code), ())
    return tuple(_NAMED.get(named[1].title(), "").split())


def is_unspaced(code: str) -> bool:
    """Whether no blanks stand between the words of this language."""
    return bool(UNSPACED & {*scripts_of(code)[:1]})


def count_words(text: str) -> int:
    """count_words("a big cat") -> 3; count_words("一只大猫") -> 3: without blanks about every second letter begins a word."""
    return text.count(" ") + 1 + (0 if text.isascii() else len(re.findall(UNSPACED_LETTER, text)) // LETTERS_OF_A_WORD)


def density(code: str) -> float:
    """Characters this language needs for one character of English, roughly."""
    return _DENSITY.get(base(code), 100) / 100

"""Numbers below a million become English, German and French words, whose parts are the pieces of a tokenizer."""

import io
from collections.abc import Callable, Sequence
from typing import Final

from sentencepiece import SentencePieceTrainer

from limelight.text.pieces.tags import language_piece
from limelight.text.pieces.tokenizer import END, PAD, SPACE, START, UNKNOWN

LIMIT: Final = 1_000_000
_UNITS: Final = {  # 0, 1, 2 ... 19
    "en": "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
    "fifteen sixteen seventeen eighteen nineteen",
    "de": "null ein zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn "
    "fünfzehn sechzehn siebzehn achtzehn neunzehn",
    "fr": "zéro un deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize dix-sept dix-huit dix-neuf",
}
_TENS: Final = {  # 20, 30 ... 90
    "en": "twenty thirty forty fifty sixty seventy eighty ninety",
    "de": "zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig",
    "fr": "vingt trente quarante cinquante soixante",
}
_ENGLISH, _GERMAN = _UNITS["en"].split(" "), _UNITS["de"].split(" ")
_ENGLISH_TENS, _GERMAN_TENS = _TENS["en"].split(" "), _TENS["de"].split(" ")
_FRENCH, _FRENCH_TENS = _UNITS["fr"].split(" "), _TENS["fr"].split(" ")


def english(number: int) -> str:
    """english(72_345) -> "seventy-two thousand three hundred forty-five\""""
    if number < 20:
        return _ENGLISH[number]
    if number < 100:
        tens, units = divmod(number, 10)
        return _ENGLISH_TENS[tens - 2] + (f"-{_ENGLISH[units]}" if units else "")
    size, name = (1000, "thousand") if number >= 1000 else (100, "hundred")
    many, rest = divmod(number, size)
    return f"{english(many)} {name}" + (f" {english(rest)}" if rest else "")


def german(number: int) -> str:
    """german(72_345) -> "zweiundsiebzigtausenddreihundertfünfundvierzig"; one at the end is "eins": german(101) -> "einhunderteins\""""
    return (_stem(number) or _GERMAN[0]) + ("s" if number % 100 == 1 else "")


def _stem(number: int) -> str:
    """Return the word as it stands before another part; zero is silent."""
    if number < 20:
        return _GERMAN[number] if number else ""
    if number < 100:
        tens, units = divmod(number, 10)
        return (f"{_GERMAN[units]}und" if units else "") + _GERMAN_TENS[tens - 2]
    size, name = (1000, "tausend") if number >= 1000 else (100, "hundert")
    many, rest = divmod(number, size)
    return f"{_stem(many)}{name}{_stem(rest)}"


def french(number: int, last: bool = True) -> str:
    """french(280) -> "deux-cent-quatre-vingts", with hyphens throughout (spelling of 1990). Not `last`: more follows, and the s goes."""
    if number < 20:
        return _FRENCH[number]
    if number < 100:
        tens, units = divmod(number, 10)
        if tens < 7:
            return _FRENCH_TENS[tens - 2] + ("-et-un" if units == 1 else f"-{_FRENCH[units]}" if units else "")
        if tens == 7:
            return "soixante-" + ("et-onze" if units == 1 else _FRENCH[10 + units])
        return "quatre-vingt" + (f"-{_FRENCH[number - 80]}" if number > 80 else "s" if last else "")
    size, name = (1000, "mille") if number >= 1000 else (100, "cent")
    many, rest = divmod(number, size)
    counted = f"{french(many, last=False)}-{name}" if many > 1 else name
    plural = "s" if size == 100 and many > 1 and last and not rest else ""
    return f"{counted}{plural}" + (f"-{french(rest, last)}" if rest else "")


SAY: Final[dict[str, Callable[[int], str]]] = {"en": english, "de": german, "fr": french}


def pieces(targets: Sequence[str] = ("de",)) -> bytes:
    """A SentencePiece model whose pieces are the parts of the words: each has a meaning, so one sees what looks at what."""
    german_words = [*_GERMAN, "eins", *_GERMAN_TENS]
    first = [*_ENGLISH, *_ENGLISH_TENS, "hundred", "thousand", *german_words]
    within = [*_ENGLISH[1:10], "-", *german_words[1:], "und", "hundert", "tausend"]
    if "fr" in targets:
        french_words = [*_FRENCH[:17], *_FRENCH_TENS, "cent", "mille"]
        first, within = [*first, *french_words], [*within, *french_words, "et", "vingts", "cents"]
    whole = list(dict.fromkeys([f"{SPACE}{word}" for word in first] + within))
    tags = [language_piece(each) for each in targets] if len(targets) > 1 else []
    written = io.BytesIO()
    SentencePieceTrainer.train(
        sentence_iterator=(SAY[each](number) for number in range(1000) for each in ("en", *targets)),
        model_writer=written,
        model_type="bpe",
        user_defined_symbols=whole,
        control_symbols=tags,
        vocab_size=len(tags) + len(whole) + 4,
        hard_vocab_limit=False,
        character_coverage=1.0,
        normalization_rule_name="identity",
        add_dummy_prefix=True,
        remove_extra_whitespaces=False,
        pad_id=PAD,
        unk_id=UNKNOWN,
        bos_id=START,
        eos_id=END,
        num_threads=1,
        minloglevel=2,
    )
    return written.getvalue()

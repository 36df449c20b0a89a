"""Numbers below a million become English and German words, whose parts are the pieces of a tokenizer.

    english(21)  ->  "twenty-one"            german(21)  ->  "einundzwanzig"
    pieces()     cuts them as  ▁twenty - one  and  ▁ein und zwanzig

German says the units before the tens, so a translator must look back and forth. This is the text of `limelight demo`.
"""

import io
from typing import Final

from sentencepiece import SentencePieceTrainer

from limelight.text.pieces.tokenizer import END, PAD, SPACE, START, UNKNOWN

LIMIT: Final = 1_000_000
_UNITS: Final = {  # 0, 1, 2 ... 19
    "en": "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
    "fifteen sixteen seventeen eighteen nineteen",
    "de": "null ein zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn "
    "fünfzehn sechzehn siebzehn achtzehn neunzehn",
}
_TENS: Final = {  # 20, 30 ... 90
    "en": "twenty thirty forty fifty sixty seventy eighty ninety",
    "de": "zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig",
}
_ENGLISH, _GERMAN = _UNITS["en"].split(" "), _UNITS["de"].split(" ")
_ENGLISH_TENS, _GERMAN_TENS = _TENS["en"].split(" "), _TENS["de"].split(" ")


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


def pieces() -> bytes:
    """A SentencePiece model whose pieces are the parts of the words: each has a meaning, so one sees what looks at what.

    Learnt pieces would be those that occur most, such as "undzwan" and "zig".
    """
    german_words = [*_GERMAN, "eins", *_GERMAN_TENS]
    first = [*_ENGLISH, *_ENGLISH_TENS, "hundred", "thousand", *german_words]
    within = [*_ENGLISH[1:10], "-", *german_words[1:], "und", "hundert", "tausend"]
    whole = [f"{SPACE}{word}" for word in first] + within
    written = io.BytesIO()
    SentencePieceTrainer.train(
        sentence_iterator=(say(number) for number in range(1000) for say in (english, german)),
        model_writer=written,
        model_type="bpe",
        user_defined_symbols=whole,
        vocab_size=len(whole) + 4,
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

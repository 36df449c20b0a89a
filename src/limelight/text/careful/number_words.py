"""Number words, months and orders of magnitude are read as far as a comparison of two texts needs them.

Not a grammar: it says what a text may name, so that a number which stands in figures on the other side only is not called missing.
"""

import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import Final

from limelight.text.languages import base

# Stems of 0, 1, 2, ...; a word may go on after them.
_UNITS: Final = {
    "en": "zero one|first|once two|second|twice|both|couple|doubl|pair|half|twin three|third|triple|thrice four|quarter five|fif six seven "
    "eight nine|nin ten|decade eleven twelve|twelf|dozen thirteen fourteen fifteen sixteen seventeen eighteen nineteen",  # codespell:ignore
    "de": "null ein|erst zwei|zwo|beid|doppel|doppelt|halb|paar drei|dritt vier fünf sechs sieben|siebt acht neun zehn|jahrzehnt elf "
    "zwölf|dutzend dreizehn vierzehn fünfzehn sechzehn siebzehn achtzehn neunzehn",
    "fr": "zéro un|premi deux|second|doubl|demi trois|troisi|tiers quatre|quatri|quart cinq six sept huit neuf|neuvi dix|dizaine onze "
    "douze|douzaine treize quatorze quinze|quinzaine seize dix-sept dix-huit dix-neuf",
    "es": "cero un|primer dos|segund|ambos|ambas|doble|medi tres|tercer|triple cuatr|cuart cinc|quint seis|sext "  # codespell:ignore
    "siete|séptim och|octav nueve|noven diez|décim "
    "once doce|docena trece catorce quince dieciséis|dieciseis diecisiete dieciocho diecinueve",
    "it": "zero un|prim due|second|entramb|doppi|mezz tre|terz quattro|quart cinque|quint sei|sest "  # codespell:ignore
    "sette|settim otto|ottav nove|non dieci|decin|decim "
    "undici dodici|dozzin tredici quattordici quindici sedici diciassette diciotto diciannove",
    "nl": "nul een|één|eerst twee|tweed|beid|half drie|derd vier vijf zes zeven acht|achts negen tien elf twaalf dertien veertien vijftien "
    "zestien zeventien achttien negentien",
    "is": "núll ein|fyrst tv|tveir|önnur|annar þr|þriðj fjór fimm sex|sjött sjö átta|átt níu tíu ellefu tólf|tylft þrettán fjórtán fimmtán "
    "sextán sautján átján nítján",
}
_TENS: Final = {  # stems of 20, 30, ...
    "en": "twenty|twenti thirty|thirti forty|forti fifty|fifti sixty|sixti seventy|seventi eighty|eighti ninety|nineti",
    "de": "zwanzig dreißig|dreissig vierzig fünfzig sechzig siebzig achtzig neunzig",
    "fr": "vingt trent quarant cinquant soixant soixante-dix quatre-vingt quatre-vingt-dix",
    "es": "veint treint cuarent cincuent sesent setent ochent novent",
    "it": "vent trent quarant cinquant sessant settant ottant novant",
    "nl": "twintig dertig veertig vijftig zestig zeventig tachtig negentig",
    "is": "tuttugu þrjátíu fjörutíu fimmtíu sextíu sjötíu áttatíu níutíu",
}
_LARGE: Final = {  # stems of 100 and 1000
    "en": "hundred thousand|millen",
    "de": "hundert|jahrhundert tausend|jahrtausend",
    "fr": "cent|siècl mill",
    "es": "cien|siglo mil",
    "it": "cent mill",
    "nl": "honderd duizend",
    "is": "hundr|öld þúsund",
}

# Sino-Japanese numerals say their value in one sign each.
_HAN: Final = {
    sign: value for value, signs in enumerate(("〇零", "一", "二两両", "三", "四", "五", "六", "七", "八", "九", "十")) for sign in signs
}

_MONTHS: Final = (
    "jan|january|januar|jänner|janvier|enero|gennaio|januari|janúar|janeiro|января|январь",  # codespell:ignore
    "feb|february|februar|feber|février|febrero|febbraio|februari|febrúar|fevereiro|февраля|февраль",  # codespell:ignore
    "mar|march|märz|mrz|mars|marzo|maart|março|марта|март",
    "apr|april|avril|abril|aprile|апреля|апрель",
    "may|mai|mayo|maggio|mei|maí|maj|maio|мая|май",
    "jun|june|juni|juin|junio|giugno|júní|junho|июня|июнь",  # codespell:ignore
    "jul|july|juli|juillet|julio|luglio|júlí|julho|июля|июль",  # codespell:ignore
    "aug|august|août|agosto|augustus|augusti|ágúst|августа|август",
    "sep|sept|september|septembre|septiembre|settembre|setembro|сентября|сентябрь",
    "oct|okt|october|oktober|octobre|octubre|ottobre|október|outubro|октября|октябрь",  # codespell:ignore
    "nov|november|novembre|noviembre|nóvember|novembro|ноября|ноябрь",
    "dec|dez|december|dezember|décembre|diciembre|dicembre|desember|dezembro|декабря|декабрь",  # codespell:ignore
)  # fmt: skip
_MONTH_OF: Final = {name: at for at, names in enumerate(_MONTHS, 1) for name in names.split("|")}

# Powers of ten by the stem of a word that stands after a number. "Billion" is 12 but in English and Portuguese.
_MAGNITUDES: Final = (
    ("thousand tausend tsd tusen tusind duizend mille mila mil tys тыс þúsund k", 3),
    ("million millón millon milion miljon miljoen milhão milhões", 6),  # codespell:ignore
    ("milljón millj mio mln mn млн миллион m", 6),
    ("milliard miliard miljard milljarð mrd mld млрд миллиард bn", 9),
    ("billion billón billon bilhão bilhões bio", 12),  # codespell:ignore
    ("万 萬 만", 4),
    ("亿 億 억", 8),
)
_MAGNITUDE_OF: Final = {name: power for names, power in _MAGNITUDES for name in names.split(" ")}
_ENDING: Final = {True: r"\b", False: r"(?=[^\W\d_]{0,3}\b)"}  # Millionen, миллионов; but "12 men" are no million
MAGNITUDE: Final = re.compile(
    r"[\s-]?(?:" + "|".join(f"{name}{'' if name > 'ⱀ' else _ENDING[len(name) <= 3]}" for name in _MAGNITUDE_OF) + ")",
    re.IGNORECASE,
)
_ROMAN: Final = re.compile(r"\b(?=[IVXLC])(C{0,3})(XC|XL|L?X{0,3})(IX|IV|V?I{0,3})(?![a-zß-ÿ]{2})")
_ROMAN_VALUES: Final = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100}


def magnitude(match: re.Match[str], language: str) -> int:
    """Of what MAGNITUDE found, the power of ten: magnitude("million") -> 6."""
    power = _MAGNITUDE_OF[match.group().lstrip("-").strip().lower()]
    return 9 if power == 12 and base(language) in ("en", "pt") else power


def count_numbers(text: str, language: str) -> Counter[int]:
    """How often each number may be meant by a word, a Roman or a Chinese numeral of the text. Words only of languages that it `knows`."""
    found = Counter(_HAN[sign] for sign in text if sign in _HAN)
    found.update(_roman(match) for match in _ROMAN.finditer(text) if match.group())
    if knows(language):
        found.update(_find_values(text, base(language)))
    return found


def knows(language: str) -> bool:
    return base(language) in _UNITS


def months(text: str) -> Counter[int]:
    """Months that the text names with a capital or in full, by number."""
    words = (word for word in re.findall(r"[^\W\d_]+", text) if word[0].isupper() or len(word) > 3)
    return Counter(_MONTH_OF[word.lower()] for word in words if word.lower() in _MONTH_OF)


@cache
def _stems(code: str) -> dict[str, int]:
    units, tens, large = ([names.split("|") for names in table[code].split(" ")] for table in (_UNITS, _TENS, _LARGE))
    stems = {name: value for value, names in enumerate(units) for name in names}
    stems |= {name: 10 * value for value, names in enumerate(tens, 2) for name in names}
    stems |= {name: value for value, names in zip((100, 1000), large, strict=True) for name in names}
    for one, names in enumerate(units[:10]):
        stems |= {one_name + name: one * 100 for one_name in names for name in large[0]}
        for link, ten in ((link, ten) for link in ("und", "en") for ten in range(2, 10)):
            stems |= {one_name + link + name: 10 * ten + one for one_name in names for name in tens[ten - 2]}
    return stems


def _value(word: str, stems: dict[str, int]) -> int | None:
    return next((stems[word[:n]] for n in range(min(len(word), 20), 1, -1) if word[:n] in stems), None)


def _find_values(text: str, code: str) -> Iterator[int]:
    """Values of the number words, one by one and put together: "twenty-one" says 20, 1 and 21, "two hundred" 2, 100 and 200."""
    before = 0
    for word in re.findall(r"[^\W\d_]+", text.lower()):
        value = _value(word, _stems(code))
        if value is None:
            before = before if word in ("and", "et", "y", "e", "og") else 0
            continue
        yield value
        if 20 <= before < 100 and before % 10 == 0 and 0 < value < 10:
            value += before
            yield value
        elif value in (100, 1000) and 0 < before < value:
            value *= before
            yield value
        before = value


def _roman(match: re.Match[str]) -> int:
    values = [_ROMAN_VALUES[sign] for sign in match.group()]
    return sum(-value if any(value < other for other in values[at + 1 :]) else value for at, value in enumerate(values))

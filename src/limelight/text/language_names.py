"""Language codes are standardized and named by the registry of BCP 47, which has every one of ISO 639. langcodes carries it.

langcodes takes a third of a second to load, and is loaded for what the commonest languages do not need.
"""

import difflib
import re
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Final

from limelight.errors import ConfigError
from limelight.text.languages import SCRIPTS, base, lower_code

if TYPE_CHECKING:
    import langcodes

_OLD: Final = {"iw", "in", "ji", "jw", "mo"}  # withdrawn, and still in old files
MOST_TAGS: Final = 5_000  # that are remembered
LONGEST_TAG: Final = 35  # characters that a language tag may have to be understood everywhere (RFC 5646, 4.4.1)

# What people say where the registry's first name is another, and what a region or a script adds where they tell two languages apart by it.
_SAID: Final = {
    "el": "Greek", "ht": "Haitian Creole", "ky": "Kyrgyz", "mi": "Māori", "nso": "Northern Sotho", "or": "Odia", "os": "Ossetic",
    "pa": "Punjabi", "ps": "Pashto", "to": "Tongan", "ug": "Uyghur", "yue": "Cantonese",
    "de-at": "German (Austria)", "de-ch": "German (Switzerland)", "en-gb": "English (British)", "en-us": "English (American)",
    "es-419": "Spanish (Latin American)", "es-es": "Spanish (Spain)", "fr-ca": "French (Canada)",
    "pt-br": "Portuguese (Brazil)", "pt-pt": "Portuguese (Portugal)", "sr-cyrl": "Serbian (Cyrillic)", "sr-latn": "Serbian (Latin)",
    "zh-hans": "Chinese (simplified)", "zh-hant": "Chinese (traditional)", "zh-cn": "Chinese (simplified)",
    "zh-tw": "Chinese (traditional)",
}  # fmt: skip
# Languages of several, by the member that models mean: arb for ar, though Arabic has others.
_USUAL_MEMBER: Final = {
    "ar": "arb", "az": "azj", "fa": "pes", "ff": "fuv", "ku": "kmr", "lv": "lvs", "mg": "plt", "mn": "khk", "ms": "zsm", "ne": "npi",
    "no": "nob", "om": "gaz", "or": "ory", "ps": "pbt", "qu": "quy", "sq": "als", "sw": "swh", "tl": "tgl", "uz": "uzn", "yi": "ydd",
    "zh": "cmn",
}  # fmt: skip
_MEMBER_OF: Final = {member: short for short, member in _USUAL_MEMBER.items()}
_ASIDES: Final = ("macrolanguage)", "individual language)")


def name(code: str) -> str:
    """name("de") -> "German"; name("pt-BR") -> "Portuguese (Brazil)"; name("ace-Arab") -> "Achinese (Arabic)"; a code that nobody
    knows is its own name."""
    plain = lower_code(code)
    known = _SAID.get(plain)
    said = "" if base(code) == plain else re.split(r"-[a-z0-9]-", plain, maxsplit=1)[0]  # what follows a single letter is no script
    if known is None and (script := re.search(r"-([a-z]{4})\b", said)) and (usual := _standard(code)) is not None:
        if usual.lower() != plain:  # German is written in Latin, which nobody says
            return name(usual)
        written = _names("script").get(script[1].title(), script[1])
        known = _SAID.get(f"{base(code)}-{script[1]}") or f"{name(base(code))} ({written})"
    known = known or _SAID.get(base(code)) or _names().get(base(code))
    if known is None and (usual := _standard(code)) is not None and usual.lower() != plain:
        return name(usual)
    return known or code


def standard(code: str, where: str = "") -> str:
    """The usual way to write a code, or a ConfigError: de for ger, deu and DE, pt-BR for pt_br, zh-Hans for zho_Hans.

    Private ones (x-klingon, qaa to qtz) are as good as any. `where` was it written?
    """
    found = _standard(code)
    if found is None:
        raise ConfigError(f"{where}{' ' if where else ''}{code[:LONGEST_TAG]} is not a language code; {_hint(code)}")
    return found


@lru_cache(maxsize=1_000)
def usual_tag(tag: str) -> str:
    """The usual way to write a tag that stands in a file; what is no tag stays as it is."""
    return _standard(tag) or tag


def stated_tag(code: str) -> str:
    """What a document states: stated_tag("arb_Arab") -> "ar"; stated_tag("zho_Hans") -> "zh-Hans"; stated_tag("pt_BR") -> "pt-BR"."""
    tag = usual_tag(code)
    short = _MEMBER_OF.get(base(tag))
    return tag if short is None else usual_tag(short + tag[len(base(tag)) :])


def short_code(code: str) -> str:
    """The language alone, as most people write it: short_code("deu_Latn") -> "de"; short_code("arb_Arab") -> "ar"."""
    short = base(usual_tag(code))
    return _MEMBER_OF.get(short, short)


def list_codes(code: str) -> tuple[str, ...]:
    """All that names of files may call a language: list_codes("de") -> ("de", "deu", "ger")."""
    import langcodes

    longer: tuple[str, ...] = ()
    try:
        language = langcodes.Language.get(base(code), normalize=False)
        longer = (language.to_alpha3(variant="T"), language.to_alpha3(variant="B"))
    except (LookupError, ValueError):
        pass
    return tuple(dict.fromkeys((base(code), *longer)))


def is_two_letters(code: str) -> bool:
    return bool(re.fullmatch("[a-z]{2}", code)) and code not in _OLD and _is_valid(code)


def same(one: str, other: str) -> bool:
    """Do two codes name one language, whatever its region: pt-BR and por_Latn, ar and arb, no and nb?"""
    return not _all_codes(base(one)).isdisjoint(_all_codes(base(other)))


def are_written_alike(one: str, other: str) -> bool:
    """Do two tags name one language, in one script, and no two regions or variants? zh-CN and zh-Hans do, pt-BR and pt-PT do not."""
    if not same(one, other):
        return False
    found = [tag for tag in map(_read_tag, (one, other)) if tag is not None and tag.is_valid()]
    regions, kinds = {tag.territory for tag in found} - {None}, {(*(tag.variants or ()), tag.private) for tag in found}
    return len(found) == 2 and len(regions) < 2 and len(kinds) == 1 and len({tag.maximize().script for tag in found}) == 1


@lru_cache(maxsize=1_000)
def _all_codes(code: str) -> frozenset[str]:
    """All that models call a language: _all_codes("de") == _all_codes("deu") == {"de", "deu", "ger"}."""
    if not re.fullmatch("[a-z]{2,3}", code):  # strangers write it: langcodes would remember each
        return frozenset({code})
    short = _MEMBER_OF.get(code) or usual_tag(code)
    short = short if len(short) == 2 else code
    return frozenset({code, _USUAL_MEMBER.get(short, code), *list_codes(short)})


def _is_valid(code: str) -> bool:
    if code in SCRIPTS:
        return True
    import langcodes

    return bool(langcodes.Language.get(code).is_valid())


def _standard(code: str) -> str | None:
    if len(code) == 2 and code in SCRIPTS:
        return code
    language = _read_tag(code)
    return language.simplify_script().to_tag() if language is not None and language.is_valid() else None


def _read_tag(code: str) -> "langcodes.Language | None":
    """None: no tag, or one that is too long."""
    import langcodes

    tag = code.strip().replace("_", "-")
    if not re.fullmatch("[A-Za-z0-9-]+", tag) or len(tag) > LONGEST_TAG:
        return None
    for name in ("_INSTANCES", "_PARSE_CACHE"):  # where langcodes keeps every tag that it was ever asked for, as strangers write them
        if len(kept := getattr(langcodes.Language, name, {})) > MOST_TAGS:
            kept.clear()
    try:
        language = langcodes.Language.get(tag, normalize=False)
        if language.language in _OLD or not language.is_valid():
            language = langcodes.Language.get(langcodes.standardize_tag(tag), normalize=False)
    except ValueError:
        return None
    return language


def _hint(code: str) -> str:
    """What was probably meant: a language by its name, that of a country, or a code that is nearly the same."""
    import langcodes

    wanted = code.strip().lower()
    called = [each for each, title in _names().items() if title.lower() == wanted]
    country = langcodes.Language.get(f"und-{wanted}").maximize() if re.fullmatch("[a-z]{2}", wanted) else None
    if country is not None and country.is_valid() and country.language:
        called.append(country.language)
    near = called or difflib.get_close_matches(wanted, list(SCRIPTS), n=3, cutoff=0.5)
    meant = " or ".join(f"{each} ({name(each)})" for each in dict.fromkeys(near[:3]))
    own = "a language that has no code is written x-NAME"
    return f"did you mean {meant}? {own[0].upper()}{own[1:]}" if meant else f"give one such as en or pt-BR; {own}"


@cache
def _names(kind: str = "language") -> dict[str, str]:
    """The first name of each language or script, without what only tells it from its relatives: "Swahili (macrolanguage)"."""
    from langcodes.registry_parser import parse_registry

    registry = parse_registry()  # type: ignore[no-untyped-call]
    entries = (entry for entry in registry if entry.get("Type") == kind and ".." not in entry["Subtag"])
    return {entry["Subtag"]: _without_aside(entry["Description"][0]) for entry in entries}


def _without_aside(description: str) -> str:
    """_without_aside("Modern Greek (1453-)") -> "Modern Greek": kinds and years are not part of a name, places are."""
    name, _, aside = description.partition(" (")
    is_aside = aside in _ASIDES or aside.startswith("International ") or re.search(r"[0-9]{3}", aside)
    return name if is_aside else description

"""Codes of languages are mapped between the two public dialects and the server's own.

LibreTranslate   de   pb and pt-br   zh and zh-hans   zt and zh-hant       in any case
DeepL            DE   EN-US EN-GB    PT-BR PT-PT      ZH-HANS ZH-HANT      targets have regions where people tell them apart

Published models may say deu_Latn: everybody else calls that de, so we do here.
"""

from collections.abc import Sequence

from limelight.serving.queue.models import Models, ServedModel
from limelight.text.language_names import LONGEST_TAG, name, same, usual_tag
from limelight.text.languages import SCRIPTS, base

_ALIASES = {"pb": "pt-br", "zt": "zh-hant"}
_TRADITIONAL = ("-hant", "-tw", "-hk", "-mo")
# Targets without a region are listed with those that DeepL has: its clients refuse plain EN and PT as targets.
_REGIONS = {"en": ("EN-US", "EN-GB"), "pt": ("PT-BR", "PT-PT"), "zh": ("ZH", "ZH-HANS")}


class ServedLanguages:
    """`ServedLanguages` knows what a server translates from and into.

    Of a server with en-de:  find("EN-gb") -> "en";  targets_of("en") -> ["de"];  find_model("en", "de") -> the translator
    """

    def __init__(self, models: Models) -> None:
        self._served: dict[tuple[str, str], ServedModel] = {}
        for each in models.all:
            self._served.setdefault((shorten_code(each.source), shorten_code(each.target)), each)
        self.sources = tuple(dict.fromkeys(source for source, _ in self._served))
        self.targets = tuple(dict.fromkeys(target for _, target in self._served))
        self.all = tuple(dict.fromkeys((*self.sources, *self.targets)))

    def find(self, asked: str) -> str | None:
        """The language that is meant, or None. A region that we do not have is no reason to refuse; another script is."""
        if len(asked) > LONGEST_TAG:
            return None
        wanted = _plain(_ALIASES.get(asked.lower(), asked))
        exact = (code for code in self.all if _plain(code) == wanted)
        alike = (code for code in self.all if is_traditional(code) == is_traditional(wanted) and same(code, wanted))
        return next(exact, None) or next(alike, None)

    def targets_of(self, source: str) -> list[str]:
        return [target for begin, target in self._served if begin == source]

    def sources_of(self, target: str) -> list[str]:
        return [source for source, end in self._served if end == target]

    def find_model(self, source: str, target: str) -> ServedModel | None:
        return self._served.get((source, target))

    def deepl_sources(self) -> dict[str, str]:
        """Codes and names. Sources have no regions."""
        return {deepl(code): name(base(code)) for code in self.sources}

    def deepl_targets(self) -> dict[str, str]:
        return {code: name(code) for target in self.targets for code in _deepl_targets(target)}


def deepl(code: str) -> str:
    """deepl("en-GB") -> "EN": the language of a text."""
    return base(code).upper()


def shorten_code(code: str) -> str:
    """shorten_code("deu_Latn") -> "de"; what has two letters stays as it is, with its region."""
    first = base(code)
    if len(first) == 2:
        return code
    # Its own short code, or that of the language whose usual form it is: arb is ar.
    short = next((two for two in (usual_tag(first), *SCRIPTS) if len(two) == 2 and same(two, first)), None)
    if short is None:
        return code
    return f"{short}-Hant" if is_traditional(code) else short


def is_traditional(code: str) -> bool:
    """Chinese in its traditional script, which is not what somebody wants who asks for the simplified one."""
    return _plain(code).endswith(_TRADITIONAL)


def _plain(code: str) -> str:
    return code.lower().replace("_", "-")


def _deepl_targets(code: str) -> Sequence[str]:
    return ("ZH-HANT",) if is_traditional(code) else _REGIONS.get(_plain(code), (_plain(code).upper(),))

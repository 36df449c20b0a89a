"""Codes of languages are mapped between the two public dialects and the server's own.

LibreTranslate   de   pb and pt-br   zh and zh-hans   zt and zh-hant       in any case
DeepL            DE   EN-US EN-GB    PT-BR PT-PT      ZH-HANS ZH-HANT      targets have regions where people tell them apart

Published models may say deu_Latn: everybody else calls that de, so we do here.
"""

from collections.abc import Collection, Sequence

from limelight.serving.queue.models import Models
from limelight.serving.queue.served_model import ServedModel
from limelight.text.language_names import LONGEST_TAG, name, same, usual_tag
from limelight.text.languages import SCRIPTS, Direction, base, lower_code

_ALIASES = {"pb": "pt-br", "zt": "zh-hant"}
_TRADITIONAL = ("-hant", "-tw", "-hk", "-mo")
# Targets without a region are listed with those that DeepL has: its clients refuse plain EN and PT as targets.
_REGIONS = {"en": ("EN-US", "EN-GB"), "pt": ("PT-BR", "PT-PT"), "zh": ("ZH", "ZH-HANS")}


class ServedLanguages:
    """`ServedLanguages` knows what a server translates from and into.

    Of a server with en-de:  find("EN-gb") -> "en";  targets_of("en") -> ["de"];  find_model("en", "de") -> the translator
    """

    def __init__(self, models: Models) -> None:
        self._models = models  # which change when one of them has learnt: what is kept are names
        self._served: dict[tuple[str, str], tuple[str, Direction]] = {}
        self._targets: dict[str, list[str]] = {}
        self._sources: dict[str, list[str]] = {}
        for each in models.all:
            short = {code: shorten_code(code) for code in (*each.targets, *each.sources)}
            for direction in each.directions:
                source, target = short[direction[0]], short[direction[1]]
                if (source, target) not in self._served:
                    self._served[source, target] = each.id, direction
                    self._targets.setdefault(source, []).append(target)
                    self._sources.setdefault(target, []).append(source)
        self.sources, self.targets = tuple(self._targets), tuple(self._sources)
        self.all = tuple(dict.fromkeys((*self.sources, *self.targets)))

    def find(self, asked: str) -> str | None:
        """The language that is meant, or None. A region that we do not have is no reason to refuse; another script is."""
        if len(asked) > LONGEST_TAG:
            return None
        wanted = lower_code(_ALIASES.get(asked.lower(), asked))
        exact = (code for code in self.all if lower_code(code) == wanted)
        alike = (code for code in self.all if is_traditional(code) == is_traditional(wanted) and same(code, wanted))
        return next(exact, None) or next(alike, None)

    def targets_of(self, source: str) -> list[str]:
        return self._targets.get(source, [])

    def sources_of(self, target: str) -> list[str]:
        return self._sources.get(target, [])

    def find_model(self, source: str, target: str) -> ServedModel | None:
        if (source, target) not in self._served:
            return None
        name, direction = self._served[source, target]
        return self._models.by_id(name).turn(direction)

    def knows_tags(self, source: str | None, target: str, tags: Collection[str]) -> bool:
        """Whether a translation into this language can be told these tags; None: from whichever language."""
        known = self.sources_of(target)
        bundles = {self._served[each, target][0] for each in ([source] if source in known else known)}
        return all(set(tags) <= set(self._models.by_id(each).tags) for each in bundles)

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
    return lower_code(code).endswith(_TRADITIONAL)


def _deepl_targets(code: str) -> Sequence[str]:
    return ("ZH-HANT",) if is_traditional(code) else _REGIONS.get(lower_code(code), (lower_code(code).upper(),))

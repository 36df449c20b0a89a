"""A DeepL-compatible request is parsed: each parameter is done, known to change nothing, or refused.

done        text target_lang source_lang split_sentences tag_handling and its lists of tags, show_billed_characters, glossary_id;
            formality, where a model has the tags formal and informal
no change   preserve_formatting: formatting is never repaired here; context, model_type and the like: there is one model, of one kind
refused     formality of other models, unless it is only preferred; several glossaries, styles, instructions: a translation that leaves
            them out is not the one that was asked for
"""

import re
from dataclasses import dataclass

from limelight.serving.compat.language_codes import ServedLanguages
from limelight.serving.compat.request_parameters import Parameters
from limelight.serving.compat.translate import CompatOptions
from limelight.serving.queue.markup import HtmlMarkup, Markup, XmlMarkup
from limelight.serving.queue.served_model import ServedModel
from limelight.serving.refusals import BadRequest, TooLarge
from limelight.serving.settings import Limits

TAGS = ("ignore_tags", "splitting_tags", "non_splitting_tags")
REFUSED = ("glossary_ids", "style_id", "translation_memory_id", "custom_instructions")
SPLITS = ("0", "1", "nonewlines")
FORMAL, INFORMAL = "formal", "informal"  # tags
FORMALITIES = {"default": None, "more": FORMAL, "less": INFORMAL, "prefer_more": FORMAL, "prefer_less": INFORMAL}
_BLANKS = re.compile(r"\s+")


@dataclass(frozen=True)
class DeepLRequest:
    texts: list[str]
    source: str | None  # None: to be detected
    target: str
    split: str
    markup: Markup | None
    billed: bool
    model_type: bool
    formality: str | None = None  # a tag, for models that have it
    bare: bool = False  # one text in JSON, and no list of them: as clients of DeepLX send it, who look for the answer in `data`

    @property
    def wish(self) -> CompatOptions:
        return CompatOptions(markup=self.markup, segment=self.split != "0")

    def join_lines(self) -> list[str]:
        """A sentence that goes on in the next line is one sentence, if that is wished."""
        if self.split != "nonewlines":
            return self.texts
        return [_BLANKS.sub(_in_one_line, text.strip()) if text.strip() else text for text in self.texts]


def _in_one_line(blanks: re.Match[str]) -> str:
    return " " if "\n" in blanks[0] or "\r" in blanks[0] else blanks[0]


def parse_deepl_request(parameters: Parameters, known: ServedLanguages, limits: Limits) -> DeepLRequest:
    texts = _texts(parameters, limits)
    target = target_of(parameters, known)
    source = source_of(parameters, known, target)
    refuse_unknown_options(parameters)
    formality = formality_of(parameters, known, source, target)
    parameters.flag("preserve_formatting")
    return DeepLRequest(
        texts=texts,
        source=source,
        target=target,
        split=_split(parameters),
        markup=_markup(parameters, (source or target, target), limits),
        billed=parameters.flag("show_billed_characters"),
        model_type=parameters.one("model_type") is not None,
        formality=formality,
        bare=isinstance(parameters.one("text"), str) and parameters.typed,
    )


def target_of(parameters: Parameters, known: ServedLanguages) -> str:
    asked = parameters.text("target_lang")
    found = known.find(asked) if asked else None
    if found is None or found not in known.targets:
        raise BadRequest("Value for 'target_lang' not supported.")
    return found


def source_of(parameters: Parameters, known: ServedLanguages, target: str) -> str | None:
    """Return None if the request does not say. The target itself is no source: nothing would have to be done."""
    asked = parameters.text("source_lang")
    if not asked or asked.lower() == "auto":
        return None
    found = known.find(asked)
    if found is None or (known.find_model(found, target) is None and found != target):
        raise BadRequest("Value for 'source_lang' not supported.")
    return found


def refuse_unknown_options(parameters: Parameters) -> None:
    for name in REFUSED:
        if parameters.one(name) not in (None, "", []):
            raise BadRequest(f"Parameter '{name}' is not supported by this server.")


def formality_of(parameters: Parameters, known: ServedLanguages, source: str | None, target: str) -> str | None:
    """The tag that is meant; what is only preferred is no reason to refuse."""
    asked = parameters.text("formality") or "default"
    if asked not in FORMALITIES:
        raise BadRequest("Value for 'formality' not supported.")
    tag = FORMALITIES[asked]
    if tag is not None and not asked.startswith("prefer") and not known.knows_tags(source, target, [tag]):
        named = (parameters.text("target_lang") or "")[:20].upper()
        raise BadRequest(f"Target language '{named}' doesn't support formality.")
    return tag


def tell(served: ServedModel | None, tag: str | None) -> ServedModel | None:
    """The same model, told this tag if it knows it."""
    return served if served is None or tag not in served.tags else served.turn(served.direction, [tag])


def _texts(parameters: Parameters, limits: Limits) -> list[str]:
    texts = parameters.texts("text")
    if not texts:
        raise BadRequest("Parameter 'text' not specified")
    if len(texts) > limits.texts:
        raise TooLarge(f"There are {len(texts)} texts; at most {limits.texts} are translated at once.")
    longest = max(map(len, texts))
    if longest > limits.characters:
        raise TooLarge(f"A text has {longest} characters; at most {limits.characters} are translated at once.")
    return texts


def _split(parameters: Parameters) -> str:
    """Sentences apart, or each text as one; a JSON client may say it with a number or a boolean."""
    given = parameters.one("split_sentences")
    word = "1" if given is None else str(int(given)) if isinstance(given, int) else str(given)
    if word not in SPLITS:
        raise BadRequest("Value for 'split_sentences' not supported.")
    return word


def _markup(parameters: Parameters, languages: tuple[str, str], limits: Limits) -> Markup | None:
    kind = parameters.text("tag_handling")
    tags = {name: _tags(parameters, name, limits.characters) for name in TAGS}
    outline = parameters.flag("outline_detection", default=True)
    if kind == "xml":
        return XmlMarkup(tags["ignore_tags"], tags["splitting_tags"], tags["non_splitting_tags"], outline)
    for name, given in (*tags.items(), ("outline_detection", not outline)):
        if given:
            raise BadRequest(f"Parameter '{name}' needs 'tag_handling' to be xml.")
    if kind not in (None, "", "html"):
        raise BadRequest("Value for 'tag_handling' not supported.")
    return HtmlMarkup(languages) if kind else None


def _tags(parameters: Parameters, name: str, most: int) -> frozenset[str]:
    """A list, or names with commas between them; together no longer than a text."""
    given = parameters.texts(name)
    if sum(len(each) + 1 for each in given) > most + 1:
        raise BadRequest(f"Parameter '{name}' is too long: at most {most} characters.")
    return frozenset(tag.strip() for each in given for tag in each.split(",") if tag.strip())

"""Search settings are read from generation_config.json (in old folders, config.json) and written to it.

The lengths differ by one, since theirs count the start. Theirs divide by n^penalty, which here is length_norm="power".
"""

from collections.abc import Mapping
from typing import Any

from limelight.decoding.config import SearchSettings
from limelight.errors import ConfigError
from limelight.model.config import ModelConfig

KNOWN: dict[str, Any] = {  # what each is when it is left out
    "num_beams": 1,
    "length_penalty": 1.0,
    "min_length": 0,
    "max_length": None,
    "no_repeat_ngram_size": 0,
    "bad_words_ids": None,
    "suppress_tokens": None,
}
NO_EFFECT = {  # what cannot be said here, with the value that asks for nothing
    "do_sample": False,
    "temperature": 1.0,
    "repetition_penalty": 1.0,
    "encoder_no_repeat_ngram_size": 0,
    "num_beam_groups": 1,
    "diversity_penalty": 0.0,
    "exponential_decay_length_penalty": None,
    "begin_suppress_tokens": None,
    "sequence_bias": None,
    "force_words_ids": None,
}
USUAL_BEAM = 4  # of SearchSettings, where the model names none: theirs would be greedy


def read_search(config: Mapping[str, Any], generation: Mapping[str, Any], model: ModelConfig) -> tuple[SearchSettings, list[str]]:
    """The settings, and what they cannot say."""
    asked = {**config, **generation}
    given = {name: usual if asked.get(name) is None else asked[name] for name, usual in KNOWN.items()}
    notices = [
        f"{name}={str(asked[name])[:99]} is not used; ask for it in a translation, where Limelight has it"
        for name, usual in NO_EFFECT.items()
        if asked.get(name) is not None and asked[name] != usual
    ]
    suppress, phrases = _read_suppressed(given, model)
    if phrases:
        notices.append("bad_words_ids of several pieces are not used; only single pieces can be suppressed")
    values: dict[str, Any] = {
        "beam": USUAL_BEAM if given["num_beams"] == 1 else given["num_beams"],
        "length_norm": "power",
        "length_penalty": given["length_penalty"],
        "suppress": suppress,
        "no_repeat_ngram": given["no_repeat_ngram_size"] or None,
    }
    if given["num_beams"] == 1:
        notices.append(f"the model names no beam; {USUAL_BEAM} is used, where transformers takes the most probable piece each time")
    try:
        least = max(0, int(given["min_length"]) - 1)
        most = min(256 if given["max_length"] is None else int(given["max_length"]) - 1, model.max_length - 1)
        return SearchSettings(**values, min_length=least, max_length=max(least + 1, most, 1)), notices
    except (ConfigError, TypeError, ValueError) as error:
        problems = error.problems if isinstance(error, ConfigError) else [str(error)]
        usual = SearchSettings(max_length=min(256, model.max_length - 1), suppress=suppress)
        return usual, notices + [f"the search of the model is not used, {problem[:300]}" for problem in problems]


def _read_suppressed(given: Mapping[str, Any], model: ModelConfig) -> tuple[tuple[int, ...], bool]:
    words = given["bad_words_ids"] if isinstance(given["bad_words_ids"], list) else []
    singles = [word[0] for word in words if isinstance(word, list) and len(word) == 1]
    more = given["suppress_tokens"] if isinstance(given["suppress_tokens"], list) else []
    ids = {i for i in [*singles, *more] if type(i) is int and 0 <= i < model.vocab_size}
    return tuple(sorted(ids - {model.end_token})), len(singles) < len(words)


def write_search(search: SearchSettings, model: ModelConfig, never: tuple[int, ...]) -> tuple[dict[str, Any], list[str]]:
    """The keys of generation_config.json, and what they cannot say. `never`: ids that no translation has."""
    notices = []
    penalty = search.length_penalty
    if search.length_norm == "gnmt" and penalty:
        # ((5 + n) / 6)^a grows as n^(a n / (5 + n)): with 20 pieces, which is a usual sentence, as n^(0.8 a).
        penalty = round(0.8 * penalty, 3)
        notices.append(
            f"the length penalty ((5 + n) / 6)^{search.length_penalty} is not among theirs; "
            f"n^{penalty}, its like for 20 pieces, stands in its place"
        )
    beyond = {name: getattr(search, name) for name in ("coverage_penalty", "sampling", "mbr_samples")}
    beyond["groups"] = search.groups > 1
    notices += [f"search.{name} is not among theirs and is left out" for name, value in beyond.items() if value]
    suppress = sorted({*never, *search.suppress} - {model.end_token})
    return {
        "num_beams": search.beam,
        "length_penalty": penalty,
        "early_stopping": True,
        "max_length": min(search.max_length, model.max_length - 1) + 1,
        **({"min_length": search.min_length + 1} if search.min_length else {}),
        **({"no_repeat_ngram_size": search.no_repeat_ngram} if search.no_repeat_ngram else {}),
        **({"suppress_tokens": suppress} if suppress else {}),
        "pad_token_id": model.pad_token,
        "eos_token_id": model.end_token,
        "decoder_start_token_id": model.start_token,
    }, notices

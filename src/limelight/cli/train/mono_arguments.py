"""`--mono`, `--rounds` and `--weight synthetic=2` become the monolingual text of a request, if all else goes with them."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from limelight.cli.language_arguments import is_line_file
from limelight.corpus.config import PrepareSettings
from limelight.errors import ConfigError
from limelight.text.pieces.tags import SYNTHETIC
from limelight.training.recipe.monolingual import MonoText

SHARED = ("schedule.steps", "budget_seconds")


def take_synthetic_weight(text: Mapping[str, Any]) -> tuple[dict[str, Any], float | None]:
    """The options without the weight of the synthetic pairs, and that weight."""
    weights = [each for each in text.get("weight", ()) if not re.fullmatch(rf"{SYNTHETIC}=\d+(\.\d+)?", each)]
    own = [float(each.partition("=")[2]) for each in text.get("weight", ()) if each not in weights]
    return {**text, "weight": weights}, own[-1] if own else None


def read_mono(
    mono: Sequence[str], rounds: int, weight: float | None, bundle: Path | None, data: PrepareSettings, written: Sequence[str]
) -> MonoText | None:
    if not mono:
        if rounds != 1:
            raise ConfigError(f"--rounds {rounds} is for monolingual text; name it with --mono, such as --mono news.{data.languages[1]}")
        return None
    keys = {each.partition("=")[0] for each in written}
    problems = [f"--mono {path}: give a file of lines, plain or .gz" for path in mono if not is_line_file(path)]
    problems += [f"--mono {path}: there is no such file" for path in mono if "://" not in path and not Path(path).exists()]
    problems += [f"{key}: give --steps or --budget, which are shared by the models" for key in SHARED if key in keys]
    if len(data.directions) > 1:
        problems.append("several directions: synthetic pairs are made for one; leave out --both-directions and other pairs")
    if bundle is not None:
        problems.append(f"--from {bundle}: it goes on with its pieces, and has none for the tag {SYNTHETIC}; leave out one of the two")
    if any(corpus.name == SYNTHETIC or SYNTHETIC in corpus.tags for corpus in data.corpora):
        problems.append(f"{SYNTHETIC} is the name and the tag of the pairs that are made here; call the corpus otherwise")
    if weight is not None and not 0 < weight <= 1000:
        problems.append(f"--weight {SYNTHETIC}={weight:g}: give more than 0 and at most 1000")
    if problems:
        raise ConfigError("the monolingual text cannot be used:", problems)
    return MonoText.of(mono, data.languages, rounds, weight)

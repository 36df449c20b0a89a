"""An `Ensemble` lets several models decide together, piece by piece. To a search they are one model.

    p(piece) = sum_i w_i p_i(piece),   w_i = 1/n unless given

The arithmetic mean of probabilities, as in Sutskever et al. (2014, section 3.6): what one model thinks impossible another may still
bring in. An ensemble of a model with itself is that model.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from limelight.decoding.steps import Floats, Integers, State, Steppable
from limelight.errors import ConfigError


@dataclass
class EnsembleState:
    """An ensemble state is the states of all models. Every row of theirs is the same hypothesis."""

    members: list[State]

    def reorder(self, rows: Integers) -> None:
        for member in self.members:
            member.reorder(rows)

    def select(self, sentences: Integers) -> None:
        for member in self.members:
            member.select(sentences)


class Ensemble:
    """An ensemble is Ensemble([a, b]), or Ensemble([a, b], weights=[2, 1]) to trust a twice as much. The models share one vocabulary."""

    def __init__(self, models: Sequence[Steppable], weights: Sequence[float] | None = None) -> None:
        weights = [1.0] * len(models) if weights is None else list(weights)
        problems = []
        if not models:
            problems.append("it has no models; give at least one")
        if len(weights) != len(models):
            problems.append(f"{len(models)} models have {len(weights)} weights; give each model one, or none at all")
        problems += [
            f"weight {number} is {weight}; weights are above 0 and finite, leave out a model that shall not count"
            for number, weight in enumerate(weights)
            if not (weight > 0 and math.isfinite(weight))
        ]
        if problems:
            raise ConfigError("this ensemble cannot be used:", problems)
        self.models = list(models)
        self.weights = [weight / math.fsum(weights) for weight in weights]

    def start(self, source: Integers, width: int = 1) -> EnsembleState:
        return EnsembleState([model.start(source, width) for model in self.models])

    @np.errstate(all="ignore")  # what is no number in one model is told by the search
    def step(self, token: Integers, state: EnsembleState) -> tuple[Floats, EnsembleState]:
        """Log-probabilities of the mean (B * W, V). What is no number in one model is none in the mean."""
        mean_RV: Floats | None = None
        for number, (model, weight) in enumerate(zip(self.models, self.weights, strict=True)):
            log_probs_RV, state.members[number] = model.step(token, state.members[number])
            log_probs_RV = log_probs_RV + math.log(weight)
            if mean_RV is not None and mean_RV.shape != log_probs_RV.shape:
                raise ConfigError(
                    f"these models do not form an ensemble: model 0 has {mean_RV.shape[-1]} pieces and model {number} has "
                    f"{log_probs_RV.shape[-1]}; use models that were trained with the same vocabulary"
                )
            # Two at a time: one (R, V) in memory instead of one for each model.
            mean_RV = log_probs_RV if mean_RV is None else np.logaddexp(mean_RV, log_probs_RV)
        assert mean_RV is not None
        return mean_RV, state

    def attention(self, state: EnsembleState) -> Floats:
        """Where the models looked on average (B * W, S)."""
        looks: list[Floats] = []
        for number, (model, member) in enumerate(zip(self.models, state.members, strict=True)):
            tell: Any = getattr(model, "attention", None)
            if tell is None:
                raise ConfigError(
                    f"model {number} of this ensemble does not tell where it looks, and a coverage penalty needs to know; "
                    "set coverage_penalty=0, or leave this model out"
                )
            looks.append(self.weights[number] * tell(member))
        mean_RS: Floats = np.stack(looks).sum(axis=0)
        return mean_RS

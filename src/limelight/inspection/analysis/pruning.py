"""Pruning takes heads out of a model for good: those whose loss costs least (Voita et al. 2019), equally many of each attention."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from limelight.bundle.card import VERDICT
from limelight.bundle.settings import BundleSettings
from limelight.decoding.steps import Specials
from limelight.errors import ConfigError
from limelight.inspection.analysis.importance import Pair, Watch, importance
from limelight.inspection.head_names import Head, Kind, heads_of
from limelight.model.config import ModelConfig
from limelight.model.transformer import Transformer

Place = tuple[Kind, int]  # an attention: its kind and layer
PART = re.compile(r"(encoder|decoder)\.blocks\.(\d+)\.(cross_)?attention\.(qkv|q|kv|out)\.(weight|bias)")


@dataclass(frozen=True)
class Pruned:
    model: Transformer
    left: dict[Place, list[int]]

    def list_pruned(self, config: ModelConfig) -> list[str]:
        """The heads that went, by the names that they had in the whole model, whose shape is `config`."""
        return [str(head) for head in heads_of(config) if head.head not in self.left[head.kind, head.layer]]

    def adapt(self, settings: BundleSettings) -> BundleSettings:
        """Heads that align have new numbers; scores, verdict and confidence are of the whole model, and are not kept."""
        kept = [(at, self.left["cross", at].index(head)) for at, head in settings.alignment or () if head in self.left["cross", at]]
        facts = dict(settings.trained_on or {})
        if not str(facts.get(VERDICT, "")).startswith("NOT USABLE"):  # which fewer heads do not mend
            facts.pop(VERDICT, None)
        facts["heads pruned"] = int(facts.get("heads pruned", 0)) + len(self.list_pruned(settings.model))
        changes = {"alignment": tuple(kept) or None, "scores": (), "confidence": None, "trained_on": facts}
        return settings.changed(model=self.model.config, **changes)


def prune(model: Transformer, pairs: Sequence[Pair], specials: Specials, count: int, progress: Watch, given: int = 0) -> Pruned:
    """Without `count` heads of each attention, chosen by these pairs. The model itself is not touched."""
    config = model.config
    check_prunable(config, count)
    left: dict[Place, list[int]] = {head[:2]: list(range(config.num_heads)) for head in heads_of(config)}
    for _ in range(count):
        costs = {Head.parse(each.id): each.delta_logp for each in importance(model, pairs, specials, progress, given)}
        least = {place: max((head for head in costs if head[:2] == place), key=lambda head: costs[head]).head for place in left}
        model = cut_out(model, least)
        for place, head in least.items():
            del left[place][head]
    return Pruned(model, left)


def check_prunable(config: ModelConfig, count: int) -> None:
    if config.kv_heads != config.num_heads:
        raise ConfigError(f"{config.num_heads} heads share {config.kv_heads} keys, so none can go alone; this model cannot be pruned")
    if not 0 < count < config.num_heads:
        raise ConfigError(f"of {config.num_heads} heads {count} cannot go; give a number from 1 to {config.num_heads - 1}")


def cut_out(model: Transformer, least: dict[Place, int]) -> Transformer:
    config, weights = model.config, model.state_dict()
    for name in weights:
        if match := PART.fullmatch(name):
            kind: Kind = "enc" if match[1] == "encoder" else "cross" if match[3] else "dec"
            stay = [head for head in range(config.num_heads) if head != least[kind, int(match[2])]]
            if match[4] != "out":  # rows, head by head
                weights[name] = weights[name].unflatten(0, (config.num_heads, -1))[stay].flatten(0, 1)
            elif match[5] == "weight":
                weights[name] = weights[name].unflatten(1, (config.num_heads, -1))[:, stay].flatten(1)
    smaller = Transformer(config.changed(num_heads=config.num_heads - 1, num_kv_heads=None, head_width=config.d_head))
    smaller.load_state_dict(weights)
    return smaller.to(next(model.parameters())).eval()

"""The torch engine runs a Transformer of ours on any device that torch has. It can do everything, and can be looked into."""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from limelight.decoding.config import SearchSettings
from limelight.decoding.ensemble import Ensemble
from limelight.decoding.search import search
from limelight.decoding.steps import Floats, Integers, Outcome, Request, Specials, Steppable
from limelight.decoding.task import pad_rows
from limelight.engines.engine import Matrix
from limelight.model.cache import DecoderState
from limelight.model.config import ModelConfig
from limelight.model.transformer import Batch, Transformer

Heads = Sequence[tuple[int, int]]  # (layer, head) of the cross-attention
LOGITS_AT_ONCE = 2**26  # numbers: 256 MB in float32


class TorchEngine:
    """The engine has `alignment`, the heads whose attention says where a target piece comes from; by default a layer's average."""

    name = "torch"
    batch_pieces = 4096

    def __init__(self, model: Transformer, specials: Specials | None = None, alignment: Heads | None = None, workers: int = 1) -> None:
        self.model, self.workers = model.eval(), workers
        self.specials = specials or specials_of(model.config)
        self.alignment = alignment or usual_heads(model.config)
        self.device = next(model.parameters()).device

    @property
    def longest_source(self) -> int:
        return self.model.config.max_length - 1

    def lacks(self, settings: SearchSettings, requests: Sequence[Request]) -> list[str]:
        return []

    def search(self, requests: Sequence[Request], settings: SearchSettings) -> list[Outcome]:
        most = min(settings.max_length, self.longest_source)  # so that `attend` can read it all after the start
        return search(self._step_with(settings), requests, settings.changed(max_length=most), self.specials)

    def _step_with(self, settings: SearchSettings) -> Steppable:
        return OnHost(WatchedModel(self.model, self.alignment) if settings.coverage_penalty else self.model, self.device)

    @torch.inference_mode()
    def score(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[list[float]]:
        source, target_in, target_out = self._pad_pairs(sources, targets)
        rows = max(1, LOGITS_AT_ONCE // (target_in.shape[1] * self.model.config.vocab_size))
        found: list[list[float]] = []
        for at in range(0, len(source), rows):
            logits_BTV = self.model(source[at : at + rows], target_in[at : at + rows])
            log_probs_BTV = torch.log_softmax(logits_BTV, dim=-1, dtype=torch.float32)
            found += log_probs_BTV.gather(2, target_out[at : at + rows, :, None]).squeeze(-1).tolist()
        return [row[: len(target) + 1] for row, target in zip(found, targets, strict=True)]

    @torch.inference_mode()
    def attend(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[Matrix]:
        source, target_in, _ = self._pad_pairs(sources, targets)
        watched = WatchedModel(self.model, self.alignment)
        watched.model.decode(Batch.padded(source, target_in, target_in), watched.model.encode(source))
        weights_BTS = watched.weights().float().cpu().numpy()
        if not self.specials.source_ends:
            weights_BTS = np.pad(weights_BTS, ((0, 0), (0, 0), (0, 1)))  # nobody looks at an end that is not there
        sizes = [(len(target) + 1, len(given) + 1) for given, target in zip(sources, targets, strict=True)]
        return [weights[:rows, :columns] for weights, (rows, columns) in zip(weights_BTS, sizes, strict=True)]

    def close(self) -> None:
        """Nothing is held that must be given back."""

    def _pad_pairs(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> tuple[Tensor, ...]:
        """Source, and the target before and after each piece, padded (B, S) and (B, T)."""
        start, end = self.specials.start, self.specials.end
        sides = (
            [self.specials.add_end(s) for s in sources],
            [[start, *t] for t in targets],
            [[*t, end] for t in targets],
        )
        return tuple(torch.from_numpy(pad_rows(side, self.specials.pad)).to(self.device) for side in sides)


class TorchEnsemble(TorchEngine):
    """An ensemble searches with several models that have the same pieces; the first of them scores and attends."""

    def __init__(self, engines: Sequence[TorchEngine]) -> None:
        first = engines[0]
        super().__init__(first.model, first.specials, first.alignment, first.workers)
        self.engines = engines

    @property
    def longest_source(self) -> int:
        return min(engine.model.config.max_length for engine in self.engines) - 1

    def _step_with(self, settings: SearchSettings) -> Steppable:
        return Ensemble([engine._step_with(settings) for engine in self.engines])


class SteppingModel(Protocol):
    """A model on its device: as `decoding.steps.Steppable`, on tensors."""

    def start(self, source: Tensor, width: int = 1) -> Any: ...

    def step(self, token: Tensor, state: Any) -> tuple[Tensor, Any]: ...


class OnHost:
    """A model of torch as a search sees it: ids come from the host and go to the device, log-probabilities come back."""

    def __init__(self, model: SteppingModel, device: torch.device | str = "cpu") -> None:
        self.model, self.device = model, device
        looked: Callable[[Any], Tensor] | None = getattr(model, "attention", None)
        if looked is not None:
            self.attention = lambda state: looked(state.state).float().cpu().numpy()

    @torch.inference_mode()
    def start(self, source: Integers, width: int = 1) -> "HostState":
        return HostState(self.model.start(torch.from_numpy(source).to(self.device), width), self.device)

    @torch.inference_mode()
    def step(self, token: Integers, state: "HostState") -> tuple[Floats, "HostState"]:
        log_probs_RV, state.state = self.model.step(torch.from_numpy(token).to(self.device), state.state)
        return log_probs_RV.float().cpu().numpy(), state


@dataclass
class HostState:
    """The state of a model on its device; the search says by numbers of the host what becomes of its rows."""

    state: Any
    device: torch.device | str

    @torch.inference_mode()
    def reorder(self, rows: Integers) -> None:
        self.state.reorder(torch.from_numpy(rows).to(self.device))

    @torch.inference_mode()
    def select(self, sentences: Integers) -> None:
        self.state.select(torch.from_numpy(sentences).to(self.device))


class WatchedModel:
    """A watched model has the same weights in modules of its own, so that looking into them neither slows nor sees another search."""

    def __init__(self, model: Transformer, heads: Heads) -> None:
        kept = {id(tensor): tensor for tensor in (*model.parameters(), *model.buffers())}
        self.model: Transformer = copy.deepcopy(model, memo=kept)
        self.heads = heads
        self.seen: dict[int, Tensor] = {}
        for light in self.model.spotlights():
            if light.kind == "cross" and light.layer in {layer for layer, _ in heads}:
                light.attention.looks.append(self._look_at(light.layer))

    def _look_at(self, layer: int):  # type: ignore[no-untyped-def]
        def look(stage: str, value: Tensor) -> None:
            if stage == "weights":
                self.seen[layer] = value

        return look

    def weights(self) -> Tensor:
        """What the chosen heads saw last, on average: (B, T, S)."""
        return torch.stack([self.seen[layer][:, head] for layer, head in self.heads]).mean(dim=0)

    def attention(self, state: DecoderState) -> Tensor:
        return self.weights().flatten(0, 1)

    def start(self, source: Tensor, width: int = 1) -> DecoderState:
        return self.model.start(source, width)

    def step(self, token: Tensor, state: DecoderState) -> tuple[Tensor, DecoderState]:
        return self.model.step(token, state)


def specials_of(config: ModelConfig) -> Specials:
    return Specials(pad=config.pad_token, start=config.start_token, end=config.end_token)


def usual_heads(config: ModelConfig) -> Heads:
    """All heads of the last layer but one, which align best in most models (Garg et al. 2019)."""
    layer = max(0, config.decoder_layers - 2)
    return [(layer, head) for head in range(config.num_heads)]

"""ONNX Runtime and torch decode the same probes, to prove that the graphs compute what the model computes."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from limelight.interop.onnx.graphs import DECODER, ENCODER, OnnxError
from limelight.model.config import ModelConfig
from limelight.model.transformer import Transformer

BOUND = 1e-4  # of a log-probability: in float32 trained models differ by 1e-5
STEPS, LONGEST = 12, 64
SEED = 2017
ONLY_ERRORS = 3  # ONNX Runtime's number for them


@dataclass(frozen=True)
class OnnxParity:
    worst: float
    steps: int
    agreed: int
    bound: float = BOUND


def prove(model: Transformer, folder: Path, names: tuple[str, str] = (ENCODER, DECODER), exact: bool = True) -> OnnxParity:
    """The figures of a float32 model on a CPU and the graphs in the folder, or an error when they differ beyond the bound. Graphs in other
    numbers are not `exact`, and are only measured."""
    try:
        graphs = Graphs(folder, model.config, names)
        found = [_compare(model, graphs, probe, steps) for probe, steps in probes(model.config)]
    except OnnxError:
        raise
    # Its errors have a class for each cause and nothing in common.
    except Exception as error:
        said = str(error).strip().partition("\n")[0]
        raise OnnxError(f"ONNX Runtime {onnxruntime.__version__} cannot run the graphs in {folder}: {said}") from error
    worst = float(np.max([parity.worst for parity in found]))  # of numpy: it is no number if one of them is none
    parity = OnnxParity(worst, sum(parity.steps for parity in found), sum(parity.agreed for parity in found))
    if not parity.worst <= (BOUND if exact else np.inf):
        raise OnnxError(
            f"the ONNX graphs do not compute what the model computes: log-probabilities differ by up to {worst:.2e}, the bound is "
            f"{BOUND:.0e} ({parity.agreed} of {parity.steps} steps agree on the next piece)"
        )
    return parity


class Graphs:
    def __init__(self, folder: Path, config: ModelConfig, names: tuple[str, str] = (ENCODER, DECODER)) -> None:
        self.encoder, self.decoder = (_session(folder / name) for name in names)
        self.config = config
        self.given: dict[str, Any] = {}

    def start(self, source: Tensor) -> None:
        names = [port.name for port in self.encoder.get_outputs()]
        self.given = dict(zip(names, self.encoder.run(None, {"source": source.numpy()}), strict=True))
        nothing = np.zeros((len(source), self.config.kv_heads, 0, self.config.d_head), np.float32)
        pasts = [port.name for port in self.decoder.get_inputs() if port.name.startswith("past.")]
        self.given |= dict.fromkeys(pasts, nothing)
        if any(port.name == "gates" for port in self.decoder.get_inputs()):
            self.given["gates"] = np.ones((self.config.decoder_layers, self.config.num_heads), np.float32)

    def step(self, token: Tensor) -> Tensor:
        """(B,) -> log-probabilities (B, V)"""
        names = [port.name for port in self.decoder.get_outputs() if port.name.startswith("present.")]
        log_probs, *present = self.decoder.run(["log_probs", *names], {"token": token.numpy(), **self.given})
        self.given |= {name.replace("present.", "past."): value for name, value in zip(names, present, strict=True)}
        return torch.from_numpy(log_probs)


def probes(config: ModelConfig) -> list[tuple[Tensor, int]]:
    longest = min(LONGEST, config.max_length)
    few, many = [1, 7, 3, 5, 2], [1 + i % 9 for i in range(20)]
    return [
        (_draw_sources(config, [min(length, longest) for length in lengths]), min(steps, longest))
        for lengths, steps in (([1], STEPS), (few, STEPS), (many, 3), ([longest, 4], LONGEST))
    ]


def _draw_sources(config: ModelConfig, lengths: Sequence[int]) -> Tensor:
    chance = torch.Generator().manual_seed(SEED)
    every = torch.arange(config.source_vocab)
    usable = every[every != config.pad_token]
    rows = [usable[torch.randint(len(usable), (length,), generator=chance)] for length in lengths]
    for row in rows:
        row[-1] = min(config.end_token, config.source_vocab - 1)
    return pad_sequence(rows, batch_first=True, padding_value=config.pad_token)


@torch.inference_mode()
def _compare(model: Transformer, graphs: Graphs, source: Tensor, steps: int) -> OnnxParity:
    token, state = torch.full((len(source),), model.config.start_token), model.start(source)
    graphs.start(source)
    worst, agreed = torch.tensor(0.0), 0
    for _ in range(steps):
        ours_BV, state = model.step(token, state)
        theirs_BV = graphs.step(token)
        worst = torch.maximum(worst, (ours_BV - theirs_BV).abs().amax())  # no number stays no number
        token = ours_BV.argmax(dim=-1)
        agreed += int((token == theirs_BV.argmax(dim=-1)).sum())
    return OnnxParity(worst.item(), steps * len(source), agreed)


def _session(path: Path) -> Any:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    options.log_severity_level = ONLY_ERRORS
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])

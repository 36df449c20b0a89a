"""The Transformer takes source ids through encoder and decoder to probabilities of the next piece (figure 1).

It has three doors and no more:

- the step protocol: `start`, `step`, and the state's `reorder` and `select`, for a search;
- the spotlights: every attention by kind and layer, with its `looks` and its `gate`, and `hidden`, source pieces in the dark: for looking
  and dimming;
- the names of its parameters, for other formats.
"""

from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from limelight.model.attention import Visible
from limelight.model.cache import DecoderState
from limelight.model.config import ModelConfig
from limelight.model.decoder import Decoder
from limelight.model.embedding import Embedding
from limelight.model.encoder import Encoder
from limelight.model.grid import NARROWEST, Grid
from limelight.model.initialization import initialize
from limelight.model.loss import Loss, smoothed_loss
from limelight.model.multi_head import MultiHeadAttention
from limelight.model.positions import Positions, check_length


@dataclass(frozen=True)
class Spotlight:
    """A spotlight is one multi-head attention and where it stands: encoder self-attention, decoder self-attention, or cross-attention."""

    kind: Literal["encoder", "decoder", "cross"]
    layer: int
    attention: MultiHeadAttention


@dataclass(frozen=True)
class Batch:
    """A batch is pairs for training, ids padded at the end: source (B, S), target_in (B, T) from the start token on, and target_out
    (B, T), the same one piece later, up to the end token.

    The grids say how the model lays the positions out; `Batch.packed` spares the work on padding.
    """

    source: Tensor
    target_in: Tensor
    target_out: Tensor
    source_grid: Grid
    target_grid: Grid

    @classmethod
    def padded(cls, source: Tensor, target_in: Tensor, target_out: Tensor) -> "Batch":
        return cls(source, target_in, target_out, Grid.padded(source), Grid.padded(target_in))

    @classmethod
    def packed(cls, source: Tensor, target_in: Tensor, target_out: Tensor, pad_token: int) -> "Batch":
        """From ids on the host; move it to a device with `to`. At least `NARROWEST` columns, the rest hidden like other padding."""
        wide = [F.pad(x, (0, max(0, NARROWEST - x.shape[1])), value=pad_token) for x in (source, target_in, target_out)]
        source, target_in, target_out = wide
        seen = Visible.pieces(source, pad_token).keys
        assert seen is not None
        return cls(source, target_in, target_out, Grid.packed(seen), Grid.packed(target_out != pad_token))

    def to(self, device: torch.device) -> "Batch":
        source, target_in, target_out = (x.to(device, non_blocking=True) for x in (self.source, self.target_in, self.target_out))
        return Batch(source, target_in, target_out, self.source_grid.to(device), self.target_grid.to(device))


class Transformer(nn.Module):
    """Transformer(ModelConfig(vocab_size=37_000)) is the base model of the paper."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        # Tied matrices are one parameter with one name (3.4): with tie=all the target's embedding serves the source and the output too.
        self.source_embedding = Embedding(config, config.source_vocab) if config.tie != "all" else None
        self.target_embedding = Embedding(config, config.vocab_size)
        self.source_positions = Positions(config)
        self.target_positions = Positions(config)
        self.encoder = Encoder(config)
        self.decoder = Decoder(config)
        self.output = nn.Linear(config.d_model, config.vocab_size, bias=False) if config.tie == "none" else None
        self.output_bias = nn.Parameter(torch.zeros(config.vocab_size)) if config.output_bias else None
        self.hidden: tuple[int, ...] = ()  # columns of the source that nobody looks at, as if they were padding
        initialize(self, config)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """Source ids (B, S) and target ids (B, T) -> logits (B, T, V): at each position, of the piece that comes next."""
        batch = Batch.padded(source, target, target)
        return self.logits(self.decode(batch, self.encode(source)))

    def encode(self, source: Tensor, grid: Grid | None = None) -> Tensor:
        """Source ids (B, S) -> memory, the stream of `grid` (B, S, D)."""
        grid = grid or Grid.padded(source)
        check_length(grid.longest, self.config)
        embedding = self.source_embedding or self.target_embedding
        x = embedding(grid.take(source), self.source_positions, grid.columns(source.device))
        memory: Tensor = self.encoder(x, self._visible(source), grid)
        return memory

    def decode(self, batch: Batch, memory: Tensor) -> Tensor:
        """What the decoder makes of each target position, as the stream of the batch's target grid (B, T, D)."""
        grid = batch.target_grid
        check_length(grid.longest, self.config)
        x = self.target_embedding(grid.take(batch.target_in), self.target_positions, grid.columns(memory.device))
        decoded: Tensor = self.decoder(x, grid, memory, self._visible(batch.source), batch.source_grid)
        return decoded

    def logits(self, x: Tensor) -> Tensor:
        """(..., D) -> (..., V). The pre-softmax linear transformation of section 3.4."""
        return F.linear(x, self.output_weight, self.output_bias)

    def loss(self, batch: Batch, smoothing: float = 0.0) -> Loss:
        """The training loss, without ever holding all logits."""
        x = self.decode(batch, self.encode(batch.source, batch.source_grid))
        target = batch.target_grid.take(batch.target_out)
        filled = batch.target_grid.is_piece(target.device)
        counted = target != self.config.pad_token if filled is None else filled
        return smoothed_loss(x.flatten(0, -2), self.output_weight, self.output_bias, target.flatten(), counted.flatten(), smoothing)

    def start(self, source: Tensor, width: int = 1) -> DecoderState:
        """Encode the source ids (B, S), once for a whole translation. Each sentence gets `width` rows to be decoded side by side."""
        grid = Grid.padded(source)
        return self.decoder.start(self.encode(source), self._visible(source), grid, width)

    def step(self, token: Tensor, state: DecoderState) -> tuple[Tensor, DecoderState]:
        """One target id per row (B * W,) -> log-probabilities of the next (B * W, V). The state grows by one position, in place."""
        check_length(state.length + 1, self.config)
        token_BW, first = token.view(-1, state.width), torch.zeros_like(token[:1])
        x_BWD = self.target_embedding(token_BW, self.target_positions, first, state.length)
        logits_RV = self.logits(self.decoder.step(x_BWD, state).flatten(0, 1))
        exact_RV = logits_RV.to(torch.promote_types(logits_RV.dtype, torch.float32))
        # In the memory of the logits where no gradient needs them: on a CPU, taking as much anew costs more than the softmax.
        place = exact_RV if exact_RV.device.type == "cpu" and not exact_RV.requires_grad else None
        return torch.log_softmax(exact_RV, dim=-1, out=place), state

    def spotlights(self) -> list[Spotlight]:
        encoder = [Spotlight("encoder", i, block.attention) for i, block in enumerate(self.encoder.blocks)]  # type: ignore[arg-type]
        decoder = [Spotlight("decoder", i, block.attention) for i, block in enumerate(self.decoder.blocks)]  # type: ignore[arg-type]
        cross = [Spotlight("cross", i, block.cross_attention) for i, block in enumerate(self.decoder.blocks)]  # type: ignore[arg-type]
        return encoder + decoder + cross

    def recompute_activations(self, on: bool = True) -> None:
        """Trade time for memory: keep only what stands between blocks, compute the rest again for the gradient (Chen et al. 2016)."""
        self.encoder.recompute = self.decoder.recompute = on

    @property
    def output_weight(self) -> Tensor:
        """(V, D)"""
        return self.target_embedding.weight if self.output is None else self.output.weight

    def _visible(self, source: Tensor) -> Visible:
        return Visible.pieces(source, self.config.pad_token).without(self.hidden)

"""The decoder is a stack of blocks that look at the target so far and at the memory (3.1, right half of figure 1)."""

from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from limelight.model.attention import Visible
from limelight.model.cache import DecoderState, KeyValues, SelfCache
from limelight.model.config import ModelConfig
from limelight.model.grid import Grid
from limelight.model.layers import DecoderBlock, make_norm
from limelight.model.multi_head import Memory
from limelight.model.positions import RotaryPositions

# A piece sees itself and what came before. Padding stands after all pieces, so this hides it too.
NO_LOOK_AHEAD = Visible(causal=True)


class Decoder(nn.Module):
    """`forward` reads a whole target at once (training); `step` reads one piece more (translating)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.rotary = RotaryPositions(config)
        self.blocks = nn.ModuleList(DecoderBlock(config) for _ in range(config.decoder_layers))
        self.norm = make_norm(config) if config.norm_order == "pre" else nn.Identity()
        self.recompute = False  # True: forget each block's activations, compute them again for the gradient

    def forward(self, x: Tensor, grid: Grid, memory: Tensor, source_visible: Visible, source_grid: Grid) -> Tensor:
        rotation, looked_at = self.rotary(grid.width), Memory(memory, source_grid)
        for block in self.blocks:
            if self.recompute and self.training:
                x = checkpoint(block, x, NO_LOOK_AHEAD, grid, looked_at, source_visible, rotation, use_reentrant=False)
            else:
                x = block(x, NO_LOOK_AHEAD, grid, looked_at, source_visible, rotation)
        return self.finish(x)

    def start(self, memory: Tensor, source_visible: Visible, source_grid: Grid, width: int = 1) -> DecoderState:
        memories = [project_memory(block, Memory(memory, source_grid)) for block in self.blocks]
        return DecoderState([SelfCache() for _ in self.blocks], memories, source_visible, width)

    def step(self, x_BWD: Tensor, state: DecoderState) -> Tensor:
        """The newest position of each of the W rows of a sentence (B, W, D); the state remembers those before."""
        grid = Grid.padded(x_BWD[..., 0])
        rotation = self.rotary(1, start=state.length)
        own_past = state.grow(len(x_BWD), x_BWD.device)
        for block, cache, memory in zip(self.blocks, state.caches, state.memories, strict=True):
            x_BWD = block(x_BWD, own_past, grid, memory, state.visible, rotation, cache)
        return self.finish(x_BWD)

    def finish(self, x: Tensor) -> Tensor:
        normalized: Tensor = self.norm(x)
        return normalized


def project_memory(block: nn.Module, memory: Memory) -> KeyValues:
    assert isinstance(block, DecoderBlock)
    return block.cross_attention.project(memory)

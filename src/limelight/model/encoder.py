"""The encoder is a stack of blocks that turns the source into memory (section 3.1, left half of figure 1)."""

from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from limelight.model.attention import Visible
from limelight.model.config import ModelConfig
from limelight.model.grid import Grid
from limelight.model.layers import EncoderBlock, make_norm
from limelight.model.positions import RotaryPositions


class Encoder(nn.Module):
    """With norms before the sub-layers the stream itself is never normalized, so one norm more stands at the end."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.rotary = RotaryPositions(config)
        self.blocks = nn.ModuleList(EncoderBlock(config) for _ in range(config.encoder_layers))
        self.norm = make_norm(config) if config.norm_order == "pre" else nn.Identity()
        self.recompute = False  # True: forget each block's activations, compute them again for the gradient

    def forward(self, x: Tensor, visible: Visible, grid: Grid) -> Tensor:
        rotation = self.rotary(grid.width)
        for block in self.blocks:
            if self.recompute and self.training:
                x = checkpoint(block, x, visible, grid, rotation, use_reentrant=False)
            else:
                x = block(x, visible, grid, rotation)
        memory: Tensor = self.norm(x)
        return memory

"""Small random models and padded batches for the equivalence tests: every choice of ModelConfig, all sizes different."""

from dataclasses import dataclass

import torch
from hypothesis import settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from limelight.model.config import ModelConfig
from limelight.model.initialization import initialize
from limelight.model.transformer import Batch, Transformer

few = settings(max_examples=15, derandomize=True, deadline=None)

EXACT = {"rtol": 1e-9, "atol": 1e-11}  # in float64: the same sums in another order


@dataclass(frozen=True)
class Case:
    """A model in float64 and eval mode, and a batch for it, padded."""

    model: Transformer
    batch: Batch

    @property
    def config(self) -> ModelConfig:
        return self.model.config

    def packed(self) -> Batch:
        b = self.batch
        return Batch.packed(b.source, b.target_in, b.target_out, self.config.pad_token)

    def row(self, i: int) -> Batch:
        """One row without its padding."""
        b, pad = self.batch, self.config.pad_token
        S, T = (int((x[i] != pad).sum()) for x in (b.source, b.target_out))
        return Batch.padded(b.source[i : i + 1, :S], b.target_in[i : i + 1, :T], b.target_out[i : i + 1, :T])

    def without_groups(self) -> Transformer:
        """The same function without grouped queries: each head gets a copy of the k and v of its group."""
        H, G, K = self.config.num_heads, self.config.kv_heads, self.config.d_head
        weights = self.model.state_dict()
        for name, rows in weights.items():
            if ".qkv." in name:
                grouped = rows.view(G, H // G + 2, K, *rows.shape[1:])
                q, kv = grouped[:, :-2].flatten(0, 1), grouped[:, -2:].repeat_interleave(H // G, dim=0)
                weights[name] = torch.cat([q[:, None], kv], dim=1).flatten(0, 2)
            elif ".kv." in name:
                weights[name] = rows.view(G, 2, K, *rows.shape[1:]).repeat_interleave(H // G, dim=0).flatten(0, 2)
        plain = make(self.config.changed(num_kv_heads=None), seed=1)
        plain.load_state_dict(weights)
        return plain


def make(config: ModelConfig, seed: int) -> Transformer:
    """A float64 eval model. Biases and norms are random too: at 0 and 1 they would hide a mistake."""
    torch.manual_seed(seed)
    model = Transformer(config).double()
    initialize(model, config)  # again, so that the tables of positions are exact to float64
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.add_(torch.randn_like(parameter), alpha=0.3)
    return model.eval()


def tiny_config(**changes: object) -> ModelConfig:
    """H=3, K=6, D=18, F=7, V=13, without dropout."""
    shape = {"vocab_size": 13, "encoder_layers": 2, "decoder_layers": 2, "d_model": 18, "d_ff": 7, "num_heads": 3}
    return ModelConfig(**{**shape, "dropout": 0.0, "max_length": 80, **changes})


@st.composite
def configs(draw: st.DrawFn, **fixed: object) -> ModelConfig:
    """Any valid ModelConfig of a tiny size. What is `fixed` is not drawn."""
    positions = fixed.get("positions") or draw(st.sampled_from(["sinusoidal", "learned", "rotary"]))
    layouts = ["interleaved", "halves"] + ["tensor2tensor"] * (positions == "sinusoidal")
    heads, kv_heads = draw(st.sampled_from([(3, None), (3, 1), (4, 2), (6, 3)]))
    tie = draw(st.sampled_from(["all", "decoder", "none"]))
    drawn = {
        "source_vocab_size": None if tie == "all" else draw(st.sampled_from([None, 11])),
        "encoder_layers": draw(st.integers(1, 2)),
        "decoder_layers": draw(st.integers(1, 2)),
        "d_model": heads * 6,
        "num_heads": heads,
        "num_kv_heads": kv_heads,
        "norm_order": draw(st.sampled_from(["pre", "post"])),
        "norm": draw(st.sampled_from(["layer", "rms"])),
        "activation": draw(st.sampled_from(["relu", "gelu", "silu", "reglu", "geglu", "swiglu"])),
        "bias": draw(st.booleans()),
        "positions": positions,
        "position_layout": draw(st.sampled_from(layouts)),
        "position_offset": draw(st.integers(0, 2)),
        "tie": tie,
        "scale_embeddings": draw(st.booleans()),
        "output_bias": draw(st.booleans()),
        "start_token": draw(st.sampled_from([2, 0])),  # Marian begins with its pad_token
    }
    return tiny_config(**{**drawn, **fixed})


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def random_ids(*shape: int, seed: int = 0) -> Tensor:
    """Any pieces of tiny_config's vocabulary but the special ones."""
    return torch.randint(4, 13, shape, generator=torch.Generator().manual_seed(seed))


def random_pieces(lengths: list[int], vocab_size: int, generator: torch.Generator) -> list[Tensor]:
    return [torch.randint(4, vocab_size, (length,), generator=generator) for length in lengths]


def batch_of(sources: list[Tensor], targets: list[Tensor], config: ModelConfig) -> Batch:
    """Pads at the end only. Targets come without start and end."""
    start, end = torch.tensor([config.start_token]), torch.tensor([config.end_token])
    target_in = [torch.cat([start, target]) for target in targets]
    target_out = [torch.cat([target, end]) for target in targets]
    ids = (pad_sequence(x, batch_first=True, padding_value=config.pad_token) for x in (sources, target_in, target_out))
    return Batch.padded(*ids)


@st.composite
def cases(draw: st.DrawFn, **fixed: object) -> Case:
    """A random model with a random batch: 1 to 3 rows, sources of 1 to 5 pieces, targets of 1 to 6."""
    config, seed = draw(configs(**fixed)), draw(st.integers(0, 999))
    rows = draw(st.integers(1, 3))
    source_lengths = draw(st.lists(st.integers(1, 5), min_size=rows, max_size=rows))
    target_lengths = draw(st.lists(st.integers(0, 5), min_size=rows, max_size=rows))
    generator = torch.Generator().manual_seed(seed)
    sources = random_pieces(source_lengths, config.source_vocab, generator)
    targets = random_pieces(target_lengths, config.vocab_size, generator)
    return Case(make(config, seed), batch_of(sources, targets, config))


def tiny_case(seed: int = 0, lengths: tuple[list[int], list[int]] = ([5, 3], [3, 1]), **changes: object) -> Case:
    """One fixed case, B=2, S=5, T=4, for the tests that need no more."""
    config, generator = tiny_config(**changes), torch.Generator().manual_seed(seed)
    sources = random_pieces(lengths[0], config.source_vocab, generator)
    targets = random_pieces(lengths[1], config.vocab_size, generator)
    return Case(make(config, seed), batch_of(sources, targets, config))


def gradients(model: nn.Module, loss: Tensor) -> dict[str, Tensor]:
    """d loss / d parameter, by name; zero where a parameter takes no part."""
    names, parameters = zip(*model.named_parameters(), strict=True)
    found = torch.autograd.grad(loss, parameters, materialize_grads=True)
    return dict(zip(names, found, strict=True))

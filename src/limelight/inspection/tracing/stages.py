"""One pass through an intervened model with a given translation gives every stage that is wanted, by name.

src.ids    -> src.embed + pos.enc = enc.in
enc.L      q k v -> scores = q k^T -> scaled = scores / sqrt(d_k) -> masked -> attn = softmax(masked) -> heads = gate * attn v
           -> concat = heads W^O -> add_norm -> ffn -> out
memory     after the last layer, and after the last norm if norms come first
dec.L      the same twice, as dec.L.self and dec.L.cross, then ffn and out
decoded    -> logits -> probs = softmax(logits)

add_norm   norms last: norm(x + concat). Norms first: x + concat, and `q`, `k`, `v` and `ffn` are made of norm(x).
q, k       after the rotation, where positions are rotary. Heads that share k and v (grouped queries) each have a copy.
scaled     divided by the attention's temperature too, if it is changed;  attn: after the pins;  heads: after the gate
"""

from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from limelight.errors import ConfigError
from limelight.inspection.head_names import KIND_OF, attention_prefix, stage_names
from limelight.inspection.trace import Stages
from limelight.inspection.tracing.relit_model import IntervenedModel
from limelight.model.multi_head import MultiHeadAttention
from limelight.model.transformer import Batch, Transformer

Keep = Callable[[str, Tensor], None]


@torch.inference_mode()
def run_forced(lit: IntervenedModel, source_ids: Sequence[int], input_ids: Sequence[int], wanted: Collection[str]) -> tuple[Tensor, Stages]:
    """Logits (T, V) on the model's device and the wanted stages. Source with its end, `input_ids` from the start piece on."""
    model, found = lit.model, Stages()
    check_names(wanted, model)
    for name, ids in (("src.ids", source_ids), ("tgt.ids", input_ids)):
        if name in wanted:
            found[name] = np.array(ids, np.int64)

    def keep(name: str, value: Tensor) -> None:
        if name in wanted:
            found[name] = value[0].float().cpu().numpy()

    device = next(model.parameters()).device
    source, target = (torch.tensor([list(ids)], device=device) for ids in (source_ids, input_ids))
    watching = _StageHooks(model, keep)
    try:
        decoded = model.decode(Batch.padded(source, target, target), model.encode(source))
    finally:
        watching.close()
    logits = model.logits(decoded)
    keep("logits", logits)
    if "probs" in wanted:
        keep("probs", torch.softmax(logits.float(), dim=-1))
    return logits[0], found


def check_names(wanted: Collection[str], model: Transformer) -> None:
    known = set(stage_names(model.config.encoder_layers, model.config.decoder_layers))
    if unknown := sorted(set(wanted) - known):
        raise ConfigError(
            f"there is no stage {', '.join(unknown)}; the stages are src.ids, src.embed, pos.enc, enc.in, enc.L.q ... enc.L.out, memory, "
            "tgt.ids, tgt.embed, pos.dec, dec.in, dec.L.self.q ... dec.L.cross.q ... dec.L.out, decoded, logits and probs, "
            f"with L from 0 to {model.config.encoder_layers - 1} (enc) or {model.config.decoder_layers - 1} (dec)"
        )


class _StageHooks:
    def __init__(self, model: Transformer, keep: Keep) -> None:
        self.keep, self.norm_first = keep, model.config.norm_order == "pre"
        self.undo: list[Callable[[], None]] = []
        for light in model.spotlights():
            self._attention(attention_prefix(KIND_OF[light.kind], light.layer), light.attention)
        self._embedding(model.source_positions, "src.embed", "pos.enc", "enc.in")
        self._embedding(model.target_positions, "tgt.embed", "pos.dec", "dec.in")
        for layer, block in enumerate(model.encoder.blocks):
            self._block(f"enc.{layer}", block, {f"enc.{layer}": "attention_norm"})
        for layer, block in enumerate(model.decoder.blocks):
            norms = {f"dec.{layer}.self": "attention_norm", f"dec.{layer}.cross": "cross_attention_norm"}
            self._block(f"dec.{layer}", block, norms)
        self._output("memory", model.encoder)
        self._output("decoded", model.decoder)

    def close(self) -> None:
        for undo in self.undo:
            undo()

    def _output(self, name: str, module: nn.Module) -> None:
        self.undo.append(module.register_forward_hook(lambda module, args, output: self.keep(name, output)).remove)

    def _input(self, name: str, module: nn.Module) -> None:
        self.undo.append(module.register_forward_pre_hook(lambda module, args: self.keep(name, args[0])).remove)

    def _embedding(self, positions: nn.Module, embed: str, place: str, together: str) -> None:
        def hook(module: nn.Module, args: tuple[Any, ...], output: Tensor) -> None:
            self.keep(embed, args[0])
            self.keep(place, output - args[0])  # what was added, also where a change added something else
            self.keep(together, output)

        self.undo.append(positions.register_forward_hook(hook).remove)

    def _block(self, prefix: str, block: nn.Module, norms: dict[str, str]) -> None:
        """`norms`: of each attention, by its prefix. What one sub-layer gives is what the norm after it reads or, norms last, gives."""
        self._output(f"{prefix}.ffn", block.feed_forward)  # type: ignore[arg-type]
        self._output(f"{prefix}.out", block)
        following = [*list(norms.values())[1:], "feed_forward_norm"]
        for (name, own), after in zip(norms.items(), following, strict=True):
            if self.norm_first:
                self._input(f"{name}.add_norm", getattr(block, after))
            else:
                self._output(f"{name}.add_norm", getattr(block, own))

    def _attention(self, prefix: str, attention: MultiHeadAttention) -> None:
        def look(stage: str, value: Tensor) -> None:
            if stage != "heads":  # of which the gate comes after
                self.keep(f"{prefix}.{'attn' if stage == 'weights' else stage}", value)

        def heads(module: nn.Module, args: tuple[Tensor]) -> None:
            concat_BTD = args[0]
            heads_BTHK = concat_BTD.view(*concat_BTD.shape[:2], attention.num_heads, attention.d_head)
            self.keep(f"{prefix}.heads", heads_BTHK.transpose(1, 2))

        attention.looks.append(look)
        self.undo += [partial(attention.looks.remove, look), attention.out.register_forward_pre_hook(heads).remove]
        self._output(f"{prefix}.concat", attention.out)

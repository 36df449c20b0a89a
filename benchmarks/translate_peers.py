"""The same Transformer in other hands: Hugging Face `generate` and CTranslate2, given our weights, asked for the same sentences.

    small   norms before the sub-layers   M2M100ForConditionalGeneration
    base    norms after them              MarianMTModel

Sameness is proven before anything is timed: `logits_apart` and `scores_apart` compare with our own model, piece by piece.
"""

import math
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

import ctranslate2
import torch
import transformers  # loads a model's file when its class is first used, which takes seconds: only in the process that needs it
from torch import Tensor, nn

from limelight.decoding.steps import Specials
from limelight.engines.torch import usual_heads
from limelight.interop.ctranslate2.export import save
from limelight.model.multi_head import CrossAttention, SelfAttention
from limelight.model.transformer import Transformer
from translate_work import END, PAD, START, UNKNOWN, VOCAB, Work, our_model, padded, random_targets

PIECES = ["<pad>", "<unk>", "<s>", "</s>", *(f"piece{number}" for number in range(4, VOCAB))]
NUMBERS = {piece: number for number, piece in enumerate(PIECES)}


class HuggingFace:
    """`generate` in its fastest plain setting: scaled_dot_product_attention, dynamic cache, inference mode, all cores."""

    def __init__(self, size: str, dtype: str = "float32", attention: str = "sdpa") -> None:
        self.model = hugging_face(our_model(size), attention).to(getattr(torch, dtype))

    @torch.inference_mode()
    def translate(self, work: Work, beam: int) -> list[list[int]]:
        settings = transformers.GenerationConfig(
            num_beams=beam,
            do_sample=False,
            use_cache=True,
            max_new_tokens=max(work.lengths),
            pad_token_id=PAD,
            eos_token_id=END,
            decoder_start_token_id=START,
        )
        source = padded(work.sources)
        found = self.model.generate(
            source,
            attention_mask=(source != PAD).long(),
            generation_config=settings,
            logits_processor=[ForcedLengths(work.lengths, beam)],
        )
        return [row[1 : 1 + length] for row, length in zip(found.tolist(), work.lengths, strict=True)]


class ForcedLengths:
    """The end after each row's length and not before, at no cost; padding, unknown and start never. It writes as little as can be."""

    def __init__(self, lengths: Sequence[int], beam: int) -> None:
        self.ending: dict[int, list[int]] = defaultdict(list)
        for sentence, length in enumerate(lengths):
            self.ending[length] += range(sentence * beam, (sentence + 1) * beam)

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        scores[:, : END + 1] = -torch.inf
        if rows := self.ending.get(input_ids.shape[1] - 1):
            scores[rows] = -torch.inf
            scores[rows, END] = 0.0
        return scores


# Ours on the right; {i} is the layer. q, k and v stand in fused matrices with us and are cut out in `projections`.
NAMES = [
    ("{side}.layers.{i}.self_attn.out_proj", "{side}.blocks.{i}.attention.out"),
    ("{side}.layers.{i}.self_attn_layer_norm", "{side}.blocks.{i}.attention_norm"),
    ("{side}.layers.{i}.encoder_attn.out_proj", "{side}.blocks.{i}.cross_attention.out"),
    ("{side}.layers.{i}.encoder_attn_layer_norm", "{side}.blocks.{i}.cross_attention_norm"),
    ("{side}.layers.{i}.fc1", "{side}.blocks.{i}.feed_forward.up"),
    ("{side}.layers.{i}.fc2", "{side}.blocks.{i}.feed_forward.down"),
    ("{side}.layers.{i}.final_layer_norm", "{side}.blocks.{i}.feed_forward_norm"),
    ("{side}.layer_norm", "{side}.norm"),
]


def hugging_face(ours: Transformer, attention: str) -> "transformers.PreTrainedModel":
    c = ours.config
    shape = {
        "vocab_size": VOCAB,
        "d_model": c.d_model,
        "activation_function": c.activation,
        "scale_embedding": c.scale_embeddings,
        "max_position_embeddings": c.max_length,
        "pad_token_id": PAD,
        "bos_token_id": START,
        "eos_token_id": END,
        "decoder_start_token_id": START,
        "forced_eos_token_id": None,
        "attn_implementation": attention,
    }
    for side, layers in (("encoder", c.encoder_layers), ("decoder", c.decoder_layers)):
        shape |= {f"{side}_layers": layers, f"{side}_ffn_dim": c.d_ff, f"{side}_attention_heads": c.num_heads}
    if c.norm_order == "pre":
        model: transformers.PreTrainedModel = transformers.M2M100ForConditionalGeneration(transformers.M2M100Config(**shape))
    else:
        model = transformers.MarianMTModel(transformers.MarianConfig(**shape))
    apart = model.load_state_dict(state(ours), strict=False)
    missing = [key for key in apart.missing_keys if "embed" not in key and key != "final_logits_bias"]
    assert not missing and not apart.unexpected_keys, (missing, apart.unexpected_keys)
    model.tie_weights()
    return model.eval()


def state(ours: Transformer) -> dict[str, Tensor]:
    """Our weights under Hugging Face's names. All embeddings are one matrix with both."""
    found = {"model.shared.weight": ours.target_embedding.weight, "lm_head.weight": ours.output_weight}
    modules = dict(ours.named_modules())
    for side, layers in (("encoder", ours.config.encoder_layers), ("decoder", ours.config.decoder_layers)):
        for theirs, name in NAMES:
            for i in range(layers) if "{i}" in name else [0]:
                module = modules.get(name.format(side=side, i=i))
                for part, value in module.named_parameters() if module else []:
                    found[f"model.{theirs.format(side=side, i=i)}.{part}"] = value
        for i in range(layers):
            block = modules[f"{side}.blocks.{i}"]
            attentions = {"self_attn": block.attention}
            if side == "decoder":
                attentions["encoder_attn"] = block.cross_attention
            for theirs, attention in attentions.items():
                for letter, (weight, bias) in projections(attention).items():
                    found[f"model.{side}.layers.{i}.{theirs}.{letter}_proj.weight"] = weight
                    found[f"model.{side}.layers.{i}.{theirs}.{letter}_proj.bias"] = bias
    return {name: value.detach() for name, value in found.items()}


def projections(attention: nn.Module) -> dict[str, tuple[Tensor, Tensor]]:
    """{"q": (weight (D, D), bias (D,)), "k": ..., "v": ...}. Rows of ours go head by head [q k v], or [k v] beside a q of its own."""
    if isinstance(attention, SelfAttention):
        return cut(attention.qkv, "qkv", attention.d_head)
    assert isinstance(attention, CrossAttention)
    return cut(attention.q, "q", attention.d_head) | cut(attention.kv, "kv", attention.d_head)


def cut(linear: nn.Linear, letters: str, d_head: int) -> dict[str, tuple[Tensor, Tensor]]:
    weights = linear.weight.detach().unflatten(0, (-1, len(letters), d_head)).unbind(1)
    biases = linear.bias.detach().unflatten(0, (-1, len(letters), d_head)).unbind(1)
    return {x: (w.flatten(0, 1), b.flatten()) for x, w, b in zip(letters, weights, biases, strict=True)}


class CTranslate2:
    """`translate_batch` with its workers and threads.

    It has one length for all sentences of a call, so that those of real lengths are forced in one of two ways:

    mean    every sentence of a batch gets the batch's mean length. One call, as full at its last step as at its first: this flatters
            CTranslate2, since sentences of real lengths end one after the other. It is what we compare with.
    exact   a call for each length in the batch: the very same lengths, but fewer rows in a call.

    All calls of a turn are queued at once, cut into parts of `part` pieces, so that no worker waits for another.
    """

    def __init__(
        self,
        size: str,
        compute: str = "float32",
        workers: int = 2,
        threads: int = 1,
        part: int = 2048,
        way: str = "mean",
    ) -> None:
        with tempfile.TemporaryDirectory() as folder:
            ours = our_model(size)
            special = Specials(PAD, UNKNOWN, START, END)
            save(ours.config, ours.state_dict(), (PIECES, PIECES), special, usual_heads(ours.config), Path(folder))
            self.translator = ctranslate2.Translator(
                folder, compute_type=compute, inter_threads=workers, intra_threads=threads, max_queued_batches=-1
            )
        self.part, self.way = part, way

    def __call__(self, works: Sequence[Work], beam: int) -> list[list[list[int]]]:
        queued = [[self.queue(work, rows, length, beam) for rows, length in self.calls(work)] for work in works]
        found = []
        for work, calls in zip(works, queued, strict=True):
            ids: list[list[int]] = [[] for _ in work.sources]
            for (rows, _), waiting in zip(self.calls(work), calls, strict=True):
                for row, result in zip(rows, waiting, strict=True):
                    ids[row] = [NUMBERS[piece] for piece in result.result().hypotheses[0]]
            found.append(ids)
        return found

    def calls(self, work: Work) -> list[tuple[list[int], int]]:
        """Rows of a call, and the length of each of them."""
        rows = range(len(work.sources))
        if self.way == "mean":
            return [(list(rows), math.ceil(work.pieces / len(rows)))]
        by_length = sorted(rows, key=lambda row: work.lengths[row])
        return [(list(group), length) for length, group in groupby(by_length, key=lambda row: work.lengths[row])]

    def queue(self, work: Work, rows: list[int], length: int, beam: int) -> list[ctranslate2.AsyncTranslationResult]:
        return self.translator.translate_batch(
            [[PIECES[number] for number in work.sources[row]] for row in rows],
            beam_size=beam,
            max_batch_size=self.part,
            batch_type="tokens",
            min_decoding_length=length,
            max_decoding_length=length,
            suppress_sequences=[[PIECES[PAD]], [PIECES[UNKNOWN]], [PIECES[START]]],
            asynchronous=True,
        )


@torch.inference_mode()
def logits_apart(size: str, works: Sequence[Work], seed: int = 1) -> float:
    """Largest difference between our logits and Hugging Face's, over all target positions of padded batches of random ids."""
    ours, theirs, worst = our_model(size), hugging_face(our_model(size), "sdpa"), 0.0
    for work in works:
        source, target = padded(work.sources), padded(random_targets(work, seed))
        started = torch.cat([torch.full((len(target), 1), START), target[:, :-1]], dim=1)
        found = theirs(input_ids=source, attention_mask=(source != PAD).long(), decoder_input_ids=started).logits
        apart = (ours(source, started) - found).abs().amax(-1)
        worst = max(worst, apart[target != PAD].max().item())
    return worst


@torch.inference_mode()
def scores_apart(size: str, works: Sequence[Work], seed: int = 1) -> float:
    """Largest difference between our log-probabilities of random target pieces and CTranslate2's float32 ones."""
    ours, theirs, worst = our_model(size), CTranslate2(size).translator, 0.0
    for work in works:
        targets = random_targets(work, seed)
        pieces = ([[PIECES[number] for number in ids] for ids in side] for side in (work.sources, targets))
        results = theirs.score_batch(*pieces)
        source, target = padded(work.sources), padded(targets)
        started = torch.cat([torch.full((len(target), 1), START), target[:, :-1]], dim=1)
        expected = ours(source, started).log_softmax(-1).gather(2, target[..., None])[..., 0]
        for row, result in zip(expected, results, strict=True):
            found = torch.tensor(result.log_probs)
            worst = max(worst, (row[: len(found)] - found).abs().max().item())
    return worst

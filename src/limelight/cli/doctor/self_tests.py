"""Each self-test tries one part for real, in a process of its own. A library built for another CPU does not raise, it kills.

python -P -m limelight.cli.doctor.self_tests     writes JSON, a line each:  {"begin": "step"}
                                                                       {"name": "step", "works": true, "seconds": 0.2, "said": "..."}
                                                                       {"facts": {"torch": {...}}}
"""

import contextlib
import json
import math
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

SENTENCE, GERMAN = "twenty-one", "einundzwanzig"
STEPS, RATE = 4, 0.1
MARGIN = 1e-3  # between the scores of two engines in float32; they differ by some 1e-6


def torch_facts() -> dict[str, Any]:
    import torch

    from limelight.runtime import bfloat16_units, choose_device, choose_dtype, choose_threads

    chosen = choose_device()
    numbers = choose_dtype(chosen.value)
    build = f"CUDA {torch.version.cuda}" if torch.version.cuda else "CPU"
    build = f"ROCm {torch.version.hip}" if torch.version.hip else build
    return {
        "version": torch.__version__,
        "build": build,
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "bfloat16_units": bfloat16_units(),
        "device": f"{chosen.value} ({chosen.why})",
        "numbers": f"{str(numbers.value).removeprefix('torch.')} ({numbers.why})",
        "threads": choose_threads().value,
        "accelerators": list(accelerators(torch)),
    }


def accelerators(torch: Any) -> Iterator[dict[str, Any]]:
    """Name and memory, in bytes, of each that torch can use; free is None where torch does not say."""
    seen = torch.accelerator.current_accelerator(check_available=True)
    if seen is None:
        return
    kind = getattr(torch, seen.type)
    if seen.type == "mps":
        yield {"name": "mps", "memory": int(kind.recommended_max_memory()), "free": None}
        return
    for number in range(torch.accelerator.device_count()):
        about = kind.get_device_properties(number)
        free = int(kind.mem_get_info(number)[0]) if hasattr(kind, "mem_get_info") else None
        yield {"name": str(about.name), "memory": int(about.total_memory), "free": free}


def try_step() -> str:
    """Forward, backward and update of `toy`, in the numbers that a run would choose: the loss must fall."""
    import torch

    from limelight.model import Batch, ModelConfig, Transformer
    from limelight.runtime import choose_device, choose_dtype

    device = choose_device().value
    numbers = choose_dtype(device).value
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(2017)
        model = Transformer(ModelConfig.preset("toy", 32, dropout=0.0)).to(device)
        ids = torch.randint(4, 32, (8, 12))
    batch = Batch.packed(ids, ids, ids.roll(-1, 1), pad_token=0).to(device)
    losses = []
    for _ in range(STEPS):
        with torch.autocast(device.type, numbers, enabled=numbers != torch.float32):
            loss = model.loss(batch).mean
        loss.backward()  # type: ignore[no-untyped-call]
        with torch.no_grad():  # by hand: torch's optimizers load its compiler, which takes longer than all of this
            for weight in model.parameters():
                if weight.grad is not None:
                    weight.sub_(RATE * weight.grad)
                    weight.grad = None
        losses.append(float(loss.detach()))
    if not all(map(math.isfinite, losses)) or losses[-1] >= losses[0]:
        raise ArithmeticError(f"the loss of a toy model went from {losses[0]:.3f} to {losses[-1]:.3f} in {STEPS} steps")
    return f"the loss of toy fell from {losses[0]:.2f} to {losses[-1]:.2f} in {STEPS} steps"


def try_pieces() -> str:
    from sentencepiece import SentencePieceProcessor

    from limelight.cli.demo.numerals import pieces

    processor = SentencePieceProcessor(model_proto=pieces())
    cut = processor.encode(GERMAN, out_type=str)
    if processor.decode(cut) != GERMAN:
        raise ValueError(f"{GERMAN} became {processor.decode(cut)}")
    return f"{GERMAN} = {' + '.join(piece.lstrip('▁') for piece in cut)}"


def try_safetensors() -> str:
    import torch
    from safetensors.torch import load_file, save_file

    weights = {"a": torch.linspace(-1, 1, 1000), "b": torch.linspace(-1, 1, 1000).to(torch.bfloat16)}
    with tempfile.TemporaryDirectory() as folder:
        save_file(weights, Path(folder, "weights.safetensors"))
        back = load_file(Path(folder, "weights.safetensors"))
    if not all(torch.equal(back[name], weight) for name, weight in weights.items()):
        raise ValueError("weights came back from the file as others")
    return "weights came back the same"


def try_corpus() -> str:
    import polars

    with tempfile.TemporaryDirectory() as folder:
        pairs = polars.DataFrame({"source": ["one", "two", "one"], "target": ["eins", "zwei", "eins"]})
        pairs.write_parquet(Path(folder, "pairs.parquet"))
        left = polars.read_parquet(Path(folder, "pairs.parquet")).unique().height
    if left != 2:
        raise ValueError(f"three pairs, two of them equal, became {left} without duplicates")
    return "pairs in Parquet and back, without the duplicate"


def try_translating() -> str:
    """A bundle is written, verified, loaded and translates; what it says is noise, for it learnt nothing."""
    from limelight.decoding.config import SearchSettings
    from limelight.translator.translate import Translator

    with toy_bundle() as folder, Translator.load(folder, threads=1) as translator:
        [translation] = translator.translate([SENTENCE], SearchSettings(max_length=8), guards=False)
    if not math.isfinite(translation.score):
        raise ArithmeticError("the score of a translation is no number")
    return "a bundle was written, verified, and translated with"


def try_ctranslate2() -> str:
    """The same weights in both engines give one sentence the same probabilities. Without torch the engine translates alone."""
    if find_spec("torch") is None:
        return _try_engine_alone()
    from limelight.bundle import read
    from limelight.engines.ctranslate2 import CTranslate2Engine
    from limelight.engines.torch import TorchEngine
    from limelight.interop.ctranslate2.export import save
    from limelight.translator.loading import specials

    with toy_bundle() as folder:
        bundle = read(folder)
        model, special = bundle.load_model(), specials(bundle)
        vocabularies = (bundle.source_tokenizer.vocabulary, bundle.target_tokenizer.vocabulary)
        place = folder.with_name("engine")
        place.mkdir()
        save(model.config, model.state_dict(), vocabularies, special, [(1, 0)], place)
        other = CTranslate2Engine(place, vocabularies, special, model.config.max_length - 1)
        source, target = ([bundle.source_tokenizer.encode([text]).to_pylist()[0]] for text in (SENTENCE, GERMAN))
        [theirs], [ours] = other.score(source, target), TorchEngine(model, special, None).score(source, target)
        other.close()
    apart = max(abs(a - b) for a, b in zip(ours, theirs, strict=True))
    if not apart < MARGIN:
        raise ArithmeticError(f"the same weights score a piece {apart:.4f} apart in CTranslate2 and torch")
    return "the same weights give the same scores as in torch"


def _try_engine_alone() -> str:
    """A model of random numbers, 8 by 8, is written, loaded, and translates; what it says is noise."""
    import ctranslate2
    import numpy as np
    from ctranslate2.specs import TransformerSpec, model_spec

    draw, spec = np.random.default_rng(2017), TransformerSpec.from_config(1, 2)
    parts = {"self_attention/linear_0": 24, "/attention/linear_1": 16}  # queries, keys and values in one matrix

    def fill(layer: Any, name: str, value: object) -> None:
        if value is None:
            rows = next((rows for part, rows in parts.items() if part in name), 8)
            shape = (8,) if "norm" in name else (rows, 8)
            setattr(layer, name.rpartition("/")[2], draw.normal(size=shape).astype(np.float32))

    model_spec.visit_spec(spec, fill)
    words = ["<unk>", "<s>", "</s>", *"abcde"]
    spec.register_source_vocabulary(words)
    spec.register_target_vocabulary(words)
    spec.validate()
    with tempfile.TemporaryDirectory() as folder:
        spec.save(folder)
        engine = ctranslate2.Translator(folder, inter_threads=1, intra_threads=1)
        [made] = engine.translate_batch([["a", "b"]], max_decoding_length=8, return_scores=True)
    if not math.isfinite(made.scores[0]):
        raise ArithmeticError("the score of a translation is no number")
    return "a model was written, loaded, and translated with"


def ctranslate2_facts() -> dict[str, Any]:
    import ctranslate2

    found = {"cpu": sorted(ctranslate2.get_supported_compute_types("cpu"))}
    if ctranslate2.get_cuda_device_count():
        found["cuda"] = sorted(ctranslate2.get_supported_compute_types("cuda"))
    return {"version": ctranslate2.__version__, "compute_types": found}


@contextlib.contextmanager
def toy_bundle() -> Iterator[Path]:
    """A translator that learnt nothing, in a folder that goes away."""
    from sentencepiece import SentencePieceProcessor

    from limelight.bundle import BundleSettings, write
    from limelight.cli.demo.numerals import pieces
    from limelight.model import ModelConfig, Transformer

    with tempfile.TemporaryDirectory() as folder:
        learnt = pieces()
        model = Transformer(ModelConfig.preset("toy", SentencePieceProcessor(model_proto=learnt).vocab_size()))
        write(Path(folder, "toy"), BundleSettings(languages=("en", "de"), model=model.config), model.state_dict(), learnt)
        yield Path(folder, "toy")


PARTS: dict[str, Callable[[], str]] = {
    "step": try_step,
    "pieces": try_pieces,
    "safetensors": try_safetensors,
    "corpus": try_corpus,
    "translating": try_translating,
    "ctranslate2": try_ctranslate2,
}
FACTS: dict[str, Callable[[], dict[str, Any]]] = {"torch": torch_facts, "ctranslate2": ctranslate2_facts}
BY = {"step": "torch", "safetensors": "torch", "translating": "torch", "corpus": "polars"}


def list_parts() -> list[str]:
    """What can be tried here: without limelight[train] nothing that is tried by its packages."""
    return [name for name in PARTS if name not in BY or find_spec(BY[name]) is not None]


def main() -> None:
    out = os.fdopen(os.dup(1), "wb", 0)
    os.dup2(2, 1)  # what libraries print is not among the lines that are read

    def say(**values: Any) -> None:
        out.write(json.dumps(values).encode() + b"\n")

    for name, ask in FACTS.items():
        if find_spec(name) is None and name in BY.values():
            continue
        say(begin=name)
        try:
            say(facts={name: ask()})
        except Exception as error:  # whatever a broken library raises; it is what we came for
            say(name=f"import {name}", works=False, seconds=0.0, said=f"{type(error).__name__}: {error}")
    for name in list_parts():
        say(begin=name)
        began = time.perf_counter()
        try:
            works, said = True, PARTS[name]()
        except Exception as error:
            works, said = False, f"{type(error).__name__}: {error}"
        say(name=name, works=works, seconds=round(time.perf_counter() - began, 2), said=said)


if __name__ == "__main__":
    main()

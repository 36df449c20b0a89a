"""Other toolkits that train the same Transformer on the same sentences: Hugging Face's `Seq2SeqTrainer` and eole.

    hugging_face    with eager attention, which is its fastest on a CPU; its own loop, its own loader
    Eole            `eole train` as it is installed, timed from outside by its log; its own loop, its own batches

Each runs its real loop in a process of its own and is held between turns, so that it idles while others run. What is timed is all of
the loop: loading and padding of batches, steps, bookkeeping; not validation and not saving, which are switched off.

eole cannot share an environment with us. eole.yaml says how to make one; name its interpreter:

    LIMELIGHT_EOLE=eole-venv/bin/python python benchmarks/train.py

transformers needs `pip install accelerate` to train.
"""

import json
import os
import re
import signal
import subprocess
import tempfile
import time
from collections import deque
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection
from pathlib import Path

import torch
import transformers  # loads a class's file when it is first used, which takes seconds: only in the process that needs it
import yaml
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from yardstick import END, PAD, SIZES, START, VOCAB, real_batches

Timed = tuple[float, int]  # seconds, and the target pieces seen in them; ends are pieces, padding is not
Rows = list[list[int]]
Pairs = tuple[Rows, Rows]  # the sources and targets of a batch, each with its end
EOLE = "LIMELIGHT_EOLE"
# eole counts rows times the longest of both sides and sorts by source first; this gives it as many target pieces in a batch as others have.
EOLE_BATCH = 5000


class Gate:
    """What a training loop calls after each step. It lets the loop go on only in its turn, and times the turn.

    The clock starts when the loop is let go and stops after the last step, so that it covers the loading of as many batches as steps.
    The first step makes a turn by itself: with it the loop says that it has begun.
    """

    def __init__(self, pipe: Connection) -> None:
        self.pipe = pipe
        self.left, self.pieces, self.start = 1, 0, time.perf_counter()

    def __call__(self, target_pieces: int) -> None:
        self.pieces += target_pieces
        self.left -= 1
        if self.left:
            return
        self.pipe.send((time.perf_counter() - self.start, self.pieces))
        asked = self.pipe.recv()
        if asked is None:
            raise SystemExit
        self.left, self.pieces, self.start = asked, 0, time.perf_counter()


def pairs_of_batches() -> list[Pairs]:
    """The batches of `yardstick` as lists of ids, the way a corpus hands them out."""

    def rows(ids: Tensor) -> Rows:
        return [row[row != PAD].tolist() for row in ids]

    return [(rows(source), rows(target_out)) for source, _, target_out in real_batches()]


def hugging_face(gate: Callable[[int], None], bf16: bool, size: str = "small", attention: str = "eager", smoothing: float = 0.1) -> None:
    """Trains until the gate ends it. An item of the data set is a batch, since the trainer only counts sentences. bf16: by autocast."""
    batches = pairs_of_batches()
    with tempfile.TemporaryDirectory() as folder:
        arguments = transformers.Seq2SeqTrainingArguments(
            output_dir=folder,
            use_cpu=True,
            bf16=bf16,
            per_device_train_batch_size=1,
            train_sampling_strategy="sequential",
            num_train_epochs=1000,
            learning_rate=3e-4,
            optim="adamw_torch_fused",
            max_grad_norm=1.0,
            label_smoothing_factor=smoothing,
            remove_unused_columns=False,
            dataloader_pin_memory=False,
            logging_strategy="no",
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
        )
        pieces = [sum(map(len, targets)) for _, targets in batches]
        trainer = transformers.Seq2SeqTrainer(
            model=marian(size, attention),
            args=arguments,
            train_dataset=batches,
            data_collator=collate,
            callbacks=[AfterEachStep(gate, pieces)],
        )
        trainer.train()


class AfterEachStep(transformers.TrainerCallback):
    def __init__(self, gate: Callable[[int], None], pieces: list[int]) -> None:
        self.gate, self.pieces = gate, pieces

    def on_step_end(self, args: object, state: "transformers.TrainerState", control: object, **_: object) -> None:
        self.gate(self.pieces[(state.global_step - 1) % len(self.pieces)])


def describe_peer(shape: Mapping[str, int], vocab_size: int, dropout: float, attention: str) -> dict[str, object]:
    """What a configuration of transformers' encoder-decoders says, so that the model is as ours."""
    halves = {
        f"{half}_{name}": shape[own]
        for half in ("encoder", "decoder")
        for name, own in (("layers", "layers"), ("attention_heads", "heads"), ("ffn_dim", "ff"))
    }
    return {
        "vocab_size": vocab_size,
        "d_model": shape["d"],
        **halves,
        "activation_function": "relu",
        "dropout": dropout,
        "attention_dropout": 0.0,
        "activation_dropout": 0.0,
        "scale_embedding": True,
        "max_position_embeddings": 1024,
        "pad_token_id": PAD,
        "bos_token_id": START,
        "eos_token_id": END,
        "decoder_start_token_id": START,
        "forced_eos_token_id": None,
        "attn_implementation": attention,
    }


def marian(size: str, attention: str) -> "transformers.PreTrainedModel":
    torch.manual_seed(0)
    return transformers.MarianMTModel(transformers.MarianConfig(**describe_peer(SIZES[size], VOCAB, 0.1, attention)))


def collate(items: list[Pairs]) -> dict[str, Tensor]:
    """[([[7, 3], [8, 9, 3]], ...)] -> ids padded to (2, 3), what is visible, and targets moved by one place."""

    def padded(rows: Rows, padding: int = PAD) -> Tensor:
        return pad_sequence([torch.tensor(row) for row in rows], batch_first=True, padding_value=padding)

    ((sources, targets),) = items
    source = padded(sources)
    return {
        "input_ids": source,
        "attention_mask": (source != PAD).long(),
        "decoder_input_ids": padded([[START, *row[:-1]] for row in targets]),
        "labels": padded(targets, -100),
    }


class Eole:
    """`eole train` in its own interpreter, stopped by a signal between turns. Has `turn` and `stop` like any contestant.

    It reads the same sentences as files of pieces, so that it has nothing to tokenize, and makes its own batches.
    """

    STEP = re.compile(r"Step\s+\d+/.*; bsz:\s*\d+/\s*(\d+)/")  # its target pieces, one batch to a line

    def __init__(self, threads: int, bf16: bool, size: str = "small") -> None:
        self.place = tempfile.TemporaryDirectory()
        folder = Path(self.place.name)
        write_corpus(folder)
        (folder / "eole.json").write_bytes(json.dumps(eole_settings(size, bf16)).encode())
        self.said: deque[str] = deque(maxlen=30)
        self.process = subprocess.Popen(
            [Path(os.environ[EOLE]).absolute(), "-m", "eole.bin.main", "train", "-c", "eole.json"],
            cwd=folder,
            env={**os.environ, "OMP_NUM_THREADS": str(threads)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            # A group for the signals of turns; of our session, so that the kernel ends it with us, should we be killed while it is stopped.
            process_group=0,
        )
        try:
            self._steps(1)
        except BaseException:
            self.stop()
            raise

    def turn(self, steps: int) -> Timed:
        start = time.perf_counter()
        os.killpg(self.process.pid, signal.SIGCONT)
        pieces = self._steps(steps)
        return time.perf_counter() - start, pieces

    def _steps(self, steps: int) -> int:
        pieces = 0
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said.append(line)
            if found := self.STEP.search(line):
                pieces += int(found[1])
                steps -= 1
                if not steps:
                    os.killpg(self.process.pid, signal.SIGSTOP)
                    return pieces
        raise RuntimeError(f"eole, started with {EOLE}={os.environ[EOLE]}, ended by itself; it said last:\n{''.join(self.said)}")

    def stop(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.place.cleanup()


def write_corpus(folder: Path) -> None:
    """Files of pieces `p4 p5 ...` without ends, which eole adds itself."""
    sides: tuple[Rows, Rows] = ([], [])
    for batch in pairs_of_batches():
        for side, rows in zip(sides, batch, strict=True):
            side += rows
    for name, side in zip(("source", "target"), sides, strict=True):
        lines = (" ".join(f"p{number}" for number in row[:-1]) for row in side)
        (folder / name).write_bytes("".join(f"{line}\n" for line in lines).encode())
    (folder / "vocab.txt").write_bytes("".join(f"p{number}\n" for number in range(4, VOCAB)).encode())


def eole_settings(size: str, bf16: bool) -> dict[str, dict[str, object]]:
    """Those of eole.yaml, with the size, dropout and optimizer of the others, and a line of log for each step."""
    settings = yaml.safe_load(Path(__file__).with_name("eole.yaml").read_bytes())
    shape = SIZES[size]
    del settings["transforms_configs"]
    settings |= {
        "transforms": [],
        "report_every": 1,
        "data": {"train": {"path_src": "source", "path_tgt": "target"}},
    }
    settings["model"] |= {
        "layers": shape["layers"],
        "hidden_size": shape["d"],
        "heads": shape["heads"],
        "transformer_ff": shape["ff"],
    }
    settings["model"]["embeddings"]["word_vec_size"] = shape["d"]
    settings["training"] |= {
        "batch_size": EOLE_BATCH,
        "dropout": [0.1],
        "learning_rate": 3e-4,
        "decay_method": "none",
        "train_steps": 1_000_000,
        "valid_steps": 1_000_000,
        "save_checkpoint_steps": 1_000_000,
        "average_decay": 0.0,
        "compute_dtype": "bf16" if bf16 else "fp32",
    }
    return settings

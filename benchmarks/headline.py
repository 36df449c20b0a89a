"""The figures that the README leads with, each measured again by one command and written with the facts of the machine.

    python benchmarks/headline.py training     pieces a second: our loop, bare steps, Hugging Face's trainer, eole; 5 minutes
    python benchmarks/headline.py decoding     pieces a second: ours, Hugging Face `generate`, CTranslate2, the same weights; 10 minutes
    python benchmarks/headline.py quality      BLEU and chrF of Multi30k en-de after half an hour (LIMELIGHT_DATA)
    python benchmarks/headline.py first-hour   a new environment to a served translator by the commands of the README (LIMELIGHT_DATA)

Results go to benchmarks/results/NAME.json, from which docs/site draws bars. What counts is ratios, taken in turns in one run; seconds
are those of the machine that the file names.
"""

import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

RESULTS = Path(__file__).parent / "results"
SEARCHED = (
    "Limelight fp32",
    "Hugging Face fp32",
    "Hugging Face fp32, workers",
    "CTranslate2 fp32",
    "Limelight bf16",
    "Hugging Face bf16",
    "CTranslate2 int8",
)


def training(seconds: float | None) -> dict[str, Any]:
    import train

    threads, numbers = train.runtime.choose_threads().value, str(train.model.usual_numbers()).removeprefix("torch.")
    found = train.measure(threads, rounds=5, steps=8)
    return {"unit": "target pieces/s", "model": "small", "numbers": numbers, "threads": threads, "rounds": found}


def decoding(seconds: float | None) -> dict[str, Any]:
    import translate

    threads = translate.runtime.choose_threads().value
    translate.prove_same("small")
    makers = {name: make for name, make in translate.contestants("small", threads).items() if name in SEARCHED}
    started = translate.together(makers, threads)
    turns = [sorted(range(len(translate.real_works()) - translate.SINGLES), reverse=True)]
    try:
        found = {f"beam {beam}": translate.speeds(started, beam, 3, turns, turns) for beam in (1, 4)}
    finally:
        for contestant in started.values():
            contestant.stop()
    return {"unit": "target pieces/s", "model": "small, random weights", "threads": threads, "rounds": found}


def quality(seconds: float | None) -> dict[str, Any]:
    """`limelight train --budget`, scored on text that it has never seen."""
    data, minutes = Path(os.environ["LIMELIGHT_DATA"], "multi30k"), max(1, round((seconds or 1800) / 60))
    with tempfile.TemporaryDirectory(prefix="headline-") as work:
        run = Path(work, "en-de")
        texts = {name: [str(data / f"{name}.{code}.gz") for code in ("en", "de")] for name in ("train", "val", "test_2016_flickr")}
        held_out = [word for text in texts["val"] for word in ("--valid", text)]
        held_out += [word for text in texts["test_2016_flickr"] for word in ("--test", text)]
        limelight("train", *texts["train"], *held_out, "-o", str(run), "--budget", f"{minutes}m", "--seed", "1", "-q")
        scores = json.loads(limelight("evaluate", str(run), *texts["test_2016_flickr"], "--json"))
        status = json.loads((run / "status.json").read_text("utf-8"))
    return {"text": "Multi30k en-de, test_2016_flickr", "minutes": minutes, "steps": status["step"], "scores": scores}


def first_hour(seconds: float | None) -> dict[str, Any]:
    import first_hour

    return first_hour.lived(Path(os.environ["LIMELIGHT_DATA"]), seconds)


def limelight(*words: str) -> str:
    done = subprocess.run([sys.executable, "-m", "limelight", *words], check=True, stdout=subprocess.PIPE)
    return done.stdout.decode()


def facts() -> dict[str, Any]:
    """Where and with what it was measured."""
    known = Path("/proc/cpuinfo")  # of Linux
    lines = known.read_text("utf-8").split("\n") if known.exists() else []
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    processor = named[0] if named else platform.processor()
    names = ("torch", "transformers", "ctranslate2")
    return {
        "date": datetime.datetime.now(tz=datetime.UTC).date().isoformat(),
        "processor": processor, "cores": os.cpu_count(), "python": platform.python_version(),
        "load_before": round(os.getloadavg()[0], 2), **{name: version(name) for name in names},
    }  # fmt: skip


MEASURED: dict[str, Callable[[float | None], dict[str, Any]]] = {
    "training": training, "decoding": decoding, "quality": quality, "first-hour": first_hour,
}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="+", choices=MEASURED)
    parser.add_argument("--seconds", type=float, help="of training, where a run has a budget: a trial, which needs -o")
    parser.add_argument("-o", "--output", type=Path, help="a folder; else that of the results that the docs show")
    asked = parser.parse_args()
    if asked.seconds and not asked.output:
        parser.error("--seconds makes a trial: say with -o where it should go")
    asked.output = asked.output or RESULTS
    asked.output.mkdir(parents=True, exist_ok=True)
    for name in asked.names:
        made = facts()
        found = {"made": made, **MEASURED[name](asked.seconds)}
        text = json.dumps(found, indent=1, ensure_ascii=False) + "\n"
        (asked.output / f"{name}.json").write_text(text, encoding="utf-8")
        sys.stdout.write(text)


if __name__ == "__main__":
    main()

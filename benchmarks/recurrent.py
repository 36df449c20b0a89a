"""The claim of the paper, measured: `small` against recurrent networks of the same size, on short and on long sentences.

    python benchmarks/recurrent.py --speed --quality --seconds 75 --json recurrent.json --plot docs/recurrent.svg
    python benchmarks/recurrent.py --from-json recurrent.json --plot docs/recurrent.svg

Needs Multi30k in the folder LIMELIGHT_DATA. Every length has the same captions: 1, 4 or 10 are joined, in another order in every epoch, so
that only the length differs. All models have the same pieces, batches, loss, optimizer and training time, and are trained in
turns, each in a process of its own: ratios are taken turn by turn, since the speed of a shared machine moves by half.
"""

import argparse
import gzip
import json
import os
import statistics
import sys
from collections.abc import Callable
from pathlib import Path

from matplotlib.figure import Figure

sys.path.insert(0, str(Path(__file__).parent))
from contestant import Contestant
from limelight.text.pieces.tokenizer import PieceSettings, Tokenizer, learn
from recurrent_training import FED, LSTM, MODELS, TRANSFORMER, Results, Training, Work, join

PIECES = 8000
CAPTION = 15  # target pieces of a caption on average
REST = 0.3  # seconds: OpenMP threads of the one before spin for 0.2 s before they sleep
NAMES = {TRANSFORMER: "Transformer", LSTM: "LSTM", FED: "LSTM with input feeding"}
COLOURS = {TRANSFORMER: "C0", LSTM: "C1", FED: "C2"}
SLICES = 5  # turns that the training time is cut into


def measure_speed(works: dict[str, Work], rounds: int, batches: int) -> Results:
    """Training pieces a second of each model, round by round."""
    contestants = {name: Contestant(Training, work, rest=REST) for name, work in works.items()}
    for contestant in contestants.values():
        contestant.ask("timed", batches)  # makes the kernels
    found: Results = {name: [] for name in works}
    for _ in range(rounds):
        for name, contestant in contestants.items():
            pieces, seconds = contestant.ask("timed", batches)
            found[name].append(pieces / seconds)
    for contestant in contestants.values():
        contestant.stop()
    return found


def measure_quality(works: dict[str, Work]) -> Results:
    """Every model trained for its seconds, in turns, then scored on captions that it has not seen."""
    contestants = {name: Contestant(Training, work, rest=REST) for name, work in works.items()}
    turns: dict[str, list[Results]] = {name: [] for name in works}
    for number in range(1, SLICES + 1):
        for name, contestant in contestants.items():
            turns[name].append(contestant.ask("turn", works[name].seconds * number / SLICES))
    found = {}
    for name, contestant in contestants.items():
        total = {key: sum(turn[key] for turn in turns[name]) for key in ("pieces", "seconds", "steps")}
        found[name] = {**total, **contestant.ask("score")}
        contestant.stop()
    return found


def read(name: str) -> list[tuple[str, str]]:
    folder = Path(os.environ["LIMELIGHT_DATA"]) / "multi30k"
    sides = [gzip.decompress((folder / f"{name}.{side}.gz").read_bytes()).decode() for side in ("en", "de")]
    return list(zip(*(side.rstrip("\n").split("\n") for side in sides), strict=True))


def make_works(args: argparse.Namespace) -> Callable[[str, int, int], Work]:
    """(model, length, budget) -> what that process does. Pieces are learnt once, of the training captions."""
    train, held_out = read("train"), read("val")
    model = learn((text for pair in train for text in pair), PieceSettings(size=PIECES))
    encode = Tokenizer(model).encode
    pairs, unseen = (list(zip(*(encode(side).to_pylist() for side in zip(*each, strict=True)), strict=True)) for each in (train, held_out))

    def work(name: str, length: int, budget: int) -> Work:
        joined = max(1, round(length / CAPTION))
        groups = [slice(at, at + joined) for at in range(0, len(unseen) - joined + 1, joined)]
        references = [" ".join(target for _, target in held_out[group]) for group in groups]
        asked = [join(unseen[group]) for group in groups]
        return Work(name, pairs, asked, references, model, joined, length, budget, args.seconds, args.peak, args.threads)

    return work


def measure(args: argparse.Namespace) -> Results:
    work, lengths = make_works(args), [int(length) for length in args.lengths.split(",")]
    results: Results = {"seconds": args.seconds, "threads": args.threads, "lengths": {}}
    for length in lengths:
        found = results["lengths"][str(length)] = {}
        if args.speed:
            works = {name: work(name, length, args.speed_budget) for name in MODELS}
            found["speed"] = measure_speed(works, args.rounds, args.batches)
        if args.quality:
            works = {name: work(name, length, args.budget) for name in args.models.split(",")}
            found["quality"] = measure_quality(works)
        held_out = work(TRANSFORMER, length, 0).held_out
        found["mean_length"] = statistics.mean(len(target) for _, target in held_out)
        print(table({"lengths": {str(length): found}}), flush=True)
    return results


def table(results: Results) -> str:
    """A few lines for each length. Ratios are those of the Transformer to the other: above 1 it is faster, or has more BLEU."""
    lines = []
    for length, found in results["lengths"].items():
        for name, values in found.get("speed", {}).items():
            times = [a / b for a, b in zip(found["speed"][TRANSFORMER], values, strict=True)]
            lines.append(
                f"length {length:>4s}  {name:14s} trains {statistics.median(values):6.0f} target pieces/s;"
                f" Transformer / this {statistics.median(times):.2f} ({min(times):.2f}-{max(times):.2f})"
            )
        scored = found.get("quality", {})
        for name, its in scored.items():
            # Below 1 BLEU is chance, and its ratios say nothing.
            comparable = TRANSFORMER in scored and its["bleu"] >= 1
            times = f", Transformer / this {scored[TRANSFORMER]['bleu'] / its['bleu']:.2f}" if comparable else ""
            lines.append(
                f"length {length:>4s}  {name:14s} after {its['seconds']:.0f} s: {its['steps']} steps, {its['pieces']:,} pieces,"
                f" nll {its['nll']:.3f}, BLEU {its['bleu']:.1f} (length {its['length_ratio']:.2f}){times};"
                f" decodes {its['decoded_pieces_per_second']:.0f} pieces/s"
            )
    return "\n".join(lines)


def draw(results: Results, path: Path) -> None:
    """How many times as fast the Transformer trains, and BLEU after the same time, over the length."""
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    speed, quality = figure.subplots(1, 2)
    by_length = sorted(results["lengths"].values(), key=lambda found: found["mean_length"])
    for name in (LSTM, FED):
        points = []
        for found in (found for found in by_length if "speed" in found):
            times = [a / b for a, b in zip(found["speed"][TRANSFORMER], found["speed"][name], strict=True)]
            middle = statistics.median(times)
            points.append((found["mean_length"], middle, middle - min(times), max(times) - middle))
        if points:
            x, y, below, above = zip(*points, strict=True)
            speed.errorbar(x, y, yerr=(below, above), color=COLOURS[name], marker="o", capsize=3, label=f"against {NAMES[name]}")
    speed.axhline(1, color="0.6", linewidth=1)
    for name in MODELS:
        scored = [(f["mean_length"], f["quality"][name]["bleu"]) for f in by_length if name in f.get("quality", {})]
        if scored:
            quality.plot(*zip(*scored, strict=True), color=COLOURS[name], marker="o", label=NAMES[name])
    speed.set_title("training speed of the Transformer, times the other")
    quality.set_title(f"BLEU after {results['seconds']:.0f} s of training each")
    for axes in (speed, quality):
        axes.set(xlabel="target pieces of a sentence", xlim=(0, None), ylim=(0, None))
        if axes.get_legend_handles_labels()[0]:
            axes.legend()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--speed", action="store_true", help="training speed of all three models")
    parser.add_argument("--quality", action="store_true", help="nll and BLEU after the same training time")
    parser.add_argument("--seconds", type=float, default=300.0, help="training time of each model at each length")
    parser.add_argument("--models", default=f"{TRANSFORMER},{LSTM}", help=f"of --quality; also {FED}")
    parser.add_argument("--lengths", default="15,60,150", help="mean target pieces of a sentence")
    parser.add_argument("--budget", type=int, default=2048, help="target pieces of a batch, for --quality")
    parser.add_argument("--speed-budget", type=int, default=4096, help="the same for --speed")
    parser.add_argument("--peak", type=float, default=2e-3, help="highest learning rate")
    parser.add_argument("--rounds", type=int, default=5, help="of --speed")
    parser.add_argument("--batches", type=int, default=2, help="of each round")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", type=Path, help="write the figures there")
    parser.add_argument("--from-json", type=Path, help="measure nothing: figures of an earlier run")
    parser.add_argument("--plot", type=Path, help="draw them there (SVG)")
    args = parser.parse_args()
    if unknown := set(args.models.split(",")) - MODELS.keys():
        parser.error(f"there is no model {', '.join(sorted(unknown))}; the models are {', '.join(MODELS)}")
    if not args.from_json and "LIMELIGHT_DATA" not in os.environ:
        parser.error("set LIMELIGHT_DATA to the folder that holds multi30k/, or give --from-json")
    results = json.loads(args.from_json.read_bytes()) if args.from_json else measure(args)
    if args.json:
        args.json.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", newline="\n")
    if args.plot:
        draw(results, args.plot)
    if args.from_json:
        print(table(results))


if __name__ == "__main__":
    main()

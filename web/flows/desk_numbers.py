"""What Python says of a sentence, for the flow that compares it with the page: everything as numbers, nothing rounded.

python flows/desk_numbers.py "seven two five" '{"cross.1.1": 0}'
"""

import json
import sys
from pathlib import Path

from limelight import Translator

BUNDLE = Path(__file__).parents[2] / "tests" / "bundles" / "format-1"


def main(text: str, gates: str) -> None:
    trace = Translator.load(BUNDLE).trace(text, gates=json.loads(gates))
    told = {
        "text": trace.target.text,
        "logp": trace.target.logp,
        "attention": {kind: values.tolist() for kind, values in trace.attention.items()},
        "scores": trace["enc.0.scores"].tolist(),
        "tokens": [
            {"piece": each.piece, "logp": each.logp, "entropy": each.entropy, "rank": each.rank, "margin": each.margin}
            | {"topk": list(each.topk)}
            for each in trace.target.tokens
        ],
        "heads": {each.id: [each.entropy, each.diagonal, each.end_mass] for each in trace.heads},
        "align": trace.align.head,
        "verdict": None
        if trace.baseline is None
        else {"text": trace.baseline.text, "delta": trace.baseline.delta_logp, "deltas": list(trace.baseline.deltas)},
    }
    sys.stdout.buffer.write(json.dumps(told).encode())


if __name__ == "__main__":
    main(*sys.argv[1:])

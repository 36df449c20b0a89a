import json
import sys
from pathlib import Path

import numpy as np
import onnxruntime
from sentencepiece import SentencePieceProcessor

folder = Path(sys.argv[1])
config = json.loads((folder / "config.json").read_bytes())
source, target = (SentencePieceProcessor(model_file=str(folder / config["pieces"][side])) for side in ("source", "target"))
encoder, decoder = (onnxruntime.InferenceSession(folder / config[side]["file"]) for side in ("encoder", "decoder"))
outputs = [port["name"] for port in config["encoder"]["outputs"]]
past = [port for port in config["decoder"]["inputs"] if port["name"].startswith("past.")]


def translate(text: str) -> str:
    end = [config["special"]["end"]] if config["source_ends"] else []
    ids = np.array([[*config["source_begin"], *source.encode(text), *end]])
    given = dict(zip(outputs, encoder.run(None, {"source": ids}), strict=True))
    given |= {port["name"]: np.zeros((1, port["shape"][1], 0, port["shape"][3]), np.float32) for port in past}
    token, taken = config["special"]["start"], []
    while len(taken) < min(config["max_length"] - 1, 3 * ids.size + 20):
        log_probs, *present = decoder.run(None, {"token": np.array([token]), **given})
        given |= {port["name"]: tensor for port, tensor in zip(past, present, strict=True)}
        log_probs[:, config["never"]] = -np.inf
        token = int(log_probs[0].argmax())
        if token == config["special"]["end"]:
            break
        taken.append(token)
    return target.decode(taken)


for text in sys.argv[2:]:
    sys.stdout.write(f"{translate(text)}\n")

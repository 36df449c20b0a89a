"""This script runs COMET in the Python of another environment, which has unbabel-comet. A request comes as JSON on stdin, and the scores go
as JSON to stdout.

It is sent there as text and imports nothing of ours. Any Python since 3.8 can read it.
"""

import importlib
import json
import os
import sys

NOT_INSTALLED = 3  # our exit code when there is no COMET in this environment


def run():  # type: ignore[no-untyped-def]
    # COMET and its libraries print to stdout. They get stderr instead, and the answer alone goes where it is waited for.
    answer = os.fdopen(os.dup(1), "w", encoding="utf-8", newline="\n")
    os.dup2(2, 1)
    request = json.loads(sys.stdin.buffer.read().decode("utf-8"))
    try:
        comet = importlib.import_module("comet")
    except ModuleNotFoundError as error:
        sys.stderr.write(str(error) + "\n")
        return NOT_INSTALLED
    name = request["model"]
    path = name if os.path.exists(name) else comet.download_model(name)  # noqa: PTH110
    model = comet.load_from_checkpoint(path)
    output = model.predict(request["rows"], batch_size=request["batch_size"], gpus=request["gpus"])
    scores = [float(score) for score in output.scores]
    json.dump({"scores": scores, "version": getattr(comet, "__version__", "unknown")}, answer)
    answer.close()
    return 0


if __name__ == "__main__":
    sys.exit(run())  # type: ignore[no-untyped-call]

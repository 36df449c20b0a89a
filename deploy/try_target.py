"""The environment of an image without docker and without root: its size, and how soon it serves.

    python deploy/try_target.py serve FOLDER --bundle BUNDLE        a bundle with an export, since this image has no torch
    python deploy/try_target.py train FOLDER --bundle BUNDLE [--torch-index https://download.pytorch.org/whl/cpu]

Executes the steps of deploy/Dockerfile that fill /opt/limelight, in FOLDER and with the Python that runs this. The wheel is made of what is
there: build the page first (npm run build in web/). `try_image.py` tries the whole image, and needs root.
"""

import argparse
import os
import shlex
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from dockerfile import stages

ROOT = Path(__file__).parents[1]
STAGES = {"serve": ("runtime",), "train": ("runtime", "training")}
PORT = 5996


def main() -> int:
    parser = argparse.ArgumentParser(description="The environment of an image without docker.")
    parser.add_argument("target", choices=STAGES)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--bundle", type=Path, required=True)
    parser.add_argument("--torch-index", default="https://download.pytorch.org/whl/cpu")
    given = parser.parse_args()
    folder = given.folder.resolve()
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", folder / "dist", ROOT], check=True
    )
    places = {"/opt/limelight": f"{folder}/opt", "/src/requirements": f"{ROOT}/deploy/requirements", "/dist": f"{folder}/dist"}
    for name, _, steps in stages((ROOT / "deploy" / "Dockerfile").read_bytes().decode()):
        for command in [rest for step, rest in steps if step == "RUN" and name in STAGES[given.target]]:
            for inside, outside in places.items():
                command = command.replace(inside, outside)
            words = shlex.split(command.replace("${TORCH_INDEX}", given.torch_index))
            say("RUN " + shlex.join(words))
            subprocess.run([sys.executable, *(["-m"] if words[0] == "pip" else []), *words[words[0] == "python" :]], check=True)
    size = sum(path.lstat().st_blocks * 512 for path in (folder / "opt").rglob("*")) / 2**20
    say(f"{given.target}: {size:.0f} MB")
    for _ in range(3):
        say(f"{given.target}: ready after {seconds_until_ready(folder / 'opt', given.bundle):.1f} s")
    return 0


def seconds_until_ready(environment: Path, bundle: Path) -> float:
    command = [environment / "bin" / "limelight", "serve", "--port", str(PORT), bundle]
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    began = time.perf_counter()
    server = subprocess.Popen(command, stderr=subprocess.DEVNULL, env=variables)
    try:
        while not is_ready():
            if server.poll() is not None:
                raise SystemExit(f"the server ended with code {server.returncode}")
            time.sleep(0.02)
        return time.perf_counter() - began
    finally:
        server.terminate()
        server.wait()


def is_ready() -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{PORT}/readyz", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())

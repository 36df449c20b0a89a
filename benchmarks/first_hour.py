"""A stranger's first hour: a new environment, an empty home, the commands of the README as they are written, and the page in a browser.

`python benchmarks/headline.py first-hour` measures it. What is not as for a stranger: the package comes as a wheel that was just built,
and the two files are those of Tatoeba in LIMELIGHT_DATA.
"""

import gzip
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
import venv
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
READY, PATIENCE = "http://127.0.0.1:5000/readyz", 60.0
SENTENCE = "Wo ist der Bahnhof?"


def lived(data: Path, seconds: float | None) -> dict[str, Any]:
    """Each command with its seconds and its last lines; the page as `first-hour.png` in the folder for temporary files."""
    said: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="first-hour-") as folder:
        home = Path(folder)
        for code in ("de", "en"):
            with gzip.open(data / "tatoeba" / "de-en" / f"train.{code}.gz", "rb") as packed:
                (home / f"tatoeba.{code}").write_bytes(packed.read())
        environment = empty(home)
        for line in commands():
            began = time.perf_counter()
            asked = re.sub(r"--budget \S+", f"--budget {seconds:.0f}s", line) if seconds else line
            if line.startswith("pip install"):
                printed = installed(home, environment)
            elif line.startswith("limelight serve"):
                printed = served(line, home, environment)
            else:
                printed = ran(["bash", "-c", asked], home, environment)
            said.append({"command": asked, "seconds": round(time.perf_counter() - began, 1), "said": printed.split("\n")[-16:]})
            sys.stderr.write(f"{json.dumps(said[-1], ensure_ascii=False)}\n")
    return {"commands": said, "seconds": round(sum(each["seconds"] for each in said), 1)}


def commands() -> list[str]:
    """The README's to install what is published, and those of its door "Train from your text", up to the server."""
    text = (ROOT / "README.md").read_text("utf-8")
    [install] = set(re.findall(r"`(pip install 'limelight\[serve,train\]')`", text))
    _, _, door = text.partition("\n### Train from your text\n")
    found = re.findall(r"^\$ (.+)$", door.partition("```console\n")[2].partition("```")[0], flags=re.M)
    return [install, *found[: next(at for at, line in enumerate(found) if line.startswith("limelight serve")) + 1]]


def empty(home: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_", "LANG"))}
    tools = f"{home / 'venv' / 'bin'}:/usr/bin:/bin"
    return {**kept, "HOME": str(home), "PATH": tools, "COLUMNS": "110"}


def ran(words: list[str], home: Path, environment: dict[str, str]) -> str:
    done = subprocess.run(words, cwd=home, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        raise SystemExit(f"{words} ended with {done.returncode}:\n{done.stdout.decode()[-3000:]}")
    return done.stdout.decode().strip()


def installed(home: Path, environment: dict[str, str]) -> str:
    """A CPU build of torch, then the wheel with what a server needs; without a compiler on the way."""
    subprocess.run(
        [sys.executable, str(ROOT / "release" / "make.py"), "--short", "-o", str(home / "wheel")],
        check=True,
        stdout=subprocess.PIPE,
    )
    venv.create(home / "venv", with_pip=True)
    [torch] = re.findall(r"torch==[\d.]+", (ROOT / "Makefile").read_text("utf-8"))
    [wheel] = (home / "wheel").glob("*.whl")
    pip = [str(home / "venv" / "bin" / "pip"), "install", "--quiet", "--only-binary", ":all:"]
    ran([*pip, torch], home, environment)
    return ran([*pip, f"{wheel}[serve,train]"], home, environment)


def served(line: str, home: Path, environment: dict[str, str]) -> str:
    """Until the page is there and has translated; then it is told to stop."""
    with (home / "serve.log").open("wb") as log:
        server = subprocess.Popen(line.split(), cwd=home, env=environment, stdout=log, stderr=log)
        try:
            wait_until_ready(server)
            seen()
            body = json.dumps({"text": SENTENCE}).encode()
            asked = urllib.request.Request(READY.replace("readyz", "api/v1/translate"), body, {"Content-Type": "application/json"})
            with urllib.request.urlopen(asked, timeout=PATIENCE) as answer:
                result = json.loads(answer.read())["results"][0]
        finally:
            server.send_signal(signal.SIGTERM)
            server.wait(PATIENCE)
    return f"{(home / 'serve.log').read_text('utf-8').strip()}\n{SENTENCE} -> {result.get('text', result)}"


def wait_until_ready(server: subprocess.Popen[bytes]) -> None:
    late = time.monotonic() + PATIENCE
    while server.poll() is None and time.monotonic() < late:
        try:
            with urllib.request.urlopen(READY, timeout=5):
                return
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.2)
    raise SystemExit("the server did not get ready")


def seen() -> None:
    """The page, as a picture to be looked at."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser:
        picture = Path(tempfile.gettempdir(), "first-hour.png")
        words = [
            browser,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--window-size=1200,800",
            "--virtual-time-budget=4000",
        ]
        subprocess.run([*words, f"--screenshot={picture}", READY.replace("readyz", "")], capture_output=True, timeout=PATIENCE)
        sys.stderr.write(f"the page: {picture}\n")

"""The files of a bundle have fixed names, and one error refuses a bundle with all its problems."""

from collections.abc import Sequence
from pathlib import Path

from limelight.errors import ModelFileError

FORMAT = 1
MANIFEST, CONFIG, WEIGHTS, CARD = "manifest.json", "config.json", "model.safetensors", "README.md"
SHARED, SOURCE, TARGET = "pieces.model", "source.model", "target.model"
# Only where the pieces are not numbered as SentencePiece does: one list for both sides, or one each.
VOCABULARY, SOURCE_VOCABULARY, TARGET_VOCABULARY = (
    "vocabulary.json",
    "source.vocabulary.json",
    "target.vocabulary.json",
)
EXPORT = "ctranslate2/"  # made on demand; its engine reads whatever lies there
AGAIN = "copy or make the bundle again"
NAMES = (CONFIG, WEIGHTS, SHARED, SOURCE, TARGET, VOCABULARY, SOURCE_VOCABULARY, TARGET_VOCABULARY, CARD)


def is_ours(path: str) -> bool:
    return path in NAMES or path.startswith(EXPORT)


def paths(folder: Path) -> list[str]:
    """What lies in the folder and in its export, relative and sorted: ["README.md", "config.json", ...]."""
    found = [*folder.iterdir(), *(folder / EXPORT).rglob("*")]
    return sorted(path.relative_to(folder).as_posix() for path in found if path.is_symlink() or not path.is_dir())


def refusal(
    folder: Path, problems: Sequence[str], verdict: str = "cannot be used", advice: str = AGAIN
) -> ModelFileError:
    """One error for all problems. Each begins with the name of the file that has it."""
    return ModelFileError("\n".join([f"{folder} {verdict}:", *(f"  - {problem}" for problem in problems), advice]))

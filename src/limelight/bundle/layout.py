"""The files of a bundle have fixed names, and one error refuses a bundle with all its problems."""

from collections.abc import Container, Sequence
from pathlib import Path

from limelight.errors import ModelFileError

FORMAT = 1
MANIFEST, CONFIG, WEIGHTS, CARD = "manifest.json", "config.json", "model.safetensors", "README.md"
# One file serves both sides, or each has its own. Vocabularies only where the pieces are not numbered as SentencePiece does.
PIECES = SHARED, SOURCE, TARGET = "pieces.model", "source.model", "target.model"
VOCABULARIES = ("vocabulary.json", "source.vocabulary.json", "target.vocabulary.json")
VOCABULARY, SOURCE_VOCABULARY, TARGET_VOCABULARY = VOCABULARIES
GLOSSARY = "glossary.tsv"  # a person's own file, to be edited at any time, so the manifest does not know it
EXPORT = "ctranslate2/"  # made on demand; its engine reads whatever lies there
AGAIN = "copy or make the bundle again"
NEEDED = (CONFIG, WEIGHTS)
NAMES = (*NEEDED, *PIECES, *VOCABULARIES, CARD)


def pick_files(names: tuple[str, str, str], there: Container[str]) -> tuple[str, str]:
    """Which of PIECES or VOCABULARIES serves the source, and which the target."""
    both, source, target = names
    return (source, target) if source in there else (both, both)


def refusal(folder: Path, problems: Sequence[str], verdict: str = "cannot be used", advice: str = AGAIN) -> ModelFileError:
    """One error for all problems. Each begins with the name of the file that has it."""
    return ModelFileError("\n".join([f"{folder} {verdict}:", *(f"  - {problem}" for problem in problems), advice]))

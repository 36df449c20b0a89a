"""Every error that a user can meet is defined here, with the exit code of the command that met it.

An error says what went wrong, where, and what to do. The exit codes are those of sysexits.h, except usage, which
follows the habit of command-line parsers (2).
"""

import copyreg
from collections.abc import Sequence
from typing import Any, ClassVar


class LimelightError(Exception):
    """LimelightError is the base of all errors meant for a person. Anything else that escapes is a fault of ours."""

    exit_code: ClassVar[int] = 70

    def __reduce__(self) -> tuple[Any, ...]:
        """To another process an error goes as it is, whatever it was made from."""
        return copyreg.__newobj__, (type(self), *self.args), vars(self)  # type: ignore[attr-defined]


class ConfigError(LimelightError):
    """Settings cannot be used. The error lists every problem found, not just the first."""

    exit_code = 2

    def __init__(self, what: str, problems: Sequence[str] = ()) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join([what, *(f"  - {problem}" for problem in self.problems)]))


class DataError(LimelightError):
    """Text, ids or batches cannot be used."""

    exit_code = 65


class LengthError(DataError):
    """A sequence is longer than the model has positions for."""


class ModelFileError(LimelightError):
    """A file of a finished translator is damaged, incomplete, of another format, or not what its manifest says."""

    exit_code = 66


class StorageError(LimelightError):
    """A disk does not take what a run has to keep: it is full, broken or away. What was kept before is as it was."""

    exit_code = 74


class ScoreError(LimelightError):
    """A model gave scores that are not numbers. There is no translation, and none is made up."""

    exit_code = 70


class DeadlineError(LimelightError):
    """The time that was given is over, and what was asked for is not done."""

    exit_code = 75


class RuntimeChoiceError(LimelightError):
    """A device or number format was asked for that this machine does not have."""

    exit_code = 69


class MissingExtraError(RuntimeChoiceError):
    """A package is not installed, since its extra was not asked for."""

    def __init__(self, package: str | None, wanted_by: str, extra: str, otherwise: str = "") -> None:
        super().__init__(f"{package} is not installed, and {wanted_by} needs it; pip install 'limelight[{extra}]'{otherwise}")

"""Refusals have a status, a code for programs, a sentence for people, and when to try again.

A refusal knows nothing of dialects: `error_dialects.answer` puts it into the words of the route that was called.
"""

from limelight.errors import ConfigError, DataError, MissingExtraError


class Refusal(Exception):  # noqa: N818 (nothing is broken: the server says no)
    """`hint` is what to do about it. Nothing of a text is ever in it."""

    status = 400
    code = "bad_request"

    def __init__(self, message: str, hint: str | None = None, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.message, self.hint, self.retry_after = message, hint, retry_after


class BadRequest(Refusal):
    pass


class Unauthorized(Refusal):
    """No key was given, and one is asked for."""

    status, code = 401, "key_needed"


class Forbidden(Refusal):
    """The key that was given is none of ours, or may not do this."""

    status, code = 403, "wrong_key"


class SwitchedOff(Refusal):
    """No key would help: the operator has not switched it on."""

    status, code = 403, "switched_off"


class NotFound(Refusal):
    status, code = 404, "not_found"


class TooLarge(Refusal):
    status, code = 413, "too_large"


class WrongType(Refusal):
    """The body is of a type that is not taken here."""

    status, code = 415, "wrong_type"


class TooMany(Refusal):
    """This caller has asked for too much in a short time."""

    status, code = 429, "too_many"


class QuotaExceeded(Refusal):
    """This caller has used up what was granted. The status is DeepL's."""

    status, code = 456, "quota_spent"


class Busy(Refusal):
    """Everybody together asks for too much."""

    status, code = 503, "busy"


class StoreAway(Busy):
    """The store does not answer. Whoever can do without it may ask again without it."""

    code = "store_away"


class Stopping(Refusal):
    status, code = 503, "stopping"


class Late(Refusal):
    """The time that the request had is over."""

    status, code = 504, "late"


class Failed(Refusal):
    """The model gave scores that are no numbers, or we made a mistake."""

    status, code = 500, "failed"


class NotInstalled(Refusal):
    """The operator left out an extra that this needs."""

    status, code = 501, "not_installed"


def refusal_of(error: BaseException, failed: Failed) -> Refusal:
    """What a translator objects to is the request's fault, what is not installed the operator's; all else is ours, and is `failed`."""
    if isinstance(error, Refusal):
        return error
    if isinstance(error, ConfigError | DataError):
        return BadRequest(str(error))
    if isinstance(error, MissingExtraError):
        message, _, command = str(error).partition("; ")
        return NotInstalled(message, f"the operator can install it: {command}")
    failed.__cause__ = error
    return failed

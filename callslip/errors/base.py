"""The base classes of all errors: permanent and transient."""

from typing import ClassVar


class CallslipError(Exception):
    """An error that Callslip raises deliberately, with a slug, a status and a hint."""

    slug: ClassVar[str] = "error"
    status: ClassVar[int] = 500
    hint: ClassVar[str] = ""
    retry_after: float = 2.0

    def __init__(self, detail: str, *, hint: str | None = None) -> None:
        super().__init__(detail)
        self.detail = detail
        self.advice = self.hint if hint is None else hint
        if self.advice:
            self.add_note(self.advice)  # a traceback shows it

    @property
    def title(self) -> str:
        """The slug in words, e.g. `Needs password`."""
        return self.slug.replace("-", " ").capitalize()


class PermanentError(CallslipError):
    """The same call will fail again."""

    slug = "permanent-error"
    status = 400


class InternalError(PermanentError):
    """An unexpected failure: a defect of Callslip."""

    slug = "internal-error"
    status = 500
    hint = "The log of the process has the place; please report it."


class TransientError(CallslipError):
    """The same call may succeed a little later."""

    slug = "transient-error"
    status = 503
    hint = "Try again in a moment; `callslip doctor` says which part is down."

"""Errors of operations: measuring, tuning, moving, settings, ledger, start."""

from callslip.errors.base import PermanentError


class EvaluationError(PermanentError):
    """Retrieval cannot be measured on this judged set."""

    slug = "evaluation-error"
    hint = "Nothing was measured; correct the cause and start again."


class JudgedSetError(EvaluationError):
    """The files of a judged set are not in BEIR form."""

    slug = "judged-set-error"
    hint = (
        "A set is a folder with corpus.jsonl (_id, title, text), queries.jsonl (_id, text) and"
        " qrels.tsv or qrels/test.tsv (query, document, grade, separated by tabs)."
    )


class TuningError(PermanentError):
    """Weights cannot be fitted, or the proposal is not applied; the collection is unchanged."""

    slug = "tuning-error"
    hint = "Nothing was changed."


class TooFewQuestions(TuningError):
    """There are too few questions: the fitted weights would be random."""

    slug = "too-few-questions"
    hint = (
        "Let more outcomes come in (POST /v1/feedback), or fit on a judged set with `--judged DIR`."
    )


class NotBetter(TuningError):
    """The confidence interval of the gain on held-out questions includes 0."""

    slug = "not-better"
    hint = "Nothing was changed; more questions make the interval narrower."


class GuardHolds(TuningError):
    """The proposal may be worse after a correction of the position bias of recorded outcomes."""

    slug = "guard-holds"
    hint = "Nothing was changed; a judged set (`--judged DIR`) has no such bias."


class MoveError(PermanentError):
    """A collection cannot be moved, and stays in its store."""

    slug = "move-error"


class ArchiveError(MoveError):
    """The file is no complete and undamaged archive of a collection."""

    slug = "archive-error"
    status = 422
    hint = "Nothing was imported. Export the collection again, or copy the file again."


class CopyDiffers(MoveError):
    """The source and the target of a move contain different objects."""

    slug = "copy-differs"
    hint = "The source was left as it is. Run the same command again: it copies only what differs."


class BackupError(PermanentError):
    """A backup cannot be made or read."""

    slug = "backup-error"
    hint = "Nothing was changed; docs/operations.md describes backups."


class BadReply(PermanentError):
    """A language model's reply is unusable; the call used `input_tokens` and `output_tokens`.

    The detail names the defect: the reply is cut, a refusal, empty, too large, no JSON, of another
    shape or not of the protocol.
    """

    slug = "bad-reply"
    status = 502
    hint = "Nothing of it was used; another model or a larger llm.max_output_tokens may help."

    def __init__(
        self,
        detail: str,
        *,
        hint: str | None = None,
        input_tokens: int = 0,
        output_tokens: int = 0,
    ) -> None:
        super().__init__(detail, hint=hint)
        self.input_tokens = input_tokens
        self.output_tokens = output_tokens


class LedgerError(PermanentError):
    """The ledger's database is damaged, or newer than this Callslip."""

    slug = "ledger-error"
    status = 500
    hint = "Stop Callslip and put a back-up of the data folder in its place: docs/operations.md."


class SettingsError(PermanentError):
    """A setting is wrong."""

    slug = "settings-error"
    status = 500
    hint = "`callslip config` prints what is in force and where it came from."


class StartError(PermanentError):
    """`callslip up` cannot start or go on."""

    slug = "start-error"
    status = 500

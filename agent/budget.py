"""A language model whose calls for one answer are bounded, paid from a budget and summed up."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

from agent.messages import Usage
from agent.spans import chat
from callslip.errors import (
    BadReply,
    InvalidRequest,
    LanguageModelDown,
    ModelBudgetSpent,
    SettingsError,
)
from config.settings import LlmSettings
from models import completion
from models.completion import Completion, M, prompt_tokens
from stores.ledger import ModelUsage, Reservation

if TYPE_CHECKING:
    from models.language_model import LanguageModel
    from models.telemetry import Spans

Outcome = Literal["answered", "bad-reply", "down", "refused", "budget"]
"""How a call ended. refused: the server takes the key, the model, the address or the text not."""

Told = Callable[[Outcome, completion.Usage], None]
"""Is told of each call and what it cost, to count it."""

_NOTHING = completion.Usage(0, 0)


class Budgeted:
    """The model for one answer, of a collection or of a tenant of it."""

    def __init__(
        self,
        model: "LanguageModel",
        budget: ModelUsage,
        settings: LlmSettings,
        collection: str,
        tenant: str = "",
        *,
        told: Told = lambda _outcome, _usage: None,
        spans: "Spans | None" = None,
    ) -> None:
        self._model, self._budget, self._settings = model, budget, settings
        self._collection, self._tenant, self._told = collection, tenant, told
        self._spans = spans
        self.usage = Usage()

    def complete(
        self, instruction: str, content: str, reply: type[M], *, timeout: float | None = None
    ) -> Completion[M]:
        """Ask for JSON of the shape `reply`, within `timeout` or `llm.timeout_seconds`.

        Raises InvalidRequest, before anything is sent, for a prompt of more than
        `llm.max_input_tokens` by an estimate; ModelBudgetSpent where the
        place has not enough tokens left today; else what `LanguageModel.complete` raises. Only an
        answer, and a reply that is of no use, are paid for.
        """
        prompt = prompt_tokens(instruction, content)
        most, longest = self._settings.max_output_tokens, self._settings.max_input_tokens
        if prompt > longest:
            raise InvalidRequest(
                f"the prompt has about {prompt:,} tokens, more than {longest:,}",
                hint="Raise llm.max_input_tokens in the settings, or ask for less.",
            )
        reservation = self._reserve(prompt + most)
        seconds = self._settings.timeout_seconds if timeout is None else timeout
        try:
            with chat(self._spans, self._model.model, instruction, content, most) as answered:
                found = self._model.complete(
                    instruction, content, reply, max_tokens=most, timeout=seconds
                )
                answered(found)
        except BadReply as error:
            self._paid(reservation, completion.Usage(error.input_tokens, error.output_tokens))
            self._told("bad-reply", completion.Usage(error.input_tokens, error.output_tokens))
            raise
        except (LanguageModelDown, SettingsError, InvalidRequest) as error:
            self._budget.release(reservation)
            down = isinstance(error, LanguageModelDown)
            self._told("down" if down else "refused", _NOTHING)
            raise
        self._paid(reservation, found.usage)
        self._told("answered", found.usage)
        return found

    def _reserve(self, tokens: int) -> Reservation:
        try:
            return self._budget.reserve(
                self._collection,
                self._tenant,
                self._model.model,
                tokens,
                ceiling=self._settings.tokens_per_day,
            )
        except ModelBudgetSpent:
            self._told("budget", _NOTHING)
            raise

    def _paid(self, reservation: Reservation, cost: completion.Usage) -> None:
        self.usage = Usage(
            calls=self.usage.calls + 1,
            input_tokens=self.usage.input_tokens + cost.input_tokens,
            output_tokens=self.usage.output_tokens + cost.output_tokens,
        )
        self._budget.settle(reservation, cost)

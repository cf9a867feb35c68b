"""A language model with limits: its calls are bounded, counted and charged to a budget."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

from callslip.agent.messages import Usage
from callslip.agent.spans import chat
from callslip.config.settings import LlmSettings
from callslip.errors import (
    BadReply,
    InvalidRequest,
    LanguageModelDown,
    ModelBudgetSpent,
    SettingsError,
)
from callslip.models.language_models import completion
from callslip.models.language_models.completion import Completion, M, prompt_tokens
from callslip.stores.ledger import ModelUsage, Reservation

if TYPE_CHECKING:
    from callslip.models.language_models.client import LanguageModel
    from callslip.models.telemetry import Spans

Outcome = Literal["answered", "bad-reply", "down", "refused", "budget"]
"""The outcome of a call. `refused`: the server rejects the key, model, address or text."""

OnCall = Callable[[Outcome, completion.Usage], None]
"""Called after each call with its outcome and its cost, to count it."""

_NOTHING = completion.Usage(0, 0)


class Budgeted:
    """The language model for one answer in a collection or tenant."""

    def __init__(
        self,
        model: "LanguageModel",
        budget: ModelUsage,
        settings: LlmSettings,
        collection: str,
        tenant: str = "",
        *,
        on_call: OnCall = lambda _outcome, _usage: None,
        spans: "Spans | None" = None,
    ) -> None:
        self._model, self._budget, self._settings = model, budget, settings
        self._collection, self._tenant, self._on_call = collection, tenant, on_call
        self._spans = spans
        self.usage = Usage()

    def complete(
        self, instruction: str, content: str, reply: type[M], *, timeout: float | None = None
    ) -> Completion[M]:
        """Ask for a JSON reply of type `reply`, within `timeout` or `llm.timeout_seconds`.

        Raises InvalidRequest, before anything is sent, if the prompt has more than
        `llm.max_input_tokens` estimated tokens; ModelBudgetSpent if the collection or tenant has
        not enough tokens left today; and the errors of `LanguageModel.complete`. Only a reply,
        usable or not, is charged to the budget.
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
                completed = self._model.complete(
                    instruction, content, reply, max_tokens=most, timeout=seconds
                )
                answered(completed)
        except BadReply as error:
            self._paid(reservation, completion.Usage(error.input_tokens, error.output_tokens))
            self._on_call("bad-reply", completion.Usage(error.input_tokens, error.output_tokens))
            raise
        except (LanguageModelDown, SettingsError, InvalidRequest) as error:
            self._budget.release(reservation)
            down = isinstance(error, LanguageModelDown)
            self._on_call("down" if down else "refused", _NOTHING)
            raise
        self._paid(reservation, completed.usage)
        self._on_call("answered", completed.usage)
        return completed

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
            self._on_call("budget", _NOTHING)
            raise

    def _paid(self, reservation: Reservation, cost: completion.Usage) -> None:
        self.usage = Usage(
            calls=self.usage.calls + 1,
            input_tokens=self.usage.input_tokens + cost.input_tokens,
            output_tokens=self.usage.output_tokens + cost.output_tokens,
        )
        self._budget.settle(reservation, cost)

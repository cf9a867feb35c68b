"""A language model within its budget: what is reserved, paid for, given back and told."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from openai_server import OpenAIServer, Scripted, fails, refuses, reply, slow
from pydantic import BaseModel

from callslip.agent.budget import Budgeted, Outcome
from callslip.agent.messages import Usage
from callslip.config.settings import LlmSettings
from callslip.errors import (
    BadReply,
    CallslipError,
    InvalidRequest,
    LanguageModelDown,
    ModelBudgetSpent,
    SettingsError,
)
from callslip.models.language_models import completion
from callslip.models.language_models.client import LanguageModel
from callslip.stores.ledger import Ledger

pytest_plugins = ["openai_fixtures"]


class Said(BaseModel):
    text: str


class BudgetSetup:
    """A budgeted model, its ledger, and what was told."""

    def __init__(self, server: OpenAIServer, ledger: Ledger) -> None:
        self.server, self.ledger = server, ledger
        self.reports: list[tuple[Outcome, int, int]] = []

    def model(self, **given: object) -> Budgeted:
        settings = LlmSettings.model_validate(
            {"base_url": self.server.url, "model": "small", "max_output_tokens": 50} | given
        )

        def output(outcome: Outcome, usage: completion.Usage) -> None:
            self.reports.append((outcome, usage.input_tokens, usage.output_tokens))

        budget = self.ledger.model_usage
        return Budgeted(LanguageModel(settings), budget, settings, "flats", "north", on_call=output)

    @property
    def today(self) -> int:
        return self.ledger.model_usage.today("flats", "north")


@pytest.fixture
def setup(openai_server: OpenAIServer, tmp_path: Path) -> Iterator[BudgetSetup]:
    ledger = Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")
    ledger.create()
    yield BudgetSetup(openai_server, ledger)
    ledger.close()


def test_answers_are_paid_for_and_summed_up(setup: BudgetSetup) -> None:
    setup.server.script += [reply({"text": "a"}, usage=(30, 4)), reply({"text": "b"}, usage=(9, 1))]
    model = setup.model()
    assert model.complete("Be brief.", "how?", Said).value.text == "a"
    assert model.complete("Be brief.", "how?", Said).value.text == "b"
    assert model.usage == Usage(calls=2, input_tokens=39, output_tokens=5)
    assert setup.reports == [("answered", 30, 4), ("answered", 9, 1)]
    assert setup.today == 44
    (row,) = setup.ledger.model_usage.rows(0, collection="flats", tenant="north")
    assert (row.model, row.calls, row.input_tokens, row.output_tokens) == ("small", 2, 39, 5)
    assert setup.server.requests[0].body["max_tokens"] == 50


def test_prompt_and_longest_reply_are_reserved_while_the_model_writes(setup: BudgetSetup) -> None:
    seen = []

    def looks(_: object) -> object:
        seen.append(setup.today)
        return reply({"text": "x"}, usage=(1, 1))

    setup.server.script.append(looks)  # type: ignore[arg-type]
    setup.model().complete("i" * 30, "c" * 60, Said)
    assert seen == [10 + 20 + 2 * completion.PER_MESSAGE + 50]
    assert setup.today == 2


@pytest.mark.parametrize("sent", [reply("no"), refuses(), reply({"text": "x"}, finish="length")])
def test_a_reply_of_no_use_is_paid_for(setup: BudgetSetup, sent: Scripted) -> None:
    setup.server.script.append(sent)
    model = setup.model()
    with pytest.raises(BadReply):
        model.complete("", "how?", Said)
    assert model.usage == Usage(calls=1, input_tokens=100, output_tokens=20)
    assert (setup.today, setup.reports) == (120, [("bad-reply", 100, 20)])


@pytest.mark.parametrize(
    ("sent", "seconds", "kind", "outcome"),
    [
        (fails(500), 60.0, LanguageModelDown, "down"),
        (slow(5, reply({"text": "x"})), 0.3, LanguageModelDown, "down"),
        (fails(401), 60.0, SettingsError, "refused"),
        (fails(400), 60.0, InvalidRequest, "refused"),
    ],
)
def test_a_call_that_was_not_answered_is_given_back(
    setup: BudgetSetup, sent: Scripted, seconds: float, kind: type[CallslipError], outcome: Outcome
) -> None:
    setup.server.script.append(sent)
    model = setup.model()
    with pytest.raises(kind):
        model.complete("", "how?", Said, timeout=seconds)
    assert model.usage == Usage()
    assert (setup.today, setup.reports) == (0, [(outcome, 0, 0)])


def test_a_prompt_that_is_too_long_is_never_sent(setup: BudgetSetup) -> None:
    setup.server.always = reply({"text": "x"})
    model = setup.model(max_input_tokens=100)
    fits = 3 * (100 - 2 * completion.PER_MESSAGE)
    model.complete("", "x" * fits, Said)
    with pytest.raises(InvalidRequest, match="about 101 tokens, more than 100"):
        model.complete("", "x" * (fits + 1), Said)
    assert len(setup.server.requests) == 1


def test_a_spent_budget_asks_nothing_until_tomorrow(setup: BudgetSetup) -> None:
    setup.server.always = reply({"text": "x"}, usage=(60, 20))
    model = setup.model(tokens_per_day=147)
    model.complete("", "how?", Said)
    with pytest.raises(ModelBudgetSpent) as raised:
        model.complete("", "how?", Said)
    assert 0 < raised.value.retry_after <= 86_400
    assert (len(setup.server.requests), setup.today) == (1, 80)
    assert setup.reports[-1] == ("budget", 0, 0)
    setup.ledger.model_usage.trim(time.time() + 86_400)  # as if it were another day
    model.complete("", "how?", Said)

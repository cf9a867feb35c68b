"""Names confirmed by a language model behind a server that speaks OpenAI's chat protocol."""

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from chroma_server import free_port
from memory_store import MemoryStore
from openai_server import OpenAIServer, Sent, fails, huge, raw, reply
from pipeline_parts import make_context, submit

from callslip.config.settings import LlmSettings, Settings
from callslip.errors import InvalidRequest, LanguageModelDown, SettingsError
from callslip.ingestion.pipeline import run_step
from callslip.messages.options import Options
from callslip.models.language_models.client import LanguageModel
from callslip.models.registry import make_confirmer
from callslip.stores.blobs import Blobs
from callslip.stores.ledger import STEPS, Ledger, StepRecord
from callslip.stores.records import CollectionSchema, VectorSpec

pytest_plugins = ["openai_fixtures"]

PASSAGE = "The Department of Health met in Leeds."
NAMES = ("Department of Health", "Leeds", "met")


def model(url: str) -> LanguageModel:
    settings = {"base_url": url, "model": "small", "api_key": "key", "timeout_seconds": 5}
    made = make_confirmer(Settings(llm=LlmSettings.model_validate(settings)))
    assert made is not None
    return made


def test_the_model_is_shown_the_passage_and_numbered_names_and_says_which_are_right(
    openai_server: OpenAIServer,
) -> None:
    openai_server.script.append(reply("[1, 2]"))
    assert model(openai_server.url).confirm(PASSAGE, NAMES) == {"Department of Health", "Leeds"}
    (request,) = openai_server.requests
    assert (request.path, request.body["model"]) == ("/v1/chat/completions", "small")
    assert request.headers["Authorization"] == "Bearer key"
    assert PASSAGE in request.content
    assert "1. Department of Health\n2. Leeds\n3. met" in request.content


@pytest.mark.parametrize(
    ("content", "right"),
    [
        ("[]", set()),
        ("The right ones are [1] and so: [3, 99, 0]", {"met"}),
        ("```json\n[2]\n```", {"Leeds"}),
        ("all of them", set(NAMES)),
        ("", set(NAMES)),
        ("[1, two]", set(NAMES)),
        (None, set(NAMES)),
    ],
)
def test_an_answer_that_says_nothing_leaves_every_name(
    openai_server: OpenAIServer, content: str | None, right: set[str]
) -> None:
    openai_server.script.append(reply(content))
    assert model(openai_server.url).confirm(PASSAGE, NAMES) == right


@pytest.mark.parametrize("sent", [huge(), raw(b"<html>"), raw(b"[" * 100_000), raw(b"[]")])
def test_an_answer_that_is_none_leaves_every_name(openai_server: OpenAIServer, sent: Sent) -> None:
    openai_server.script.append(sent)
    assert model(openai_server.url).confirm(PASSAGE, NAMES) == set(NAMES)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (500, LanguageModelDown),
        (429, LanguageModelDown),
        (401, SettingsError),
        (404, SettingsError),
        (400, InvalidRequest),
    ],
)
def test_a_refusal_is_a_named_error_that_quotes_no_text(
    openai_server: OpenAIServer, status: int, kind: type[Exception]
) -> None:
    openai_server.script.append(fails(status))
    with pytest.raises(kind, match=f"status {status}") as raised:
        model(openai_server.url).confirm(PASSAGE, NAMES)
    assert "Leeds" not in str(raised.value)


def test_a_server_that_is_down_may_come_back() -> None:
    with pytest.raises(LanguageModelDown, match="does not answer"):
        model(f"http://127.0.0.1:{free_port()}/v1").confirm(PASSAGE, NAMES)


def test_without_an_address_there_is_no_model() -> None:
    assert make_confirmer(Settings()) is None


@pytest.fixture
def enriching(tmp_path: Path) -> Iterator[Callable[[LanguageModel | None], StepRecord]]:
    """Runs a document of a collection that asks a model up to enrichment; gives that step."""
    schema = CollectionSchema("papers", VectorSpec(4))
    asks = Options.model_validate({"confirm": True})
    with closing(Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")) as ledger:
        ledger.create()
        ledger.collections.create(schema, store="", embedder="tiny", analyzer="", options=asks)
        step_context = make_context(ledger, Blobs(str(tmp_path / "blobs")), MemoryStore())

        def run(confirmer: LanguageModel | None) -> StepRecord:
            item = submit(step_context, "the BBC and the EU")
            for step in STEPS[:4]:
                use = replace(step_context, confirmer=confirmer)
                run_step(use, step, item.document_id, item.version)
            return ledger.documents.get(item.document_id).steps[3]

        yield run


def test_a_step_asks_the_model_about_each_chunk(
    openai_server: OpenAIServer, enriching: Callable[[LanguageModel | None], StepRecord]
) -> None:
    openai_server.script.append(reply("[2]"))
    step = enriching(model(openai_server.url))
    assert (step.state, step.counts["entities"]) == ("done", 1)
    assert "1. BBC\n2. EU" in openai_server.requests[0].content


def test_a_step_waits_for_a_model_that_is_down(
    openai_server: OpenAIServer, enriching: Callable[[LanguageModel | None], StepRecord]
) -> None:
    openai_server.script.append(fails(503))
    step = enriching(model(openai_server.url))
    assert step.state == "pending"
    assert step.retry_at is not None


def test_a_collection_that_asks_a_model_where_there_is_none_fails_with_what_to_do(
    enriching: Callable[[LanguageModel | None], StepRecord],
) -> None:
    failure = enriching(None).failure
    assert failure is not None
    assert (failure.type, "llm.base_url" in failure.advice) == ("settings-error", True)

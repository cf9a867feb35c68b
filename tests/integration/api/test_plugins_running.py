"""LangChain's own tests of retrievers, and the other frameworks' parts, before a running stack."""

from collections.abc import Iterator
from typing import Any

import pytest
from api_calls import Api
from stack import Stack

langchain_tests = pytest.importorskip("langchain_tests.integration_tests")

from callslip.plugins.langchain import CallslipRetriever  # noqa: E402

QUESTION = "how long is parental leave?"


@pytest.fixture(scope="module")
def position(stack: Stack) -> Iterator[dict[str, Any]]:
    """Where four texts are."""
    with Api(stack) as api:
        api.all_live(
            {"text": f"Parental leave lasts {number + 10} months.", "name": f"{number}.txt"}
            for number in range(4)
        )
        yield {"collection": api.collection, "url": stack.url}


class TestLangChain(langchain_tests.RetrieversIntegrationTests):  # type: ignore[misc,name-defined]
    """Every case that LangChain publishes for retrievers."""

    @pytest.fixture(autouse=True)
    def at(self, position: dict[str, Any]) -> None:
        self.params = position

    @property
    def retriever_constructor(self) -> type[CallslipRetriever]:
        return CallslipRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return self.params

    @property
    def retriever_query_example(self) -> str:
        return QUESTION

    @pytest.fixture
    def anyio_backend(self) -> str:
        return "asyncio"

    test_ainvoke_returns_documents = pytest.mark.anyio(
        langchain_tests.RetrieversIntegrationTests.test_ainvoke_returns_documents
    )


def test_llama_index_retrieves(position: dict[str, Any]) -> None:
    pytest.importorskip("llama_index.core")
    from callslip.plugins.llama_index import CallslipRetriever

    found = CallslipRetriever(**position, similarity_top_k=2).retrieve(QUESTION)
    assert len(found) == 2
    assert found[0].score >= found[1].score


def test_haystack_retrieves(position: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HAYSTACK_TELEMETRY_ENABLED", "False")
    pytest.importorskip("haystack")
    from callslip.plugins.haystack import CallslipRetriever

    filters = {"field": "meta.filename", "operator": "in", "value": ["1.txt", "2.txt"]}
    found = CallslipRetriever(**position, filters=filters).run(QUESTION)["documents"]
    assert {document.meta["filename"] for document in found} == {"1.txt", "2.txt"}

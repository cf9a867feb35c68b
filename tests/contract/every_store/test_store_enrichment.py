"""What enrichment finds is filterable in every store; what it scrubs is in none."""

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from pipeline_parts import make_context, submit

from callslip.ingestion.pipeline import run_step
from callslip.messages.options import Options
from callslip.models.entities import Recognizer
from callslip.stores.blobs import Blobs
from callslip.stores.contract import Store
from callslip.stores.ledger import STEPS, Ledger
from callslip.stores.properties.filters import parse
from callslip.stores.records import CollectionSchema, VectorSpec

pytest_plugins = ["store_fixtures"]

SECRETS = ("kim@example.org", "900101-1234567", "010-1234-5678", "4111 1111 1111 1111")
NOTICE = """출산장려금 안내

출산 장려금은 2024년 1월 1일부터 시행한다. 국민건강보험공단이 지급한다.
""" + "\n".join(SECRETS)

Ingest = Callable[..., str]


@pytest.fixture
def ingest(store: Store, names: Callable[[], str], tmp_path: Path) -> Iterator[Ingest]:
    """Sends a text through the pipeline into a collection with these options; gives its name."""
    with closing(Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")) as ledger:
        ledger.create()
        step_context = make_context(ledger, Blobs(str(tmp_path / "blobs")), store)
        object.__setattr__(step_context, "recognizer", Recognizer())

        def run(text: str, properties: dict[str, Any], **options: Any) -> str:
            schema = CollectionSchema(names(), VectorSpec(4))
            store.ensure_schema(schema)
            ledger.collections.create(
                schema,
                store=store.kind,
                embedder="tiny",
                analyzer="",
                options=Options.model_validate(options),
            )
            item = submit(step_context, text, collection=schema.name, **properties)
            for step in STEPS:
                assert run_step(step_context, step, item.document_id, item.version) == "go on"
            return schema.name

        yield run


def found(store: Store, name: str, **conditions: object) -> bool:
    return bool(store.find_ids(name, parse(conditions, None)))


def test_entities_days_and_facets_are_filterable(store: Store, ingest: Ingest) -> None:
    rule = {"set": {"doc_type": "notice", "jurisdiction": "KR"}, "content": "*부터 시행한다"}
    collection_name = ingest(
        NOTICE, {"jurisdiction": "EU"}, rules=[rule], dictionary={"출산장려금": ["birth grant"]}
    )
    for name in ("출산장려금", "출산 장려금", "birth grant", "국민건강보험공단", "2024-01-01"):
        assert found(store, collection_name, **{"entities @": name})
    assert not found(store, collection_name, **{"entities @": "출산"})
    assert found(store, collection_name, **{"valid_from <=": "2024-01-01", "doc_type": "notice"})
    assert not found(store, collection_name, **{"valid_from <": "2024-01-01"})
    assert found(store, collection_name, jurisdiction="EU")  # what the sender says wins
    (document,) = store.get_documents(collection_name, list(store.document_ids(collection_name)))
    assert document.properties["valid_from"] == "2024-01-01"
    entities = document.properties["entities"]
    assert isinstance(entities, list)
    assert {"출산장려금", "출산 장려금"} <= set(entities)


@pytest.mark.long
@pytest.mark.parametrize(("scrub", "in_body"), [("entities", True), ("text", False)])
def test_what_is_scrubbed_is_in_no_store(
    store: Store, ingest: Ingest, scrub: str, in_body: bool
) -> None:
    named = {"출산장려금": list(SECRETS)}
    collection_name = ingest(NOTICE, {"entities": list(SECRETS)}, scrub=scrub, dictionary=named)
    chunks = store.get_chunks(collection_name, store.find_ids(collection_name), include_terms=True)
    documents = store.get_documents(collection_name, list(store.document_ids(collection_name)))
    for secret in SECRETS:
        assert not found(store, collection_name, **{"entities @": secret})
        held = repr([[c.properties for c in chunks], documents])
        assert secret not in held
        bodies = repr([(c.body, c.terms, c.heading, c.section, c.title) for c in chunks])
        assert (secret in bodies) is in_body

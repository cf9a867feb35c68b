"""Facet-value vectors: made of what changed, of what is live, in bounded time."""

from collections.abc import Iterator
from contextlib import closing

import numpy as np
import pytest
from facet_parts import COLLECTION, DIMENSION, SUBJECTS, Library, embed

from callslip.errors import CollectionNotFound, EmbedderDown, InvalidRequest, TenantNotFound
from callslip.messages.options import Options
from callslip.models.embedders.none import LexicalEmbedder
from callslip.retrieval.facets.texts import aliases, describe, label, sentences, spread
from callslip.retrieval.facets.vectors import SAMPLE, divide
from callslip.stores.ledger import Ledger
from callslip.stores.ledger.learning.facet_values import FacetScope
from callslip.stores.records import StoredChunk

pytest_plugins = ["ledger_fixtures"]


@pytest.fixture
def library(ledger_url: str) -> Iterator[Library]:
    with closing(Ledger(ledger_url)) as ledger:
        ledger.create()
        yield Library(ledger)


def test_each_value_has_a_vector_near_what_is_said_of_it(library: Library) -> None:
    library.fill()
    assert library.rebuild() == {
        "subject": {"made": 3, "unchanged": 0, "gone": 0, "left_out": 0, "values": 3}
    }
    values = {v.value: v for v in library.ledger.facet_values.values(COLLECTION, "subject")}
    assert set(values) == set(SUBJECTS)
    for name, value in values.items():
        request = embed(SUBJECTS[name][0])
        assert max(values, key=lambda v: float(values[v].vector @ request)) == name
        assert (value.chunks, value.probes_apart, value.model) == (6, True, "words")
        assert value.probes.shape == (3, DIMENSION)
    (build,) = library.ledger.facet_values.builds(COLLECTION)
    assert build.ended_at is not None
    assert build.calibration is not None
    assert build.failure is None


def test_the_same_rebuild_again_embeds_nothing_and_changes_nothing(library: Library) -> None:
    library.fill()
    library.rebuild("subject", "group")
    stamps = library.ledger.facet_values.stamps(COLLECTION)
    library.embedder.read.clear()
    again = library.rebuild("subject", "group")
    assert [counts["unchanged"] for counts in again.values()] == [3, 3]
    assert library.embedder.read == []
    assert library.ledger.facet_values.stamps(COLLECTION) == stamps


def test_only_the_value_that_changed_is_embedded_anew(library: Library) -> None:
    library.fill()
    library.rebuild()
    stamps = library.ledger.facet_values.stamps(COLLECTION)
    library.embedder.read.clear()
    library.add("A pension is paid after the last salary.", subject="pay")
    counts = library.rebuild()["subject"]
    assert (counts["made"], counts["unchanged"]) == (1, 2)
    assert len(library.embedder.read) == 1
    assert library.ledger.facet_values.stamps(COLLECTION) != stamps


def test_a_value_without_live_chunks_goes(library: Library) -> None:
    library.fill()
    only = library.add("A zebra stands here alone.", subject="zoo")
    assert library.rebuild()["subject"]["values"] == 4
    library.ledger.documents.delete(only)  # hidden; the store has it still
    counts = library.rebuild()["subject"]
    assert (counts["gone"], counts["values"]) == (1, 3)
    assert "zoo" not in {v.value for v in library.ledger.facet_values.values(COLLECTION, "subject")}


def test_of_many_values_the_most_frequent_are_made_and_the_rest_is_counted(
    library: Library,
) -> None:
    library.fill()
    for n in range(20):
        library.add(f"Something rare, number {n}.", subject=f"rare {n}")
    counts = library.rebuild(max_values=5)["subject"]
    assert (counts["values"], counts["left_out"]) == (5, 18)
    kept = {v.value for v in library.ledger.facet_values.values(COLLECTION, "subject")}
    assert set(SUBJECTS) < kept
    library.add("A text in place of a label.", subject="x" * 300)
    assert library.rebuild(max_values=500)["subject"]["left_out"] == 1


def test_a_facet_of_lists_and_one_of_numbers_have_values_too(library: Library) -> None:
    library.add("First things first, as they say.", tags=["a", "b"], year=2019, open=True)
    library.add("Second things second, as they say.", tags=["b"], year=2020, open=False)
    library.rebuild("tags", "year", "open")
    kept = library.ledger.facet_values
    assert {v.value: v.chunks for v in kept.values(COLLECTION, "tags")} == {"b": 2, "a": 1}
    assert {v.value for v in kept.values(COLLECTION, "year")} == {"2019", "2020"}
    assert {v.value for v in kept.values(COLLECTION, "open")} == {"true", "false"}


def test_a_killed_rebuild_keeps_what_was_made(library: Library) -> None:
    library.fill()
    for n in range(20):
        library.add(f"Something rare, number {n}.", subject=f"rare {n}")

    def killed() -> None:
        raise KeyboardInterrupt

    collection = library.ledger.collections.get("library")
    with pytest.raises(KeyboardInterrupt):
        library.builder().rebuild(collection, "", ["subject"], run="one", on_batch=killed)
    (build,) = library.ledger.facet_values.builds(COLLECTION)
    assert (build.run, build.ended_at, build.counts["made"]) == ("one", None, 8)
    assert library.rebuild()["subject"] == {
        "made": 15,
        "unchanged": 8,
        "gone": 0,
        "left_out": 0,
        "values": 23,
    }


def test_a_failure_is_noted_with_the_facet(library: Library) -> None:
    library.fill()

    class Down(type(library.embedder)):  # type: ignore[misc]
        def passages(self, texts: object) -> object:
            raise EmbedderDown("no answer")

    library.embedder = Down()
    with pytest.raises(EmbedderDown):
        library.rebuild()
    (build,) = library.ledger.facet_values.builds(COLLECTION)
    assert build.failure is not None
    assert build.failure.type == "embedder-down"


def test_another_embedder_is_refused_and_none_leaves_no_facets(library: Library) -> None:
    library.fill()
    library.rebuild()
    library.embedder.model = "other"
    with pytest.raises(InvalidRequest, match="embedded with 'words'"):
        library.rebuild()
    library.embedder = LexicalEmbedder()
    assert library.rebuild() == {}
    assert library.ledger.facet_values.builds(COLLECTION) == []


def test_a_late_build_leaves_nothing_behind_a_deletion(library: Library) -> None:
    library.fill()
    library.rebuild()
    collection = library.ledger.collections.get("library")
    library.ledger.collections.delete("library")
    with pytest.raises(CollectionNotFound):
        library.builder().rebuild(collection, "", ["subject"])
    library.ledger.collections.forget("library")
    assert library.ledger.facet_values.builds(COLLECTION) == []
    assert library.ledger.facet_values.values(COLLECTION, "subject") == []


def test_the_facets_of_a_tenant_are_its_own_and_go_with_it(library: Library) -> None:
    ledger, at = library.ledger, FacetScope("library", "acme")
    ledger.tenants.create("library", "acme")
    ledger.facet_values.begin(at, "subject")
    library.fill()
    library.rebuild()
    ledger.facet_values.put(at, "subject", ledger.facet_values.values(COLLECTION, "subject")[:1])
    assert len(ledger.facet_values.values(at, "subject")) == 1
    ledger.facet_values.keep_only(at, ["other"])
    assert ledger.facet_values.builds(at) == ledger.facet_values.values(at, "subject") == []
    ledger.facet_values.begin(at, "subject")
    ledger.tenants.delete("library", "acme")
    with pytest.raises(TenantNotFound):
        ledger.facet_values.put(at, "subject", [])
    ledger.tenants.forget("library", "acme")
    assert ledger.facet_values.builds(at) == []
    assert len(ledger.facet_values.values(COLLECTION, "subject")) == 3


def test_aliases_of_the_collections_dictionary_are_part_of_a_value(library: Library) -> None:
    library.fill()
    library.rebuild()
    options = Options.model_validate({"dictionary": {"pay": ["wages", "remuneration"]}})
    library.ledger.collections.set_options("library", options)
    assert library.rebuild()["subject"]["made"] == 1
    (pay,) = [
        v for v in library.ledger.facet_values.values(COLLECTION, "subject") if v.value == "pay"
    ]
    assert pay.aliases == ("wages", "remuneration")
    assert "wages" in library.embedder.read[-1]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("제1장 총칙/제2조(정의)", "정의"),
        ("chapter iv. claims/3.2 definitions#2", "definitions"),
        ("introduction", "introduction"),
        ("제5조", "제5조"),
        ("2023", "2023"),
        ("", ""),
    ],
)
def test_a_section_is_its_last_heading_without_number(value: str, expected: str) -> None:
    assert label("section", value) == expected
    assert label("act", "Chapter 1/Part 2") == "Chapter 1/Part 2"


def test_a_description_is_in_the_language_of_the_value() -> None:
    assert describe("doc_type", "faq") == "kind of document: faq. This is about faq."
    assert describe("doc_type", "법률").startswith("문서 종류: 법률.")
    assert aliases("출산장려금", {"출산 장려금": ["birth grant"]}) == ("출산 장려금", "birth grant")
    assert aliases("eligibility", {}) == ()


def test_sentences_are_taken_from_every_text_before_a_second_of_one() -> None:
    text = "Short. This one is a sentence of a fair length. And here is another one of those."
    assert len(sentences(text)) == 2
    assert sentences("tiny") == ["tiny"]
    assert spread([["a", "b"], ["c"], ["a", "d"]], 3) == ["a", "c", "b"]


def test_probes_come_from_documents_that_stand_for_nothing() -> None:
    def chunk(chunk_id: str, document: str, body: str) -> StoredChunk:
        fields = dict.fromkeys(("parent_id", "section", "heading", "title", "filename", "lang"), "")
        numbers = dict.fromkeys(("level", "ordinal", "start", "end"), 0)
        return StoredChunk(
            chunk_id, document, body, **fields, **numbers, properties={}, vector=embed(body)
        )

    chunks = [chunk(f"{d}{n}", d, f"{d} says a thing of number {n}.") for d in "abcd" for n in "12"]
    samples, probes, apart = divide(chunks)
    assert apart
    assert {s[0] for s in samples} == {"a", "b"}
    assert {p[0] for p in probes} == {"c", "d"}
    samples, probes, apart = divide(chunks[:2])
    assert (len(samples), len(probes), apart) == (1, 1, False)
    one = [chunk("a", "a", "The only passage says this. Then it says something else.")]
    assert divide(one) == (["The only passage says this."], ["Then it says something else."], False)
    assert divide([chunk("a", "a", "word")]) == (["word"], [], False)
    assert SAMPLE >= 8 * 4
    assert np.isfinite(embed("")).all()

"""What enrichment finds out about a document and its chunks."""

from collections.abc import Sequence

import pytest
from pipeline_parts import Capitals, Lower

from callslip.ingestion.enrich import Input, Source, Tools, enrich
from callslip.ingestion.enrich.aliases import Dictionary, abbreviations, spellings
from callslip.ingestion.enrich.facets import facets, fits
from callslip.ingestion.enrich.validity import of_chunk, of_document
from callslip.ingestion.values import Chunk, Enriched, ExtractedText
from callslip.messages.options import Options, Rule
from callslip.models.entities import Entity


def cut(*contents: str) -> tuple[str, list[Chunk]]:
    """A text of these chunks."""
    chunks, text = [], ""
    for n, content in enumerate(contents):
        chunks.append(Chunk(str(n), "", "", 0, n, len(text), len(text) + len(content), 1))
        text += content + "\n\n"
    return text, chunks


def enriched(
    *contents: str,
    name: str = "a.txt",
    front: dict[str, str] | None = None,
    submitted: dict[str, object] | None = None,
    confirmer: object = None,
    **options: object,
) -> Enriched:
    text, chunks = cut(*contents)
    source = Source(ExtractedText(text, "", properties=front or {}), name, submitted or {})
    tools = Tools(Lower(), Capitals(), confirmer)  # type: ignore[arg-type]
    return enrich([Input(source, chunks, Options.model_validate(options), tools)])[0]


def test_chunks_get_terms_and_language_of_the_passage_alone() -> None:
    found = enriched("English Words", "한국어 문장").chunks
    assert [(e.lang, e.terms) for e in found] == [("en", "english words"), ("ko", "한국어 문장")]


def test_entities_are_the_chunks_own_and_those_of_the_document_all_of_them() -> None:
    found = enriched("the BBC and the EU", "the EU alone", "nobody")
    assert [e.properties.get("entities") for e in found.chunks] == [["BBC", "EU"], ["EU"], None]
    assert found.properties["entities"] == ["EU", "BBC"]  # by how many chunks have them


def test_only_text_that_is_new_is_analyzed_and_recognized_again() -> None:
    requests: list[str] = []

    class Noting(Capitals, Lower):
        def find(self, texts: Sequence[str]) -> list[list[Entity]]:
            requests.extend(texts)
            return super().find(texts)

        def analyze(self, text: str) -> str:
            requests.append(text)
            return super().analyze(text)

    text, chunks = cut("the BBC (BC)", "the EU")
    tools, source = Tools(Noting(), Noting()), Source(ExtractedText(text, ""), "a.txt", {})
    [first] = enrich([Input(source, chunks, Options(), tools)])
    requests.clear()
    known = {first.chunks[0].chunk.chunk_id: first.chunks[0]}
    assert enrich([Input(source, chunks, Options(), tools, known)]) == [first]
    assert requests == ["the EU", "the EU"]


def test_the_names_of_several_documents_are_recognized_in_one_call() -> None:
    requests: list[list[str]] = []

    class Noting(Capitals):
        def find(self, texts: Sequence[str]) -> list[list[Entity]]:
            requests.append(list(texts))
            return super().find(texts)

    inputs = []
    for contents, wanted in ((["the BBC", "nobody"], True), (["a EU"], False), (["the UN"], True)):
        text, chunks = cut(*contents)
        source = Source(ExtractedText(text, ""), "a.txt", {})
        inputs.append(Input(source, chunks, Options(entities=wanted), Tools(Lower(), Noting())))
    together = enrich(inputs)
    assert requests == [["the BBC", "nobody", "the UN"]]
    assert together == [enrich([alone])[0] for alone in inputs]
    assert [e.properties.get("entities") for e in together] == [["BBC"], None, ["UN"]]


def test_entities_that_the_sender_names_are_every_chunks() -> None:
    found = enriched("the BBC", "nobody", submitted={"entities": ["Aunt"]})
    assert [e.properties["entities"] for e in found.chunks] == [["Aunt", "BBC"], ["Aunt"]]


def test_a_property_entities_that_is_no_list_of_names_is_left_as_it_is() -> None:
    found = enriched("the BBC", submitted={"entities": 3})
    assert "entities" not in found.chunks[0].properties
    assert "entities" not in found.properties


def test_a_collection_can_do_without_entities_but_for_its_dictionary() -> None:
    found = enriched("the BBC and Auntie", entities=False, dictionary={"BBC News": ["auntie"]})
    assert found.properties["entities"] == ["BBC News", "auntie"]


def test_an_abbreviation_counts_as_the_name_wherever_it_stands() -> None:
    text = "Data Protection Commission (DPC) acts"
    entity = Entity("Data Protection Commission", "organisation", 0, 26)
    assert list(abbreviations(text, [entity])) == [("Data Protection Commission", "DPC")]
    other = [Entity("Data Protection Commission", "organisation", 0, 26)]
    assert list(abbreviations(text.replace("DPC", "EU"), other)) == []
    korean = '국민건강보험공단(이하 "공단"이라 한다)은'
    assert list(abbreviations(korean, [Entity("국민건강보험공단", "organisation", 0, 8)])) == [
        ("국민건강보험공단", "공단")
    ]


def test_korean_names_are_kept_with_and_without_spaces() -> None:
    both = {"출산장려금", "출산 장려금"}
    for name in both:
        assert set(spellings(Entity(name, "programme", 0, len(name)))) == both
    assert spellings(Entity("김민수", "person", 0, 3)) == ["김민수"]
    assert spellings(Entity("Housing Act", "law", 0, 11)) == ["Housing Act"]


def test_a_dictionary_ignores_case_and_korean_spaces_but_not_the_ends_of_latin_words() -> None:
    names = Dictionary({"출산장려금": ["birth grant", "BG"]})
    group = ["출산장려금", "birth grant", "BG"]
    for text in ("출산 장려금을", "출산장\n려금", "The Birth\ngrant is", "a BG."):
        assert names.find(text) == group
    for text in ("birthgrants", "rebirth grant", "ABG", "출산"):
        assert names.find(text) == []


@pytest.mark.parametrize(
    ("text", "begins", "ends"),
    [
        ("[시행 2024. 1. 1.] [법률 제1호, 2023. 3. 1., 일부개정]", "2024-01-01", None),
        ("시행일: 2024년 1월 1일", "2024-01-01", None),
        ("| 시행일자 | 2024-03-01 |", "2024-03-01", None),
        ("이 법은 2024년 1월 1일부터 시행한다.", "2024-01-01", None),
        ("유효기간: 2024. 1. 1. ~ 2024. 12. 31.", "2024-01-01", "2025-01-01"),
        ("이 고시는 2026년 12월 31일까지 효력을 가진다", None, "2027-01-01"),
        ("2020년 3월 1일 폐지", None, "2020-03-01"),
        ("effective from 1 January 2024 until 31 December 2025.", "2024-01-01", "2026-01-01"),
        ("Effective date: January 1, 2024", "2024-01-01", None),
        ("shall remain in force until 31 December 2025", None, "2026-01-01"),
        ("Valid until: 2025-12-31", None, "2026-01-01"),
        ("repealed with effect from 25 May 2018", None, "2018-05-25"),
        ("came into force on 1 April 2010", "2010-04-01", None),
        ("born on 1 May 1990", None, None),
        ("effective 31 February 2024", None, None),
        ("in force until 31 December 9999", None, "9999-12-31"),
    ],
)  # fmt: skip
def test_a_text_says_from_when_to_when_it_holds(
    text: str, begins: str | None, ends: str | None
) -> None:
    expected = {"valid_from": begins, "valid_to": ends}
    assert of_chunk(text).properties() == {k: v for k, v in expected.items() if v}


def test_a_day_of_revision_is_the_documents_where_it_names_no_other() -> None:
    assert of_document("개정일 2023. 12. 31.", {}).properties() == {"valid_from": "2023-12-31"}
    both = "개정일 2023. 12. 31., 시행일 2024. 2. 1."
    assert of_document(both, {}).properties() == {"valid_from": "2024-02-01"}
    assert of_chunk("Last revised on 1 March 2022").properties() == {}


def test_the_document_goes_by_its_front_matter_then_by_its_head_then_by_all_its_text() -> None:
    head, far = "effective from 1 March 2022. ", "x" * 4000 + " effective from 1 May 2023"
    front = {"Valid-From": "1 January 2021", "expires": "2030-12-31"}
    assert of_document(head + far, front).properties() == {
        "valid_from": "2021-01-01",
        "valid_to": "2031-01-01",
    }
    assert of_document(head + far, {}).properties() == {"valid_from": "2022-03-01"}
    assert of_document(far, {}).properties() == {"valid_from": "2023-05-01"}
    assert of_document(f"{far}, effective from 2 May 2023", {}).properties() == {}


def test_days_of_the_document_are_its_chunks_unless_they_say_otherwise() -> None:
    found = enriched("in force from 1 May 2020", "annex", "applies from 1 May 2024")
    assert found.properties == {"valid_from": "2020-05-01"}
    assert [e.properties for e in found.chunks] == [
        {"valid_from": "2020-05-01"},
        {},
        {"valid_from": "2024-05-01"},
    ]


def test_of_days_that_contradict_each_other_none_is_set_and_a_warning_says_so() -> None:
    found = enriched("effective from 1 May 2024", "valid until 1 May 2020")
    assert found.properties == {}
    assert found.warnings == ("left out: days by which the document ends before it begins (1)",)
    chunk = enriched("effective from 1 May 2024, valid until 1 May 2020")
    assert chunk.chunks[0].properties == {}
    assert chunk.warnings == (
        "left out: days by which chunks end before they begin (1: 0),"
        " days by which the document ends before it begins (1)",
    )


def test_what_is_submitted_counts_even_against_the_text() -> None:
    found = enriched("in force from 1 May 2024", submitted={"valid_to": "2020-01-01"})
    assert "valid_from" not in found.properties
    assert found.chunks[0].properties == {}
    assert found.warnings == (
        "left out: days by which chunks end before they begin (1: 0),"
        " days by which the document ends before it begins (1)",
    )
    agreed = enriched("in force from 1 May 2019", submitted={"valid_to": "2020-01-01"})
    assert agreed.properties == {"valid_from": "2019-05-01"}
    assert agreed.warnings == ()


def test_facets_are_set_by_the_first_rule_that_fits() -> None:
    rules = (
        Rule(set={"doc_type": "law", "jurisdiction": "KR"}, content="[시행 *] [법률"),
        Rule(set={"doc_type": "policy"}, name="policies/*.md"),
        Rule(set={"doc_type": "other", "jurisdiction": "EU"}, name="*"),
    )
    assert facets(rules, "x.pdf", "아동수당법\n[시행  2024. 1. 1.] [법률 제1호]") == {
        "doc_type": "law",
        "jurisdiction": "KR",
    }
    assert facets(rules, "Policies/Travel.MD", "") == {"doc_type": "policy", "jurisdiction": "EU"}
    assert facets(rules[:2], "laws/a.md", "x" * 5000 + "[시행 ] [법률") == {}


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("a*b", "ab", True),
        ("a*b", "a--b", True),
        ("a*b", "b", False),
        ("ab*ba", "aba", False),
        ("a*b*c", "a-b-c", True),
        ("a*b*c", "a-c-b", False),
        ("a", "ab", False),
        ("*" + "a*" * 90 + "b", "a" * 100_000, False),
    ],
)
def test_a_star_stands_for_any_characters(pattern: str, text: str, expected: bool) -> None:
    assert fits(pattern, text) is expected


class _Half:
    """Confirms the first of the names, and remembers what it was shown."""

    model = "half"

    def __init__(self) -> None:
        self.shown: list[str] = []

    def confirm(self, passage: str, names: Sequence[str]) -> frozenset[str]:
        self.shown += [passage, *names]
        return frozenset(names[:1])


def test_a_language_model_has_the_last_word_where_the_collection_asks_it() -> None:
    half = _Half()
    assert enriched("BBC and EU", confirmer=half).properties["entities"] == ["BBC", "EU"]
    assert half.shown == []
    requests = enriched("BBC and EU of a@b.kr", "none", confirmer=half, confirm=True)
    assert requests.properties["entities"] == ["BBC"]
    assert half.shown == ["BBC and EU of ■■■■■■", "BBC", "EU"]


def test_white_space_after_a_bracket_takes_linear_time() -> None:
    name = "Data Commission"
    for before, after in (("(DC", "x"), ("(", "1234567890123")):
        text = name + before + " " * 100_000 + after
        assert list(abbreviations(text, [Entity(name, "organisation", 0, len(name))])) == []

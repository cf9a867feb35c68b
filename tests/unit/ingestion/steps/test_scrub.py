"""Personal data by its form, and that what is scrubbed is nowhere."""

import logging
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pipeline_parts import make_context, submit

from callslip.config.settings import Settings
from callslip.ingestion.enrich.scrub import holds_personal, masked, masked_extract
from callslip.ingestion.pipeline import run_step
from callslip.ingestion.values import ExtractedText
from callslip.messages.options import Options
from callslip.stores.blobs import Blobs
from callslip.stores.ledger import STEPS, Ledger
from callslip.stores.records import CollectionSchema, VectorSpec
from callslip.stores.registry import make_store

PERSONAL = (
    *("kim.minsu+x@korea.go.kr", "a@b.kr"),
    *("900101-1234567", "9001011234567", "900101 – 2234567", "040229-3234567"),
    *("4111 1111 1111 1111", "5500005555555559", "3782-822463-10005"),
    *("010-1234-5678", "01012345678", "+82 10-1234-5678", "+82-2-123-4567"),
    *("02)123-4567", "1588-1234"),
    *("(415) 555-0132", "+1 415 555 0132", "+44 20 7946 0958", "０１０－１２３４－５６７８"),
)  # fmt: skip
HARMLESS = (
    *("2024-01-01", "1,000,000", "제2024-123호", "2023. 12. 31.", "RFC 8446", "978-3-16-148410-0"),
    *("991332-1234567", "4111 1111 1111 1112", "192.168.0.101"),
    *("2024-11-21 14:30:00", "법률 제19234호"),
    *("user@", "@mention", "550e8400-e29b-41d4-a716-446655440000"),
)  # fmt: skip


@pytest.mark.parametrize("value", PERSONAL)
def test_personal_data_is_masked_and_nothing_beside_it(value: str) -> None:
    assert masked(f"전화 {value}, 끝") == "전화 {}, 끝".format(
        "".join(c if c.isspace() else "■" for c in value)
    )
    assert holds_personal(value)


def test_numbers_around_a_card_do_not_hide_it() -> None:
    text = "010-1234-5678\n4111 1111 1111 1111 2024"
    assert masked(text) == "■■■■■■■■■■■■■\n■■■■ ■■■■ ■■■■ ■■■■ 2024"


@pytest.mark.parametrize("value", HARMLESS)
def test_what_only_looks_like_it_stays(value: str) -> None:
    assert masked(f"x {value} y") == f"x {value} y"


@given(st.text(alphabet="0123456789-. @ab가\n", max_size=80))
def test_masking_keeps_every_place_and_leaves_nothing(text: str) -> None:
    once = masked(text)
    assert len(once) == len(text)
    assert [c for c in text if c.isspace()] == [c for c in once if c.isspace()]


@pytest.mark.parametrize("text", ["1" * 200_000, "a" * 200_000, "1 " * 100_000, "a.b@" * 50_000])
def test_long_runs_take_no_time(text: str) -> None:
    masked(text)


def test_title_and_properties_of_a_file_are_masked_too() -> None:
    mail = ExtractedText("hi", "", title="to a@b.kr", properties={"from": "kim@b.kr"})
    assert masked_extract(mail) == ExtractedText(
        "hi", "", title="to ■■■■■■", properties={"from": "■■■■■■■■"}
    )


SECRETS = ("KIM@example.org", "900101-1234567", "010-1234-5678", "4111 1111 1111 1111")
LETTER = """The BBC wrote. Card holder of 4111 1111 1111 1111, born 900101-1234567.

Call 010-1234-5678 or KIM@example.org."""


def test_what_is_masked_reaches_no_store_no_artifact_and_no_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    held = _ingested(tmp_path, Options(scrub="text"), caplog)  # type: ignore[call-arg]
    originals = [path for path, content in held.items() if _secrets(content)]
    assert [path.name.split("-")[0] for path in originals] == ["original"]
    assert any("■■■".encode() in content for content in held.values())
    assert not any(secret in caplog.text for secret in SECRETS)


def test_without_masking_the_same_search_for_values_finds_them(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    held = _ingested(tmp_path, Options(scrub="off"), caplog)  # type: ignore[call-arg]
    assert len([path for path, content in held.items() if _secrets(content)]) > 1


def _secrets(content: bytes) -> list[str]:
    plain = content.lower()
    return [secret for secret in SECRETS if secret.lower().encode() in plain]


def _ingested(
    folder: Path, options: Options, caplog: pytest.LogCaptureFixture
) -> dict[Path, bytes]:
    """Every file that is left when a letter has gone through the pipeline."""
    schema = CollectionSchema("papers", VectorSpec(4))
    with (
        caplog.at_level(logging.DEBUG),
        closing(make_store(Settings(data_dir=folder), "tfidf")) as store,
        closing(Ledger(f"sqlite:///{folder / 'ledger.db'}")) as ledger,
    ):
        ledger.create()
        store.ensure_schema(schema)
        ledger.collections.create(
            schema, store="tfidf", embedder="tiny", analyzer="", options=options
        )
        step_context = make_context(ledger, Blobs(str(folder / "blobs")), store)
        item = submit(step_context, LETTER)
        for step in STEPS:
            assert run_step(step_context, step, item.document_id, item.version) == "go on"
        (chunk, *_) = store.get_chunks("papers", store.find_ids("papers"))
        assert "BBC" in chunk.body
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}

"""The steps from the original to enriched chunks: extract, sectionize, chunk, enrich."""

from collections.abc import Sequence
from dataclasses import replace

from callslip.errors import (
    SettingsError,
)
from callslip.ingestion.artifacts import (
    CHUNKS,
    ENRICHED,
    EXTRACTED,
    SECTIONS,
    artifact_name,
)
from callslip.ingestion.chunks.chunk import chunk
from callslip.ingestion.chunks.previous_cuts import NEVER_CUT, PreviousCuts
from callslip.ingestion.chunks.title_context import line_of
from callslip.ingestion.corrections.applying import with_corrections
from callslip.ingestion.corrections.repeated_cuts import edits_of, repeated_cuts
from callslip.ingestion.corrections.text_edits import TextEdit
from callslip.ingestion.enrich import Input, Source, Tools, enrich
from callslip.ingestion.enrich.scrub import masked_extract
from callslip.ingestion.reading import read_original
from callslip.ingestion.sections.sectionize import sectionize
from callslip.ingestion.steps.work import Work, bounds_by_hand, matters, title_of
from callslip.ingestion.values import Chunk, Enriched, ExtractedText, Section
from callslip.stores.blobs import original_name


def extract_text(work: Work) -> ExtractedText:
    """Extract the text of the original, and apply the corrections that the version has."""
    if not work.version.corrections:
        return _read_original(work)
    extracted = with_corrections(_uncorrected(work), work.version.corrections)
    return masked_extract(extracted) if work.options.scrub == "text" else extracted


def _uncorrected(work: Work) -> ExtractedText:
    """Return the text before its corrections, which is stored too: reading may be slow (OCR)."""
    document_id, blobs = work.version.document_id, work.context.blobs
    name = artifact_name("extract", work.version.sha256, **matters(work, "extract"))
    if blobs.exists(document_id, name):
        known = EXTRACTED.load(blobs.read(document_id, name))
        if not known.attachments:  # an artifact has no content of attachments
            return known
    extracted = _read_original(work)
    work.lease.check()  # write nothing after a deletion of the document
    blobs.write(document_id, name, EXTRACTED.dump(extracted))
    return extracted


def _read_original(work: Work) -> ExtractedText:
    """Extract the text of the original in a child process with resource limits."""
    version, options = work.version, work.options
    original = work.context.blobs.read(version.document_id, original_name(version.sha256))
    fields = options.json_fields.settings()
    attempt = work.claim.token
    extracted = read_original(work.context, original, version.filename, fields, attempt)
    return masked_extract(extracted) if options.scrub == "text" else extracted


def find_sections(work: Work) -> list[Section]:
    """Divide the extracted text into sections by its headings."""
    return sectionize(work.read("extract", EXTRACTED), work.context.settings.language_codes)


def cut_chunks(work: Work) -> list[Chunk]:
    """Cut the sections into passages that fit the embedder.

    Reuse the previous version's cuts if possible; keep them if the version only corrects its text.
    """
    extracted = work.read("extract", EXTRACTED)
    sections = work.read("sectionize", SECTIONS)
    previous, text = work.previous("chunk", CHUNKS), work.previous("extract", EXTRACTED)
    if previous and text and (edits := _edits(work, text, extracted, sections)) is not None:
        return repeated_cuts(
            work.version.document_id, extracted.text, previous, edits, work.context.tokenizer
        )
    return chunk(
        extracted.text,
        sections,
        work.context.tokenizer,
        work.chunking,
        work.version.document_id,
        extracted.blocks,
        PreviousCuts(text.text, previous) if text and previous else NEVER_CUT,
        work.context.settings.language_codes,
    )


def _edits(
    work: Work, previous: ExtractedText, extracted: ExtractedText, sections: Sequence[Section]
) -> list[TextEdit] | None:
    """Return the edits since the previous version if all are corrections within its sections.

    None for any other version: its text is cut anew.
    """
    version = work.version
    if not version.corrections or version.previous_version is None:
        return None
    before = work.context.ledger.documents.version(version.document_id, version.previous_version)
    known = [each.correction_id for each in before.corrections]
    ids = [each.correction_id for each in version.corrections]
    headed = [(s.path, s.heading) for s in work.previous("sectionize", SECTIONS) or ()]
    if before.sha256 != version.sha256 or ids[: len(known)] != known:
        return None
    if headed != [(s.path, s.heading) for s in sections]:
        return None
    return edits_of(previous.text, version.corrections[len(known) :], extracted.text)


def enrich_chunks(work: Work) -> Enriched:
    """Add language, keyword terms, entities, dates and facets to the chunks.

    Raises SettingsError if the collection uses a language model but none is configured.
    """
    return _enriched([work])[0]


def enrich_together(works: Sequence[Work]) -> dict[int, Enriched]:
    """Enrich new documents of one collection, whose names are recognized in one call, by number.

    Nothing is done in common if a language model is asked about the names, which takes long. Raises
    the error of the first document that fails, if one does.
    """
    return {} if works[0].options.confirm else dict(enumerate(_enriched(works)))


def _enriched(works: Sequence[Work]) -> list[Enriched]:
    previous = [work.previous("enrich", ENRICHED) for work in works]
    enriched = enrich(list(map(_input, works, previous)))
    return list(map(_titled, works, previous, enriched))


def _input(work: Work, previous: Enriched | None) -> Input:
    version, options, context = work.version, work.options, work.context
    if options.confirm and context.confirmer is None:
        raise SettingsError(
            f"collection {version.collection!r} asks a language model about its entities,"
            " but llm.base_url is not set",
            hint="Set llm.base_url and llm.model, or the collection's option confirm to false.",
        )
    extracted = work.read("extract", EXTRACTED)
    chunks = work.read("chunk", CHUNKS)
    return Input(
        Source(extracted, version.name, version.properties, bounds_by_hand(version)),
        chunks,
        options,
        Tools(
            work.analyzer,
            context.recognizer,
            context.confirmer,
            context.settings.language_codes,
        ),
        {e.chunk.chunk_id: e for e in previous.chunks} if previous else {},
    )


def _titled(work: Work, previous: Enriched | None, enriched: Enriched) -> Enriched:
    title = line_of(title_of(work))
    if previous is not None and previous.title == title:
        return replace(enriched, title=title, title_terms=previous.title_terms)
    return replace(enriched, title=title, title_terms=work.analyzer.analyze(title) if title else "")

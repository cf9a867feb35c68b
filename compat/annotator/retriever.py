"""Vectorizing the documents of a dialog, and finding the chunks nearest to the last utterance."""

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any

from callslip.compat.annotator import names
from callslip.compat.annotator.chunks import Chunk, chunks
from callslip.compat.annotator.configuration import Tokenizer, tokenizer
from callslip.compat.annotator.dialogs import Dialog, section, text
from callslip.compat.annotator.fetching import TimeLimit
from callslip.compat.annotator.links import Links
from callslip.compat.annotator.words import words
from callslip.config.sections.annotator import AnnotatorSettings
from callslip.config.settings import MEGABYTE
from callslip.errors import FileTooLarge, InvalidRequest, NotFound
from callslip.models.e5.tokens import well_formed

WORDS_OF_A_MB = 200_000
"""The most distinct words of a model, for each MB of `annotator.max_text_mb`."""


Fitting = Callable[[Sequence[tuple[str, str]], AnnotatorSettings], tuple[bytes, bytes]]
"""A function that maps pairs of document id and text to the packed matrix and the database."""


def fitted(texts: Sequence[tuple[str, str]], settings: AnnotatorSettings) -> tuple[bytes, bytes]:
    """Fit TF-IDF to the chunks of (id, text) pairs in this process, as a `Fitting`."""
    from callslip.stores.tfidf.portable import Fit  # scikit-learn takes a second to import

    cut = list(chunks(texts))
    counted = tokenizer(settings.config_path)
    model = Fit.of([_words(chunk.text, counted) for chunk in cut], counted.as_json())
    return model.packed(), _database(cut)


def vectorize(
    dialog: Dialog, links: Links, settings: AnnotatorSettings, fit: Fitting = fitted
) -> dict[str, Any]:
    """Return the `human_attributes` to add: the links to a model of the documents in use.

    Empty if no document is in use, or if the dialog's model was made from the same documents.
    """
    in_use = dialog.in_use
    if not in_use or set(in_use) == _vectorized(dialog):
        return {}
    limit = TimeLimit(settings.file_server_timeout)
    matrix, database = fit(_texts(dialog, in_use, links, limit), settings)
    model_id = names.of_dialog(dialog.id)
    uploading = TimeLimit(settings.file_server_timeout)
    model = {
        "db_link": links.keep(database, f"{model_id}.db", uploading),
        "matrix_link": links.keep(matrix, f"{model_id}.npz", uploading),
        "file_ids": in_use,
    }
    return {"human_attributes": {"model_info": model}}


def candidates(dialog: Dialog, links: Links, settings: AnnotatorSettings) -> dict[str, Any]:
    """Return the `candidate_files`, best first; empty if no document is in use or vectorized.

    Raises InvalidRequest if the dialog's `matrix_link` leads to an invalid model.
    """
    model = dialog.model
    matrix_link = text(model, "matrix_link")
    if not dialog.in_use or not matrix_link or not text(model, "db_link"):
        return {}
    from callslip.stores.tfidf.portable import Fit  # scikit-learn takes a second to import

    query = text(dialog.last, "text")
    read = links.read(matrix_link, TimeLimit(settings.file_server_timeout))
    try:
        fit = Fit.read(read.content, WORDS_OF_A_MB * settings.max_text_mb)
        counted = Tokenizer.of(fit.about)
    except ValueError as error:
        raise InvalidRequest(f"matrix_link leads to {error}") from None
    nearest = fit.nearest(_words(query, counted), settings.paragraphs_num)
    return {"candidate_files": [f"{number + 1}.txt" for number in nearest]}


def _vectorized(dialog: Dialog) -> set[str]:
    file_ids = dialog.model.get("file_ids")
    return (
        {id_ for id_ in file_ids if isinstance(id_, str)} if isinstance(file_ids, list) else set()
    )


def _texts(
    dialog: Dialog, in_use: Sequence[str], links: Links, limit: TimeLimit
) -> list[tuple[str, str]]:
    """Return the id and text of each document in use; two ids with one link count once."""
    texts: dict[str, tuple[str, str]] = {}
    characters, most = 0, links.most_mb * MEGABYTE
    for file_id in in_use:
        link = text(section(dialog.processed, file_id), "processed_text_link")
        if not link:
            raise NotFound("a document in use has no processed_text_link in processed_documents")
        if link in texts:
            continue
        texts[link] = (file_id, links.text(link, limit))
        characters += len(texts[link][1])
        if characters > most:
            raise FileTooLarge(f"the documents have more than {links.most_mb} MB of text together")
    return list(texts.values())


def _words(of: str, counted: Tokenizer) -> str:
    return words(
        of,
        stop_words=counted.filter_stopwords,
        stems=counted.lemmas,
        alphas_only=counted.alphas_only,
    )


def _database(cut: Sequence[Chunk]) -> bytes:
    """Return an SQLite database of the chunks.

    The table `documents` is that of the original; `files` maps the chunks to their file ids.
    """
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE documents (id PRIMARY KEY, text)")
        connection.execute("CREATE TABLE files (id PRIMARY KEY, file_id)")
        for table, rows in (
            ("documents", [(chunk.name, well_formed(chunk.text)) for chunk in cut]),
            ("files", [(chunk.name, well_formed(chunk.file_id)) for chunk in cut]),
        ):
            connection.executemany(f"INSERT INTO {table} VALUES (?, ?)", rows)  # noqa: S608
        connection.commit()
        return connection.serialize()

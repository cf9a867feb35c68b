"""Vectorizing the documents of a dialog, and finding the chunks nearest to what was said last."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from typing import Any

from callslip.errors import FileTooLarge, InvalidRequest, NotFound
from compat.annotator import names
from compat.annotator.chunks import Chunk, chunks
from compat.annotator.configured import Tokenizer, tokenizer
from compat.annotator.dialogs import Dialog, section, text
from compat.annotator.fetching import Deadline
from compat.annotator.links import Links
from compat.annotator.words import words
from config.annotator import AnnotatorSettings
from config.settings import MEGABYTE
from models.tokens import well_formed

WORDS_OF_A_MB = 200_000
"""Different ones, at most, in a model that is read back."""


def vectorize(dialog: Dialog, links: Links, settings: AnnotatorSettings) -> dict[str, Any]:
    """The `human_attributes` to be added; none where the model fits the documents in use."""
    in_use = dialog.in_use
    if not in_use or set(in_use) == _vectorized(dialog):
        return {}
    from stores.tfidf.portable import Fit  # scikit-learn takes a second to import

    deadline = Deadline(settings.file_server_timeout)
    cut = list(chunks(_texts(dialog, in_use, links, deadline)))
    counted = tokenizer(settings.config_path)
    fit = Fit.of([_words(chunk.text, counted) for chunk in cut], counted.told())
    model_id = names.of_dialog(dialog.id)
    uploading = Deadline(settings.file_server_timeout)
    model = {
        "db_link": links.keep(_database(cut), f"{model_id}.db", uploading),
        "matrix_link": links.keep(fit.packed(), f"{model_id}.npz", uploading),
        "file_ids": in_use,
    }
    return {"human_attributes": {"model_info": model}}


def candidates(dialog: Dialog, links: Links, settings: AnnotatorSettings) -> dict[str, Any]:
    """The `candidate_files`, best first; none where nothing is in use or was vectorized."""
    model = dialog.model
    matrix_link = text(model, "matrix_link")
    if not dialog.in_use or not matrix_link or not text(model, "db_link"):
        return {}
    from stores.tfidf.portable import Fit  # as above

    asked = text(dialog.last, "text")
    read = links.read(matrix_link, Deadline(settings.file_server_timeout))
    try:
        fit = Fit.read(read.content, WORDS_OF_A_MB * settings.max_text_mb)
        counted = Tokenizer.of(fit.about)
    except ValueError as error:
        raise InvalidRequest(f"matrix_link leads to {error}") from None
    nearest = fit.nearest(_words(asked, counted), settings.paragraphs_num)
    return {"candidate_files": [f"{number + 1}.txt" for number in nearest]}


def _vectorized(dialog: Dialog) -> set[str]:
    found = dialog.model.get("file_ids")
    return {id_ for id_ in found if isinstance(id_, str)} if isinstance(found, list) else set()


def _texts(
    dialog: Dialog, in_use: Sequence[str], links: Links, deadline: Deadline
) -> list[tuple[str, str]]:
    """Each text in use with its id; one that two ids link to is there once, as in the original."""
    found: dict[str, tuple[str, str]] = {}
    characters, most = 0, links.most_mb * MEGABYTE
    for file_id in in_use:
        link = text(section(dialog.processed, file_id), "processed_text_link")
        if not link:
            raise NotFound("a document in use has no processed_text_link in processed_documents")
        if link in found:
            continue
        found[link] = (file_id, links.text(link, deadline))
        characters += len(found[link][1])
        if characters > most:
            raise FileTooLarge(f"the documents have more than {links.most_mb} MB of text together")
    return list(found.values())


def _words(of: str, counted: Tokenizer) -> str:
    return words(of, stop_words=counted.filter_stopwords, stems=counted.lemmas)


def _database(cut: Sequence[Chunk]) -> bytes:
    """The chunks as SQLite: `documents` as in the original, `files` says whose each is."""
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

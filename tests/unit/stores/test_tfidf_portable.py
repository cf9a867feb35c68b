"""An exported fit that is imported again: the same, or refused."""

import io
import pickle
import tracemalloc
import zipfile
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import TfidfVectorizer

from callslip.stores.tfidf import portable
from callslip.stores.tfidf.portable import Fit, FitDamaged

WORDS = st.sampled_from(["rose", "lamb", "fox", "prince", "desert", "star", "well", "snake"])
TEXTS = st.lists(st.lists(WORDS, max_size=12).map(" ".join), max_size=9)


@given(TEXTS, st.lists(WORDS, max_size=5).map(" ".join))
def test_the_order_is_that_of_cosines_then_of_numbers(texts: list[str], query: str) -> None:
    fit = Fit.read(Fit.of(texts, {"said": True}).packed())
    assert (fit.about, fit.texts) == ({"said": True}, len(texts))
    scores = np.zeros(len(texts))
    if any(texts):
        vectorizer = TfidfVectorizer(ngram_range=(1, 2), token_pattern=r"\w+")
        matrix = vectorizer.fit_transform(texts)
        scores = (matrix @ vectorizer.transform([query]).T).toarray()[:, 0]
    found = fit.nearest(query, 100)
    assert sorted(found) == list(range(len(texts)))
    assert all(np.diff(scores[found]) <= 1e-6)
    exact = scores[found].round(5)
    ties = [(a, b) for a, b, d in zip(found, found[1:], np.diff(exact), strict=False) if d == 0]
    assert all(a < b for a, b in ties if texts[a] == texts[b] or scores[a] == scores[b] == 0)


@pytest.mark.parametrize("query", ["", "unknown words only", "  ", "rose"])
@pytest.mark.parametrize("texts", [[], [""], ["", ""], ["rose"]])
def test_no_text_one_text_and_no_known_word_are_answered(texts: list[str], query: str) -> None:
    fit = Fit.read(Fit.of(texts, {}).packed())
    assert fit.nearest(query, 5) == list(range(len(texts)))


def rewritten(**changed: Any) -> bytes:
    with np.load(io.BytesIO(Fit.of(["rose lamb", "fox"], {}).packed())) as held:
        arrays = {name: held[name] for name in held.files}
    for name, change in changed.items():
        arrays[name] = change(arrays[name])
    file = io.BytesIO()
    np.savez(file, **{name: array for name, array in arrays.items() if array is not None})
    return file.getvalue()


def text(of: bytes) -> Any:
    return lambda _: np.frombuffer(of, np.uint8)


def with_header(header: bytes) -> bytes:
    """A fit whose first array is described so."""
    file = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(rewritten())) as whole,
        zipfile.ZipFile(file, "w") as changed,
    ):
        for name in whole.namelist():
            length = len(header).to_bytes(2, "little")
            bad = b"\x93NUMPY\x01\x00" + length + header
            changed.writestr(name, bad if name == "grams.npy" else whole.read(name))
    return file.getvalue()


@pytest.mark.parametrize(
    "data",
    [
        *(b"", b"PK", b"<html>", pickle.dumps({"a": 1}), b"\x93NUMPY"),
        *(rewritten(grams=lambda a: a[::-1]), rewritten(grams=lambda a: a.astype(float))),
        rewritten(grams=lambda _: np.array([{"an": "object"}], dtype=object)),
        *(rewritten(idf=lambda a: a[:-1]), rewritten(idf=lambda a: a * np.nan)),
        *(rewritten(indices=lambda a: a + 100), rewritten(indices=lambda a: -a - 1)),
        *(rewritten(indptr=lambda a: a[::-1]), rewritten(indptr=lambda a: a + 1)),
        rewritten(indices=lambda a: a.astype(float)),
        *(rewritten(data=lambda a: a * np.inf), rewritten(data=lambda a: a.astype(str))),
        *(rewritten(texts=lambda a: a + 10**12), rewritten(texts=lambda a: -a)),
        *(rewritten(texts=lambda _: None), rewritten(texts=lambda a: a.astype(float))),
        *(rewritten(words=text(b"a\nb")), rewritten(words=text(b"a\nb\nc\nd"))),
        *(rewritten(words=text(b"")), rewritten(words=text(b"a\nb\nb"))),
        *(rewritten(words=text(b"a\n\nb")), rewritten(words=text(b"a\nb\n\xff"))),
        *(rewritten(words=lambda _: None), rewritten(about=lambda _: None)),
        *(rewritten(about=text(b"[]")), rewritten(about=text(b"{")), rewritten(about=text(b""))),
        rewritten(about=text(b'{"format": 2, "about": []}')),
        rewritten(about=text(b'{"format": 1, "about": {}}')),
        rewritten(about=text(b'{"format": 2, "about": {"a": "' + b" " * 70_000 + b'"}}')),
        *(
            rewritten(about=text(b"[" * 60_000)),
            with_header(b"(" * 40),
            with_header(b" {\n  1\n 2"),
        ),
        *(with_header(b"[1].append"), with_header(b"{'descr': 1, 'fortran_order': 1, 'shape': 1}")),
    ],
)
def test_what_is_no_fit_is_refused_by_one_error(data: bytes) -> None:
    with pytest.raises(FitDamaged):
        Fit.read(data)


def test_nothing_is_unpickled() -> None:
    class Bomb:
        def __reduce__(self) -> Any:
            return (pytest.fail, ("it was unpickled",))

    file = io.BytesIO()
    np.savez(file, grams=np.array([Bomb()], dtype=object))
    with pytest.raises(FitDamaged):
        Fit.read(file.getvalue())


def test_what_would_unpack_to_too_much_is_not_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(portable, "MOST_BYTES", 10_000)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("grams.npy", bytes(100_000))
    with pytest.raises(FitDamaged):
        Fit.read(file.getvalue())


@pytest.mark.parametrize("line", [b"\n", b"[{},", b"a" * 60 + b"\n"])
def test_words_that_are_not_there_take_no_memory(line: bytes) -> None:
    data = rewritten(words=text(line * (60_000_000 // len(line))))
    tracemalloc.start()
    with pytest.raises(FitDamaged):
        Fit.read(data)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 200_000_000


def test_more_words_than_a_text_may_have_are_refused() -> None:
    data = Fit.of(["rose lamb", "fox"], {}).packed()
    assert Fit.read(data, 3).texts == 2
    with pytest.raises(FitDamaged):
        Fit.read(data, 2)


@given(st.binary(max_size=200), st.integers(0, 2000))
def test_a_fit_with_other_bytes_in_it_is_read_or_refused(noise: bytes, at: int) -> None:
    data = Fit.of(["rose lamb", "fox", "star"], {}).packed()
    try:
        fit = Fit.read(data[:at] + noise + data[at + len(noise) :])
    except FitDamaged:
        return
    assert len(fit.nearest("rose", 3)) == min(3, fit.texts)

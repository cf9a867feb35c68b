"""Links to a sentence of a web page."""

import pytest

from callslip.agent.text_fragments import with_text, without_text

PAGE = "https://example.org/a"


def words(start: int, stop: int, blank: str = " ") -> str:
    return blank.join(f"w{n}" for n in range(start, stop))


@pytest.mark.parametrize(
    ("sentence", "text"),
    [
        ("Parental leave is long.", "Parental%20leave%20is%20long."),
        ("e-mail, fax & post", "e%2Dmail%2C%20fax%20%26%20post"),
        ("출산 장려금은\u00a0 100만 원이다.", "%EC%B6%9C%EC%82%B0%20"),
        ("- a point of a list", "a%20point%20of%20a%20list"),
        ("2. Go out - 3. times", "Go%20out%20%2D%203.%20times"),
        ("15.", "15."),
        ("# Leave\n\nIt is long.", "Leave-,It%20is%20long."),
        ("Grade | Days\nA | 30", "Grade-,Days,30"),
        ("[1]  A Book, 2020", "%5B1%5D-,A%20Book%2C%202020"),
        (f"{words(0, 7)}\nof two lines", f"{words(0, 7, '%20')},of%20two%20lines"),
        (words(0, 24), words(0, 24, "%20")),
        (words(0, 25), f"{words(0, 12, '%20')},{words(13, 25, '%20')}"),
        ("100% #1 ~ “quote”", "100%25%20%231%20~%20%E2%80%9Cquote%E2%80%9D"),
    ],
)
def test_a_link_contains_the_sentence_or_its_ends(sentence: str, text: str) -> None:
    link = with_text(PAGE, sentence)
    assert link.startswith(f"{PAGE}#:~:text={text}")
    assert link.endswith(text) or text == "%EC%B6%9C%EC%82%B0%20"


def test_an_anchor_stays_and_an_earlier_fragment_goes() -> None:
    assert with_text(f"{PAGE}?b=c#d", "Leave") == f"{PAGE}?b=c#d:~:text=Leave"
    assert with_text(f"{PAGE}#:~:text=old", "Leave") == f"{PAGE}#:~:text=Leave"
    assert with_text(PAGE, " - | \n") == PAGE
    for url in (PAGE, f"{PAGE}#d", f"{PAGE}?b=c"):
        assert without_text(with_text(url, "Leave")) == url
        assert without_text(url) == url

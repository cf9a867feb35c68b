"""Links to a sentence of a web page."""

import pytest

from callslip.agent.text_fragments import with_text, without_text

PAGE = "https://example.org/a"


@pytest.mark.parametrize(
    ("sentence", "text"),
    [
        ("Parental leave is long.", "Parental%20leave%20is%20long."),
        ("e-mail, fax & post", "e%2Dmail%2C%20fax%20%26%20post"),
        ("출산 장려금은\u00a0 100만 원이다.", "%EC%B6%9C%EC%82%B0%20"),
        ("- a point of a list", "a%20point%20of%20a%20list"),
        ("# Leave\n\nIt is long.", "Leave,It%20is%20long."),
        ("Grade | Days\nA | 30", "Grade,30"),
        (" ".join(f"w{n}" for n in range(12)), "%20".join(f"w{n}" for n in range(12))),
        (" ".join(f"w{n}" for n in range(13)), "w0%20w1%20w2%20w3%20w4%20w5,w7%20w8%20w9"),
        ("100% #1 ~ “quote”", "100%25%20%231%20~%20%E2%80%9Cquote%E2%80%9D"),
    ],
)
def test_a_link_contains_the_sentence_or_its_ends(sentence: str, text: str) -> None:
    assert with_text(PAGE, sentence).startswith(f"{PAGE}#:~:text={text}")


def test_an_anchor_stays_and_an_earlier_fragment_goes() -> None:
    assert with_text(f"{PAGE}?b=c#d", "Leave") == f"{PAGE}?b=c#d:~:text=Leave"
    assert with_text(f"{PAGE}#:~:text=old", "Leave") == f"{PAGE}#:~:text=Leave"
    assert with_text(PAGE, " - | \n") == PAGE
    for url in (PAGE, f"{PAGE}#d", f"{PAGE}?b=c"):
        assert without_text(with_text(url, "Leave")) == url
        assert without_text(url) == url

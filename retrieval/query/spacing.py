"""The spelling of a query before it is embedded."""

from callslip.languages import DEFAULT, Codes, languages


def to_embed(query: str, codes: Codes = DEFAULT) -> str:
    """Return the query without outer white space, in the spelling of the language rules.

    A short query of only Hangul gets the spaces that Kiwi puts, so that 출산장려금 and 출산 장려금
    have the same vector. Keyword search does not need this: the analyzer gives both spellings the
    same terms.
    """
    text = query.strip()
    for language in languages(codes):
        text = language.to_embed(text)
    return text

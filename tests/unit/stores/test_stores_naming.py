"""Names from outside, as they are kept."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callslip.errors import InvalidRequest
from callslip.stores.naming import (
    MOST_COMPOSED,
    clean_filename,
    clean_line,
    clean_name,
    clean_tenant,
)


def test_a_name_may_look_like_a_path_below_a_folder() -> None:
    assert clean_name("law/2026/act one.pdf") == "law/2026/act one.pdf"
    assert clean_name("..hidden/a..b") == "..hidden/a..b"


@pytest.mark.parametrize(
    "name", ["..", "../a", "a/../b", "a/..", "..\\a", "a\\..\\b", "C:\\..\\x", "\t../a"]
)
def test_a_name_that_leads_out_of_a_folder_is_refused(name: str) -> None:
    with pytest.raises(InvalidRequest, match=r"the path part '\.\.'"):
        clean_name(name)


@pytest.mark.parametrize("name", ["", "  ", "\x00\x1f", "x" * 1025, "a" + "\u0300\u0316" * 250_000])
def test_a_name_that_says_nothing_or_too_much_is_refused(name: str) -> None:
    with pytest.raises(InvalidRequest):
        clean_name(name)


@given(st.text(st.sampled_from("a가각\u1100\u1161\u11a8\u0300\u0316\u1f82\u03b1\u0313\u0345")))
def test_a_name_is_measured_as_it_is_kept(name: str) -> None:
    whole = unicodedata.normalize("NFC", name)
    if whole:
        assert clean_line(name, "title") == whole
        assert len(name) <= MOST_COMPOSED * len(whole)


def test_of_a_filename_the_last_part_is_kept() -> None:
    assert clean_filename("../../etc/passwd") == "passwd"
    assert clean_filename("C:\\Users\\me\\a.pdf") == "a.pdf"


def test_a_title_may_say_anything_in_one_line() -> None:
    assert clean_line(" from / .. / to\r\nhere ", "title") == "from / .. / to here"


def test_a_title_keeps_no_sign_that_acts_on_a_terminal() -> None:
    assert clean_line("to \x9b31m red\x85end\x7f", "title") == "to  31m red end"


def test_a_tenant_is_optional_and_short() -> None:
    assert clean_tenant("") == ""
    with pytest.raises(InvalidRequest):
        clean_tenant("x" * 65)


@given(name=st.text(st.characters(), max_size=1100))
def test_whatever_is_kept_is_kept_as_it_is_again(name: str) -> None:
    try:
        kept = clean_name(name)
    except InvalidRequest:
        return
    assert clean_name(kept) == kept
    assert kept.isprintable() or not any(unicodedata.category(letter) == "Cc" for letter in kept)
    kept.encode()


@pytest.mark.parametrize("tenant", [".", "..", "a/..", "./a"])
def test_no_tenant_has_a_name_that_clients_resolve_to_another_address(tenant: str) -> None:
    with pytest.raises(InvalidRequest, match="has the part"):
        clean_tenant(tenant)  # DELETE …/tenants/.. would delete the collection

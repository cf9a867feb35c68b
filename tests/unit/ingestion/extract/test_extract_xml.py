"""XML: the text of its elements on lines of their own; broken and hostile XML as plain text."""

import pytest

from callslip.config.settings import ExtractSettings
from callslip.ingestion.extract import extract
from callslip.ingestion.extract.sniff import HTML, PLAIN, XML
from callslip.ingestion.values import ExtractedText

RFC = """\
<?xml version="1.0" encoding="utf-8"?>
<?rfc toc="yes"?>
<!DOCTYPE rfc SYSTEM "rfc.ent" [<!ENTITY own "our&#32;own">]>
<!-- a comment -->
<rfc xmlns:xi="http://www.w3.org/2001/XInclude"><front>
  <title abbrev="Old">Old Versions</title><author fullname="K. Writer"/>
</front><middle><section anchor="a">
  <name>Support</name>
  <t>See <xref target="RFC2246">TLS<!-- c --> 1.0</xref>,
     &own;&nbsp;and <em><bcp14>MUST NOT</bcp14></em>.</t>
  <ul><li>one</li><li>two</li></ul>
  <section><name>Use</name><sourcecode><![CDATA[if (a < b) {
    go();
}]]></sourcecode>
  <table><thead><tr><th>Name</th><th>Floor</th></tr></thead>
  <tbody><tr><td>Kim</td><td>2</td></tr></tbody></table></section>
</section></middle></rfc>
"""


def read(data: bytes | str, filename: str = "a.xml") -> ExtractedText:
    content = data.encode() if isinstance(data, str) else data
    return extract(content, filename, ExtractSettings())


def lines(data: bytes | str) -> list[str]:
    text = read(data)
    assert text.media_type == XML
    return [line for line in text.text.split("\n") if line]


def test_the_text_of_elements_is_read_without_their_tags() -> None:
    source = '<?xml version="1.0"?><policy><rule id="1"><text>It is open.</text></rule>'
    assert lines(f"{source}<rule><text>No dogs.</text></rule></policy>") == [
        "It is open.",
        "No dogs.",
    ]


def test_words_stay_on_their_line_and_titles_code_and_rows_are_known() -> None:
    text = read(RFC)
    assert [line for line in text.text.split("\n") if line] == [
        "Old Versions",
        "Support",
        "See TLS 1.0, our own and MUST NOT.",
        "one",
        "two",
        "Use",
        "if (a < b) {",
        "    go();",
        "}",
        "Name | Floor",
        "Kim | 2",
    ]
    assert text.title == "Old Versions"
    headings = [(h.level, text.text[h.start : h.end]) for h in text.headings]
    assert headings == [(1, "Old Versions"), (2, "Support"), (3, "Use")]
    assert [(b.kind, text.text[b.start : b.header]) for b in text.blocks] == [
        ("code", ""),
        ("table", "Name | Floor\n"),
    ]


def test_runs_of_a_paragraph_are_one_line_and_a_blank_line_parts_text() -> None:
    assert lines("<d><p><r>Hel</r><r>lo</r></p><p><r>two</r></p></d>") == ["Hello", "two"]
    assert lines("<d><b>one\n two</b> <i>three</i>\n \nfour</d>") == ["one two three", "four"]
    assert lines("<d>\n<t>a <list>\n<t>b</t>\n<t>c</t>\n</list></t>\n</d>") == ["a", "b", "c"]


@pytest.mark.parametrize("declared", ["euc-kr", "utf-8", "utf-16", "nothing"])
def test_the_encoding_is_that_of_the_bytes(declared: str) -> None:
    source = f"<?xml version='1.0' encoding='{declared}'?><법><조>출산 휴가는 똠방이다.</조></법>"
    for encoding in ("cp949", "utf-8", "utf-16"):
        assert lines(source.encode(encoding)) == ["출산 휴가는 똠방이다."]


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("<a><b>x</b>", "XML that is not well-formed"),
        ("plain words", "XML that is not well-formed"),
        ("<a>&nbsp;</a>", "XML that is not well-formed"),
        ('<a><b x="1"/></a>', "XML without text in its elements"),
    ],
)
def test_other_xml_is_read_as_it_is_written(source: str, kind: str) -> None:
    text = read(source)
    assert (text.text, text.media_type) == (source, PLAIN)
    assert text.warnings == (f"read as plain text: {kind} (1)",)


def test_other_kinds_of_xml_are_read_as_before() -> None:
    page = '<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><p>x</p></html>'
    assert (read(page).media_type, read(page).warnings) == (HTML, ())
    assert read("<svg><text>x</text></svg>", "a.svg").text == "<svg><text>x</text></svg>"


def test_entities_neither_read_files_nor_expand_without_end() -> None:
    file = '<!DOCTYPE a [<!ENTITY f SYSTEM "file:///etc/passwd">]><a>x &f; y</a>'
    assert lines(file) == ["x &f; y"]
    more = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 12))
    laughs = f'<!DOCTYPE a [<!ENTITY l0 "lol">{more}]><a>&l11;</a>'
    assert read(laughs).text == laughs


@pytest.mark.parametrize(
    "source",
    [
        f"{'<a>' * 100_000}x",
        f"{'<a>' * 250}{'x ' * 200_000}{'</a>' * 250}",
        f"<a>{'<b>x</b> ' * 20_000}</a>",
        f'<!DOCTYPE a SYSTEM "x"><a>{"x&nbsp;" * 20_000}</a>',
        f"<?xml {'encoding ' * 100_000}",
        "<a>" + "\n \t" * 200_000 + "x</a>",
    ],
)
def test_hostile_xml_ends(source: str) -> None:
    assert len(read(source).text) <= len(source)

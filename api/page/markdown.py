"""Passages of Markdown documents as markup: lists, tables, code, emphasis and links.

markdown-it-py writes the markup without raw HTML: a tag in a passage is text. The markup has the
elements of CommonMark and tables only, and no attribute but the target of a link, the first number
of a list, and the names of our own marks. An image is its description.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import PurePath

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict
from markupsafe import Markup, escape

from callslip.api.page.marking import EXCERPT, MOST_HEADINGS, Passage, Span, body, excerpt, find
from callslip.ingestion.extract.sniff import MARKDOWN, TEXT_NAMES

LONGEST = 20_000
"""The maximum number of characters of a passage that is rendered."""

_LINKED = re.compile(r"https?://|mailto:", re.I)
_FENCE = re.compile(r"^[ \t]*(?:```|~~~)", re.M)
_ENTRY_NUMBER = re.compile(r"^[ \t]*\d{1,9}(?=[.)][ \t])", re.M)
"""The number of a list entry, which the reader's browser counts: the markup has it not as text."""


class _Renderer(RendererHTML):
    """Writes texts with the marks of `env`."""

    def text(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        marks: _Marks = env["marks"]
        return marks.markup(tokens[idx])

    def code_inline(
        self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType
    ) -> str:
        return f"<code>{self.text(tokens, idx, options, env)}</code>"

    def fence(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return f"<pre><code>{self.text(tokens, idx, options, env)}</code></pre>\n"

    code_block = fence


_MARKDOWN = MarkdownIt("commonmark", {"html": False}, renderer_cls=_Renderer).enable("table")


@dataclass(frozen=True)
class _Block:
    """A paragraph, list, table, code or heading, and its span in the text that is shown."""

    tokens: Sequence[Token]
    start: int
    end: int


@dataclass
class _Marks:
    """The text that is shown, the query's words in it, and the cited sentence."""

    text: str
    words: Sequence[Span]
    sentence: Span | None
    cited: bool = False

    def markup(self, token: Token) -> str:
        """The text of a token with its marks."""
        start = token.meta["at"]
        end = start + len(token.content)
        first, last = (min(max(at, start), end) for at in self.sentence or (end, end))
        lead, cited, rest = (
            self._marked(*part) for part in ((start, first), (first, last), (last, end))
        )
        if cited:
            name = "" if self.cited else ' id="cited"'  # of the sentence's first part
            cited, self.cited = f'<mark class="sentence"{name}>{cited}</mark>', True
        return lead + cited + rest

    def _marked(self, start: int, end: int) -> str:
        pieces, at = [], start
        number = bisect_right(self.words, start, key=lambda word: word[1])
        while number < len(self.words) and self.words[number][0] < end:
            first, last = max(self.words[number][0], start), min(self.words[number][1], end)
            pieces += [escape(self.text[at:first]), f"<mark>{escape(self.text[first:last])}</mark>"]
            at, number = last, number + 1
        return "".join([*pieces, escape(self.text[at:end])])


def passage_of(
    text: str, heading: str, filename: str, query: str, longest: int = EXCERPT
) -> Passage | Markup:
    """Return a passage for a list of hits: of Markdown as markup, else in pieces."""
    rendered = None
    if is_markdown(filename):
        rendered = markup(text, query, heading=heading, longest=longest)
    return rendered or excerpt(body(text, heading), query, longest)


def inline(text: str) -> Markup:
    """Return a sentence of Markdown as markup: code, emphasis and links, without blocks."""
    if len(text) > LONGEST:
        return escape(text)
    blocks, shown = _blocks(_MARKDOWN.parseInline(text))
    tokens = [token for block in blocks for token in block.tokens]
    marks = {"marks": _Marks(shown, (), None)}
    return Markup(_MARKDOWN.renderer.render(tokens, _MARKDOWN.options, marks))  # noqa: S704  # as in `markup`


def is_markdown(filename: str) -> bool:
    """Whether the name of a document is that of Markdown."""
    return TEXT_NAMES.get(PurePath(filename).suffix.lower()) == MARKDOWN


def markup(
    text: str,
    query: str,
    *,
    heading: str = "",
    longest: int = LONGEST,
    sentence: Span | None = None,
) -> Markup | None:
    """Return a passage as markup, with the query's words and the cited sentence marked.

    Headings up to `heading` are left out, and, where the passage is longer than `longest`
    characters, the blocks around those with the most marks. `sentence` is a span of `text`. None if
    the passage begins or ends within code, is too long, or the sentence cannot be marked exactly.
    """
    if len(text) > LONGEST or len(_FENCE.findall(text)) % 2:
        return None
    blocks, shown = _blocks(_MARKDOWN.parse(text))
    cited = _located(sentence, text, shown) if sentence else None
    marks = _Marks(shown, find(shown, query), cited)
    if sentence and cited is None:
        return None
    below = _below(blocks, heading, shown)
    chosen = _chosen(below, marks.words, longest)
    if not chosen or chosen[-1].end - chosen[0].start > 2 * longest:
        return None
    tokens = [token for block in chosen for token in block.tokens]
    rendered = _MARKDOWN.renderer.render(tokens, _MARKDOWN.options, {"marks": marks})
    safe = Markup(rendered)  # noqa: S704  # texts are escaped, attributes restricted
    left_out = Markup('<p class="around">…</p>\n')
    before = left_out if chosen[0] is not below[0] else Markup("")
    return before + safe + (left_out if chosen[-1] is not below[-1] else Markup(""))


def _blocks(tokens: Sequence[Token]) -> tuple[list[_Block], str]:
    """Return the blocks and the text that is shown; a line end ends each block of text."""
    blocks: list[_Block] = []
    texts: list[str] = []
    at = first = start = depth = 0
    for number, token in enumerate(tokens):
        _restrict(token)
        for leaf in _leaves(token):
            leaf.meta["at"] = at
            texts.append(leaf.content)
            at += len(leaf.content)
        if token.type in ("inline", "fence", "code_block"):
            texts.append("\n")
            at += 1
        depth += token.nesting
        if depth == 0:
            blocks.append(_Block(tokens[first : number + 1], start, at))
            first, start = number + 1, at
    return blocks, "".join(texts)


def _restrict(token: Token) -> None:
    """Leave a token only the attributes that the markup may have; a heading is a line of words."""
    target, number = str(token.attrGet("href") or ""), token.attrGet("start")
    token.attrs = {"start": number} if number is not None else {}
    if _LINKED.match(target):
        token.attrs = {"href": target, "rel": "noopener nofollow"}
    if token.type in ("heading_open", "heading_close"):
        token.tag = "p"
        token.attrs = {"class": "heading"} if token.nesting == 1 else {}
    for child in token.children or ():
        _restrict(child)


def _leaves(token: Token) -> Iterator[Token]:
    """Yield the tokens that have text, with their text."""
    if token.type in ("fence", "code_block", "text", "code_inline"):
        yield token
    elif token.type in ("softbreak", "image"):
        leaves = (leaf for child in token.children or () for leaf in _leaves(child))
        token.content = (
            "\n" if token.type == "softbreak" else "".join(leaf.content for leaf in leaves)
        )
        token.type, token.children = "text", None
        yield token
    for child in token.children or ():
        yield from _leaves(child)


def _located(sentence: Span, text: str, shown: str) -> Span | None:
    """Return the span of a sentence in the text that is shown, by its letters and digits.

    None unless they occur there as often as in the source: then its number among them is known.
    """
    source = _ENTRY_NUMBER.sub(lambda number: " " * len(number[0]), text)
    words = source[slice(*sentence)]
    letters, all_letters = _letters(words), _letters(source)
    positions = [at for at, sign in enumerate(shown) if sign.isalnum()]
    before = len(_letters(source[: sentence[0]]))
    here, there = _occurrences(letters, all_letters), _occurrences(letters, _letters(shown))
    if before not in here or len(here) != len(there):
        return None
    first = there[here.index(before)]
    start, end = positions[first], positions[first + len(letters) - 1] + 1
    spelled = [at for at, sign in enumerate(words) if sign.isalnum()]
    for sign in reversed(words[: spelled[0]]):  # quotation marks, full stops
        start -= shown[max(0, start - 1) : start] == sign
    for sign in words[spelled[-1] + 1 :]:
        end += shown[end : end + 1] == sign
    return start, end


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text))


def _occurrences(letters: str, text: str) -> list[int]:
    return [match.start() for match in re.finditer(re.escape(letters), text)] if letters else []


def _below(blocks: Sequence[_Block], heading: str, shown: str) -> Sequence[_Block]:
    """Return the blocks below the heading, if that is among the first ones."""
    first = [" ".join(shown[b.start : b.end].split()) for b in blocks[:MOST_HEADINGS]]
    after = first.index(heading) + 1 if heading and heading in first else 0
    return blocks[after:] or blocks


def _chosen(blocks: Sequence[_Block], words: Sequence[Span], longest: int) -> Sequence[_Block]:
    """Return the blocks in a row, of at most `longest` characters, that have the most marks."""
    starts, ends = [block.start for block in blocks], [block.end for block in blocks]
    marked = [0, *accumulate(last - first for first, last in words)]
    word_starts = [first for first, _ in words]

    def after(first: int) -> int:
        return max(first + 1, bisect_right(ends, starts[first] + longest))

    def marks(first: int) -> int:
        end = bisect_left(word_starts, ends[after(first) - 1])
        return marked[end] - marked[bisect_left(word_starts, starts[first])]

    if not blocks or ends[-1] - starts[0] <= longest:
        return blocks
    best = max(range(len(blocks)), key=lambda first: (marks(first), -first))
    return blocks[best : after(best)]

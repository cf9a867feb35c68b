"""The navigation of a web page: menus, breadcrumbs and tables of contents, which are no text."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from lxml import etree

_ROLES = {"navigation", "menu", "menubar", "doc-toc"}
_LISTS = {"ul", "ol", "dl", "menu"}
_ZONES = {"header": "header", "banner": "header", "footer": "footer", "contentinfo": "footer"}
"""Elements and roles of the page's top and bottom."""

_TITLES = {"h2", "h3", "h4", "h5", "h6", "summary", "caption", "legend", "button", "label"}
"""Elements that head a list of links, or control it."""

_TITLE_NAMES = {"title", "toctitle", "heading"}
_BREADCRUMB_NAMES = {"breadcrumb", "breadcrumbs"}
_SKIP_NAMES = {"skip", "skipnav", "skipnavi", "skipnavigation", "skiplink", "skiplinks"}
"""Words of classes and ids that name a link to a part of the same page, and a block of them."""

_NAMES = {
    *_BREADCRUMB_NAMES,
    *("toc", "toctree", "contents", "nav", "navbar", "navigation", "menu", "pagination", "pager"),
    *_SKIP_NAMES,
}
"""Words of classes, ids and labels that name navigation; `title` names the heading of a list."""

_PARTS = {
    *("main", "maincontent", "content", "contents", "container", "body", "bodycontent"),
    *("maincontents", "pagecontent", "sitecontent", "startofcontent", "contentarea", "contentwrap"),
    *("mainmenu", "mainnavigation", "gnb", "lnb", "menu", "nav", "navigation", "search", "footer"),
}
"""Anchors, without separators, to which the first links of a page lead."""

_PERMALINKS = {"¶", "#", "§", "🔗"}
"""What the links to a heading or paragraph show, beside it and only under the pointer."""

_NAME = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_UNSEEN = {"title", "script", "style", "template", "noscript"}
_SPECIAL = {"article", *_ZONES, *_TITLES, *_UNSEEN}

MOST_BESIDE = 100
"""The maximum number of letters of a breadcrumb that are not linked: those of the page itself."""

FEWEST_LINKS = 3
"""The minimum number of links of a block that is no list, and of links to parts of the page."""


@dataclass
class _Content:
    """What an element and all within it has: letters of plain words, letters of titles, all signs.

    `links` have words and are outside of titles; `parts` are those to parts of the same page.
    """

    words: int = 0
    titles: int = 0
    signs: int = 0
    links: int = 0
    parts: int = 0

    def read(self, text: str | None, inside: "_Inside") -> None:
        """Count a text."""
        if inside.unseen or not text or text.isspace():
            return
        letters = sum(map(str.isalpha, text))
        self.signs += letters or sum(map(str.isalnum, text))
        if inside.title:
            self.titles += letters
        elif not inside.link:
            self.words += letters

    def add(self, other: "_Content") -> None:
        """Add what a part has."""
        self.words += other.words
        self.titles += other.titles
        self.signs += other.signs
        self.links += other.links
        self.parts += other.parts


@dataclass(frozen=True)
class _Inside:
    """The kinds of elements that contain an element; the element itself counts."""

    link: bool = False
    title: bool = False
    unseen: bool = False
    article: bool = False
    zone: str = ""


def remove_navigation(tree: etree._Element) -> None:
    """Empty the navigation of a page; nothing if the page has no other text.

    Navigation is `<nav>` and its roles; breadcrumbs; and what has only links as words: blocks with
    the name of navigation, lists in the page's header or footer, lists of parts of the page. So are
    links that skip to a part of the page, by their name or as its first words, and the marks that
    link a heading or paragraph to itself (`¶`). Other lists of links are text. The time is linear
    in the page.
    """
    for element in _navigation(tree):
        after = element.tail
        element.clear()
        element.tail = after


def _navigation(tree: etree._Element) -> list[etree._Element]:
    """Return the elements that are navigation.

    They are emptied outside of this function: lxml walks through a removed element once for each
    element within that Python still has.
    """
    elements = [element for element in tree.iter() if isinstance(element.tag, str)]
    inside: dict[etree._Element | None, _Inside] = {None: _Inside()}
    for element in elements:
        inside[element] = _inside(element, inside[element.getparent()])
    contents = _contents(elements, inside)
    removed: dict[etree._Element | None, bool] = {None: False}
    outermost = []
    for element in elements:
        parent = removed[element.getparent()]
        removed[element] = parent or _navigates(element, contents[element], inside[element].zone)
        if removed[element] and not parent:
            outermost.append(element)
    outermost += _first_links(elements[0], contents, removed)
    signs = sum(contents[element].signs for element in outermost)
    return outermost if contents[elements[0]].signs > signs else []


def _first_links(
    tree: etree._Element,
    contents: Mapping[etree._Element | None, _Content],
    removed: Mapping[etree._Element | None, bool],
) -> Iterator[etree._Element]:
    """Yield the links to main parts of the page that stand before all other words."""
    walk = etree.iterwalk(tree, events=("start", "end"))
    for event, element in walk:
        text = element.text if event == "start" else element.tail
        if event == "start" and (removed[element] or element.tag in _UNSEEN):
            walk.skip_subtree()
        elif event == "start" and _leads_to_part(element, contents[element]):
            yield element
            walk.skip_subtree()
        elif element.tag == "h1" or _has_words(text):
            return


def _leads_to_part(element: etree._Element, content: _Content) -> bool:
    """Whether an element is a link to a main part of the page, and no sentence goes on after it."""
    if element.tag != "a" or not content.parts or _has_words(element.tail):
        return False
    return "".join(filter(str.isalnum, element.get("href", ""))).lower() in _PARTS


def _has_words(text: str | None) -> bool:
    return any(map(str.isalnum, text or ""))


def _inside(element: etree._Element, around: _Inside) -> _Inside:
    tag, named = element.tag, bool(element.attrib)
    if not named and tag not in _SPECIAL:
        return around
    article = around.article or tag == "article"
    zone = _ZONES.get(tag) or _ZONES.get(element.get("role", "")) or around.zone
    return _Inside(
        link=around.link or (tag == "a" and "href" in element.attrib),
        title=around.title or tag in _TITLES or (tag != "h1" and _has(element, _TITLE_NAMES)),
        unseen=around.unseen or tag in _UNSEEN,
        article=article,
        zone="" if article else zone,
    )


def _contents(
    elements: Sequence[etree._Element], inside: Mapping[etree._Element | None, _Inside]
) -> dict[etree._Element | None, _Content]:
    """Return what each element and all within it has."""
    contents: dict[etree._Element | None, _Content] = {e: _Content() for e in (None, *elements)}
    for element in reversed(elements):  # what is within an element comes before it
        content, its = contents[element], inside[element]
        content.read(element.text, its)
        for after in element:
            content.read(after.tail, its)
        if element.tag == "a" and content.signs and not its.title:
            content.links += 1
            content.parts += element.get("href", "").startswith("#")
        if content.signs:
            contents[element.getparent()].add(content)
    return contents


def _navigates(element: etree._Element, content: _Content, zone: str) -> bool:
    """Whether an element is navigation."""
    if element.tag == "nav" or element.get("role") in _ROLES:
        return True
    if element.tag == "a" and (element.text or "").strip() in _PERMALINKS:
        return len(element) == 0 and element.get("href", "").startswith("#")
    if element.tag == "a" and content.parts:
        return _has(element, _SKIP_NAMES)
    if element.tag in ("a", *_TITLES) or not content.links:
        return False
    if content.words <= MOST_BESIDE and _has(element, _BREADCRUMB_NAMES):
        return True
    if content.words:
        return False
    if _has(element, _NAMES):
        return True
    many = content.links >= FEWEST_LINKS
    if zone and (many or element.tag in _LISTS):
        return zone == "footer" or not content.titles
    return many and element.tag in _LISTS and content.parts == content.links


def _has(element: etree._Element, names: set[str]) -> bool:
    """Whether a class, id, label or type of an element has one of these words."""
    values = (element.get(name, "") for name in ("class", "id", "aria-label", "itemtype"))
    return any(name.lower() in names for name in _NAME.findall(" ".join(values)))

"""The file server's files and the links to them.

A dialog may contain any link. So a link that looks like one of the file server's is never requested
unchanged: its file is read from the own folder, or requested by its name from the server in the
settings. Any other link is requested only if `annotator.links` is `public`.
"""

from dataclasses import dataclass
from functools import cache
from io import BytesIO
from urllib.parse import SplitResult, parse_qs, quote, urlsplit

from callslip.compat.annotator.fetching import Answer, Http, TimeLimit
from callslip.compat.annotator.folder import Folder
from callslip.config.settings import MEGABYTE, Settings
from callslip.errors import FileTooLarge, SourceDown, SourceError, UnsupportedType
from callslip.http.addresses import Network
from callslip.ingestion.extract.decode import decode, looks_like_text
from callslip.per_process import PerProcess
from callslip.stores.properties.filters import is_unicode

PATH = "/file"

_EVERY = ("0.0.0.0", "::")  # noqa: S104 - compared, not listened on
_OF_THIS_MACHINE = ("127.0.0.1", "localhost", "[::1]", "0.0.0.0")  # noqa: S104
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True)
class Links:
    """The file server, and the other addresses that a dialog may link to.

    `base` is the prefix of the file server's links; `called` is the address that a client called.
    `ours` has the addresses of this service if it stores the files itself, and is empty if another
    server does. `public` is None if links may lead only to the file server.
    """

    base: str
    called: str
    ours: tuple[str, ...]
    folder: Folder
    plain: Http
    public: Http | None
    most_mb: int

    def keep(self, content: bytes, name: str, limit: TimeLimit) -> str:
        """Store a file; return its link. Raises SourceDown if the server returns no link."""
        if self.ours:
            return self.link(self.folder.write(BytesIO(content), name))
        response = self.plain.post_file(f"{self.base}/", name, content, limit)
        try:
            stored_name = _named(response.json()["downloadLink"], None)
        except (ValueError, LookupError, TypeError, RecursionError):
            stored_name = None
        if stored_name is None:
            raise SourceDown("the file server gives no downloadLink for a file")
        return self.link(stored_name)

    def link(self, name: str) -> str:
        """Return the link to the file of this name."""
        return f"{self.base}{PATH}?file={quote(name, safe='')}"

    def here(self, name: str) -> str:
        """Return the link to a file in the own folder, even if the file server is another one."""
        base = self.base if self.ours else self.called
        return f"{base}{PATH}?file={name}"

    def read(self, link: str, limit: TimeLimit) -> Answer:
        """Read the file at a link; raise SourceError if links to other servers are not allowed."""
        name = _named(link, (self.base, *self.ours))
        if name is None:
            if self.public is None:
                raise SourceError(
                    "a link leads elsewhere than to the file server",
                    hint="Upload the file there, or set annotator.links to public.",
                )
            return self.public.get(link, limit, redirects=True)
        if self.ours:
            return Answer(self.folder.read(name), {}, link)
        return self.plain.get(self.link(name), limit, redirects=False)

    def text(self, link: str, limit: TimeLimit) -> str:
        """Read the text at a link.

        Raises UnsupportedType for a web page or a binary file, FileTooLarge for a longer text than
        `most_mb`.
        """
        answer = self.read(link, limit)
        if answer.is_html:
            raise UnsupportedType("a link answers with a page instead of a text")
        if len(answer.content) > self.most_mb * MEGABYTE:
            raise FileTooLarge(f"a text has more than {self.most_mb} MB")
        if not looks_like_text(answer.content):
            raise UnsupportedType("a link answers with what is no text")
        return decode(answer.content).text


def links(settings: Settings, called: str) -> Links:
    """Make `Links` from the settings; `called` is the address that a client called."""
    own, called = settings.annotator, called.rstrip("/")
    here = settings.api_url
    if settings.api.url is None and settings.api.host in _EVERY:
        here = called
    base = (own.file_server_url or here).rstrip("/")
    keeps = own.own_files
    if keeps is None:
        keeps = _address(base) in map(_address, (here, *_names(settings)))
    most = settings.api.max_upload_mb
    return Links(
        base,
        called,
        (base, here, called, *_names(settings)) if keeps else (),
        Folder(settings.annotator_dir, own.keep_days),
        _plain(most).get(),
        _public(most, settings.sources.networks).get() if own.links == "public" else None,
        own.max_text_mb,
    )


def _names(settings: Settings) -> list[str]:
    """Return the configured address of this service, and its addresses on its own machine."""
    port = settings.api.port
    return [settings.api_url, *(f"http://{name}:{port}" for name in _OF_THIS_MACHINE)]


@cache
def _plain(most_mb: int) -> PerProcess[Http]:
    return PerProcess(lambda: Http(most_mb))


@cache
def _public(most_mb: int, networks: tuple[Network, ...]) -> PerProcess[Http]:
    return PerProcess(lambda: Http(most_mb, networks))


def _named(link: object, addresses: tuple[str, ...] | None) -> str | None:
    """Return the file name in a link of the file server, None for any other link.

    Without `addresses`, accept a link of any server.
    """
    if not isinstance(link, str) or not is_unicode(link):
        return None
    try:
        split = urlsplit(link)
        if addresses is not None and _address(_base(split)) not in map(_address, addresses):
            return None
        names = parse_qs(split.query, max_num_fields=10).get("file", [])
    except ValueError:
        return None
    if not split.path.endswith(PATH) or len(names) != 1:
        return None
    return names[0]


def _base(split: SplitResult) -> str:
    return f"{split.scheme}://{split.netloc}{split.path.removesuffix(PATH)}"


def _address(url: str) -> tuple[str, str | None, int | None, str]:
    """Return scheme, host, port and path of a URL, without the user name."""
    try:
        split = urlsplit(url)
        return split.scheme, split.hostname, split.port or _PORTS.get(split.scheme), split.path
    except ValueError:
        return "", None, None, url

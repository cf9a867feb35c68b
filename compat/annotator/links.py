"""Where files are kept, and what the links to them lead to.

A dialog may say any link, so none is asked as it stands: what looks like one of the file server is
read from our folder, or asked of the server that the settings name, by its name alone.
"""

from dataclasses import dataclass
from functools import cache
from io import BytesIO
from urllib.parse import SplitResult, parse_qs, quote, urlsplit

from callslip.addresses import Network
from callslip.errors import FileTooLarge, SourceDown, SourceError, UnsupportedType
from compat.annotator.fetching import Answer, Deadline, Http
from compat.annotator.folder import Folder
from config.settings import MEGABYTE, Settings
from ingestion.extract.decode import decode, looks_like_text
from models.per_process import PerProcess
from stores.filters import is_unicode

PATH = "/file"

_EVERY = ("0.0.0.0", "::")  # noqa: S104 - compared, not listened on
_OF_THIS_MACHINE = ("127.0.0.1", "localhost", "[::1]", "0.0.0.0")  # noqa: S104
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True)
class Links:
    """The file server, and what else may be asked.

    `base` is what its links begin with. `ours` are the addresses of this process, where it keeps
    the files itself; else there are none. `public` is None where links may lead nowhere else.
    """

    base: str
    called: str
    ours: tuple[str, ...]
    folder: Folder
    plain: Http
    public: Http | None
    most_mb: int

    def keep(self, content: bytes, name: str, deadline: Deadline) -> str:
        """Keep a file; the link to it."""
        if self.ours:
            return self.link(self.folder.write(BytesIO(content), name))
        response = self.plain.post_file(f"{self.base}/", name, content, deadline)
        try:
            kept = _named(response.json()["downloadLink"], None)
        except (ValueError, LookupError, TypeError, RecursionError):
            kept = None
        if kept is None:
            raise SourceDown("the file server gives no downloadLink for a file")
        return self.link(kept)

    def link(self, name: str) -> str:
        """The link to the file of a name."""
        return f"{self.base}{PATH}?file={quote(name, safe='')}"

    def here(self, name: str) -> str:
        """The link to a file in our folder, which need not be the file server's."""
        base = self.base if self.ours else self.called
        return f"{base}{PATH}?file={name}"

    def read(self, link: str, deadline: Deadline) -> Answer:
        """What a link leads to."""
        name = _named(link, (self.base, *self.ours))
        if name is None:
            if self.public is None:
                raise SourceError(
                    "a link leads elsewhere than to the file server",
                    hint="Upload the file there, or set annotator.links to public.",
                )
            return self.public.get(link, deadline, redirects=True)
        if self.ours:
            return Answer(self.folder.read(name), {}, link)
        return self.plain.get(self.link(name), deadline, redirects=False)

    def text(self, link: str, deadline: Deadline) -> str:
        """The text that a link leads to; UnsupportedType for a page or a binary file."""
        answer = self.read(link, deadline)
        if answer.is_html:
            raise UnsupportedType("a link answers with a page instead of a text")
        if len(answer.content) > self.most_mb * MEGABYTE:
            raise FileTooLarge(f"a text has more than {self.most_mb} MB")
        if not looks_like_text(answer.content):
            raise UnsupportedType("a link answers with what is no text")
        return decode(answer.content).text


def links(settings: Settings, called: str) -> Links:
    """As the settings say; `called` is the address by which this service was called."""
    own, called = settings.annotator, called.rstrip("/")
    here = settings.api_url
    if settings.api.url is None and settings.api.host in _EVERY:
        here = called
    base = (own.file_server_url or here).rstrip("/")
    keeps = own.own_files
    if keeps is None:
        keeps = _place(base) in map(_place, (here, *_names(settings)))
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
    """Addresses that lead to this service from its own machine, and the one that is configured."""
    port = settings.api.port
    return [settings.api_url, *(f"http://{name}:{port}" for name in _OF_THIS_MACHINE)]


@cache
def _plain(most_mb: int) -> PerProcess[Http]:
    return PerProcess(lambda: Http(most_mb))


@cache
def _public(most_mb: int, networks: tuple[Network, ...]) -> PerProcess[Http]:
    return PerProcess(lambda: Http(most_mb, networks))


def _named(link: object, places: tuple[str, ...] | None) -> str | None:
    """The file that a link of the file server names; None for any other link."""
    if not isinstance(link, str) or not is_unicode(link):
        return None
    try:
        split = urlsplit(link)
        if places is not None and _place(_base(split)) not in map(_place, places):
            return None
        names = parse_qs(split.query, max_num_fields=10).get("file", [])
    except ValueError:
        return None
    if not split.path.endswith(PATH) or len(names) != 1:
        return None
    return names[0]


def _base(split: SplitResult) -> str:
    return f"{split.scheme}://{split.netloc}{split.path.removesuffix(PATH)}"


def _place(url: str) -> tuple[str, str | None, int | None, str]:
    """Scheme, host, port and path: whoever is named before the host does not matter."""
    try:
        split = urlsplit(url)
        return split.scheme, split.hostname, split.port or _PORTS.get(split.scheme), split.path
    except ValueError:
        return "", None, None, url

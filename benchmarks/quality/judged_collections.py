"""The server and the collections of a benchmark of judged sets.

A set goes into a scratch collection, unless `--collection` names an existing one. With `--data
FOLDER` the benchmark starts a server of its own over that folder, whose collections stay: a run
that was interrupted continues, and a later run ingests nothing again.
"""

import argparse
import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

from benchmarks.private_stack import private_stack
from callslip.cli.shared.paths import find_files
from callslip.cli.shared.server import explaining_key, running_url
from callslip.cli.shared.upload import ingest
from callslip.config import load
from callslip.evals import beir, judge
from callslip.evals.client import JsonClient
from callslip.evals.run import show
from callslip.evals.tables import tell
from callslip.evals.variants import forget
from callslip.workers.local_access import local_key


def add_arguments(parser: argparse.ArgumentParser, sets: str) -> None:
    """Add the arguments for sets, server and collections; `sets` is the help of the sets."""
    parser.add_argument("sets", nargs="+", type=Path, metavar="SET", help=sets)
    parser.add_argument("--url", help="where the server runs; default: the one of the settings")
    parser.add_argument(
        "--data",
        type=Path,
        metavar="FOLDER",
        help="start a server over this folder, which keeps collections and vectors, so that a run"
        " that was interrupted continues and the next one ingests nothing again",
    )
    parser.add_argument(
        *("--collection", "-c"),
        action="append",
        metavar="NAME",
        help="where the set was ingested before, once for each set in their order; default: it is"
        " ingested into a scratch collection",
    )
    parser.add_argument("--store", help="of the scratch collection; default: as the server does")
    parser.add_argument("--keep", action="store_true", help="keep the scratch collection")
    parser.add_argument(
        "--queries", type=_count, metavar="N", help="at most so many, spread over the set"
    )


def parse(parser: argparse.ArgumentParser, arguments: Sequence[str] | None) -> argparse.Namespace:
    """Parse the arguments; exit with a message if some do not fit each other."""
    options = parser.parse_args(arguments)
    if options.data is not None and (options.url or options.collection):
        parser.error("--data starts a server of its own: neither --url nor --collection fits")
    if options.collection and len(options.collection) != len(options.sets):
        parser.error(f"{len(options.collection)} times --collection for {len(options.sets)} sets")
    return options


@contextmanager
def server(
    options: argparse.Namespace, environ: Mapping[str, str] | None = None
) -> Iterator[JsonClient]:
    """A client of the server of the options, or of one that is started over the folder `--data`.

    The server that is started gets the variables `environ` in addition.
    """
    if options.data is not None:
        tell(f"starting a server over {options.data}")
        with (
            private_stack(options.data, environ) as stack,
            JsonClient(stack.run.api_url) as client,
        ):
            yield client
        return
    with connected(options.url) as client:
        yield client


@contextmanager
def connected(url: str | None) -> Iterator[JsonClient]:
    """A client of the server at this URL, or of the local one, with the key that commands use."""
    loaded = load()
    at = url or running_url(loaded.settings)
    with (
        explaining_key(loaded, at),
        JsonClient(at, key=local_key(loaded.settings, at)) as client,
    ):
        yield client


def named(options: argparse.Namespace, number: int) -> str | None:
    """Return the existing collection of the set with this number, from 0; None without one."""
    name: str | None = options.collection[number] if options.collection else None
    return name


@contextmanager
def judged_set(
    client: JsonClient,
    judged: beir.JudgedSet,
    options: argparse.Namespace,
    existing: str | None,
    notes: list[str],
) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the collection of a judged set, and the map of the server's document ids to the set's.

    The set is ingested first unless its collection is `existing`. Raises the same errors as
    `judge.evaluate`.
    """
    if existing is not None:
        yield existing, judge.already_there(client, existing, judged)
        return
    if options.data is not None:
        name = _lasting_name(judged.name, [judged.folder / beir.CORPUS], judged.taken_out, options)
        tell(f"{judged.name}: {judged.documents:,} documents, in {name}")
        ids = judge.completed(client, name, judged, options.store, show)
        forget(client, name)  # what a run that was interrupted taught
        yield name, ids
        return
    name = _scratch_name(judged.name, options, notes)
    tell(f"{judged.name}: {judged.documents:,} documents go into {name}")
    with judge.ingested(client, name, judged, notes, options.store, show, keep=options.keep) as ids:
        yield name, ids


@contextmanager
def files(
    client: JsonClient,
    folders: Sequence[Path],
    options: argparse.Namespace,
    existing: str | None,
    notes: list[str],
) -> Iterator[str]:
    """Yield the collection of the files of folders; their names are the paths below the folders.

    The files are ingested first unless their collection is `existing`. A file that fails becomes a
    note. Raises PermanentError if two files have one name, and the errors of the server.
    """
    if existing is not None:
        yield existing
        return
    name = folders[0].resolve().parent.name
    sources = find_files(map(str, folders))
    scratch: AbstractContextManager[None] = nullcontext()
    if options.data is not None:
        paths, names = (s.path for s in sources), (s.name for s in sources)
        collection = _lasting_name(name, paths, names, options)
    else:
        collection = _scratch_name(name, options, notes)
        scratch = judge.scratch(client, collection, notes, options.store, keep=options.keep)
    tell(f"{name}: {len(sources):,} files go into {collection}")
    with scratch:
        report = ingest(client.client, collection, sources, store=options.store, show_bar=False)
        if report.failed:
            first = report.failed[0]
            notes.append(
                f"{len(report.failed)} files are not ingested, such as {first['name']!r}"
                f" ({first['detail']})"
            )
        if options.data is not None:
            forget(client, collection)
        yield collection


def _scratch_name(name: str, options: argparse.Namespace, notes: list[str]) -> str:
    collection = judge.scratch_name(name)
    if options.keep:
        notes.append(f"kept as collection {collection}")
    return collection


def _lasting_name(
    name: str, contents: Iterable[Path], names: Iterable[str], options: argparse.Namespace
) -> str:
    """The collection of a set in `--data`: another one if documents or the store change."""
    digest = hashlib.blake2b()
    for path in contents:
        with path.open("rb") as file:
            hashlib.file_digest(file, lambda: digest)
    digest.update(f"{options.store}".encode())
    for each in sorted(names):
        digest.update(f"\n{each}".encode())
    return f"{judge.plain_name(name)}-{digest.hexdigest()[:8]}"


def _count(text: str) -> int:
    if (count := int(text)) < 1:
        raise argparse.ArgumentTypeError("at least 1 is needed")
    return count

"""`callslip eval`: measures retrieval on a judged set."""

from pathlib import Path

import click

from callslip.cli.shared.options import store_option
from callslip.cli.shared.output import as_json, reporting
from callslip.cli.shared.server import explaining_key, running_url, url_option
from callslip.config import load
from callslip.workers.local_access import local_key


@click.command(name="eval")
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@store_option
@click.option(
    "--queries",
    type=click.IntRange(min=1),
    help="Ask at most this many, spread over the set.  [default: all]",
)
@click.option("--keep", is_flag=True, help="Keep the scratch collection.")
@click.option(
    "--gate", is_flag=True, help="Fail if hybrid is more than .005 nDCG@10 below its better half."
)
@url_option
@as_json
@reporting
def eval_command(
    folder: Path,
    store: str | None,
    queries: int | None,
    keep: bool,
    gate: bool,
    url: str | None,
    json_out: bool,
) -> None:
    """Measure retrieval on a judged set in BEIR form.

    FOLDER holds corpus.jsonl, queries.jsonl and qrels.tsv. The command ingests it into a
    scratch collection and prints nDCG@10, Recall@10, Recall@100 and MRR@10 of each retriever, and
    what hybrid search gains over the better one of its halves.

    \b
    Example:  callslip eval sets/en_scifact
              callslip eval sets/en_scifact --gate --json
    """
    from callslip.evals.run import run

    loaded = load()
    server = url or running_url(loaded.settings)
    with explaining_key(loaded, server):
        run(
            folder,
            server,
            key=local_key(loaded.settings, server),
            store=store,
            most_queries=queries,
            keep=keep,
            gate=gate,
            json_out=json_out,
        )

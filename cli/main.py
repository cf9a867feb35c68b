"""The `callslip` command: its groups and commands by name, each imported at its first use."""

import click

from callslip.cli.shared.lazy import LazyCommand, LazyGroup

COMMANDS = {
    "ask": LazyCommand(
        "callslip.cli.commands.search.ask:ask_command",
        "Answer a question from the documents, with citations, or say that they do not.",
    ),
    "attach": LazyCommand(
        "callslip.cli.commands.collections.attach:attach_group",
        "Search existing tables and Chroma collections of other programs without copying them.",
    ),
    "audit": LazyCommand(
        "callslip.cli.commands.installation.audit:audit",
        "Compare every store with the ledger: report unknown and missing data.",
    ),
    "backup": LazyCommand(
        "callslip.cli.commands.installation.backup:backup_command",
        "Copy everything that must last to DESTINATION, a folder or a URL such as"
        " s3://bucket/prefix.",
    ),
    "chunks": LazyCommand(
        "callslip.cli.commands.documents.chunks:chunks_group",
        "The chunks of documents: list them, correct their text, preview how a file is cut.",
    ),
    "compare": LazyCommand(
        "callslip.cli.commands.search.compare:compare_command",
        "Ask several collections the same question, by similarity of meaning alone.",
    ),
    "config": LazyCommand(
        "callslip.cli.commands.installation.config:config_command",
        "Print every setting in force, secrets masked, and where each value came from.",
    ),
    "conversation": LazyCommand(
        "callslip.cli.commands.search.ask:conversation_command",
        "Show the questions and answers of a `--thread`, or delete them.",
    ),
    "delete": LazyCommand(
        "callslip.cli.commands.documents.delete:delete_command",
        "Delete documents, or a collection with all its documents.",
    ),
    "detach": LazyCommand(
        "callslip.cli.commands.collections.attach:detach_command",
        "Detach the table or Chroma collection of a collection, which itself stays as it is.",
    ),
    "doctor": LazyCommand(
        "callslip.cli.commands.installation.doctor:doctor_command",
        "Check every part of the installation and advise what to do. Exit code 1 on an error.",
    ),
    "edit": LazyCommand(
        "callslip.cli.commands.documents.edit:edit_command",
        "Change a document's title, source's address, language, validity, properties or readers.",
    ),
    "eval": LazyCommand(
        "callslip.cli.commands.search.evaluate:eval_command",
        "Measure retrieval on a judged set in BEIR form.",
    ),
    "export": LazyCommand(
        "callslip.cli.commands.collections.transfer:export_command",
        "Write COLLECTION with all its documents into FILE, an archive for `callslip import`.",
    ),
    "facets": LazyCommand(
        "callslip.cli.commands.collections.facets:facets_group",
        "Facets of a collection, and the vectors of their values.",
    ),
    "import": LazyCommand(
        "callslip.cli.commands.collections.transfer:import_command",
        "Make the collection that `callslip export` wrote into FILE, and compare it with the"
        " archive.",
    ),
    "ingest": LazyCommand(
        "callslip.cli.commands.documents.steps:ingest_group",
        "Send files, folders or globs and wait until they can be found.",
    ),
    "ingest-faq": LazyCommand(
        "callslip.cli.commands.documents.faq:ingest_faq_command",
        "Send the rows of FILE, JSON, JSONL or CSV with `question`, `answer` and `id`.",
    ),
    "jobs": LazyCommand(
        "callslip.cli.commands.documents.jobs:jobs_group",
        "Ingest thousands of files that a manifest names.",
    ),
    "keys": LazyCommand(
        "callslip.cli.commands.installation.keys:keys_group",
        "API keys: make, list, rotate and revoke them, and read the log of their use.",
    ),
    "mcp": LazyCommand(
        "callslip.cli.mcp.command:mcp_command",
        "Serve the API to language models over MCP: search, answer, get_document, ingest,"
        " feedback.",
    ),
    "memory": LazyCommand(
        "callslip.cli.commands.collections.memory:memory_group",
        "Show, move or delete the memory of the chunks that helped with earlier questions.",
    ),
    "migrate": LazyCommand(
        "callslip.cli.commands.collections.transfer:migrate_command",
        "Move COLLECTION to another store, compare both sides, and switch.",
    ),
    "options": LazyCommand(
        "callslip.cli.commands.collections.options:options_command",
        "Show the enrichment options of COLLECTION, or set them from FILE (YAML or JSON).",
    ),
    "proposals": LazyCommand(
        "callslip.cli.commands.collections.proposals:proposals_group",
        "Better ranking weights and further facets that the scheduler proposes; you decide.",
    ),
    "purge": LazyCommand(
        "callslip.cli.commands.documents.purge:purge_command",
        "Remove every trace of a document, a tenant or a user, and print the receipt.",
    ),
    "reindex": LazyCommand(
        "callslip.cli.commands.collections.transfer:reindex_command",
        "Make the terms and vectors of COLLECTION anew, compare both forms, and switch.",
    ),
    "restore": LazyCommand(
        "callslip.cli.commands.installation.backup:restore_command",
        "Restore a backup from DESTINATION into an empty installation, which is stopped.",
    ),
    "retry": LazyCommand(
        "callslip.cli.commands.documents.versions:retry_command",
        "Try failed documents again, each from the step that failed.",
    ),
    "rollback": LazyCommand(
        "callslip.cli.commands.documents.versions:rollback_command",
        "Restore an older version of a document as its newest one, without a new embedding.",
    ),
    "run": LazyCommand(
        "callslip.cli.commands.installation.run:run_command",
        "Run one process of Callslip in the foreground, for containers and service managers.",
    ),
    "search": LazyCommand(
        "callslip.cli.commands.search.search:search_command",
        "Search a collection by meaning and by words, in English or Korean.",
    ),
    "serve-annotator": LazyCommand(
        "callslip.cli.commands.installation.annotator:serve_annotator_command",
        "Serve the Document Retriever: vectorize_documents, return_candidates, its file server.",
    ),
    "source": LazyCommand(
        "callslip.cli.commands.documents.sources:source_group",
        "Fetch documents from a page, a folder or a bucket, at intervals.",
    ),
    "status": LazyCommand(
        "callslip.cli.commands.documents.status:status_command",
        "Show a collection's documents, every step of one, what failed, or how far a batch is.",
    ),
    "tune": LazyCommand(
        "callslip.cli.commands.collections.tune:tune_command",
        "Fit the ranking weights of COLLECTION and measure them on held-out questions.",
    ),
    "up": LazyCommand(
        "callslip.cli.commands.installation.up:up_command",
        "Start everything on this machine and keep it running until Ctrl-C.",
    ),
    "usage": LazyCommand(
        "callslip.cli.commands.installation.usage:usage_command",
        "Show what language models have used for answers, by day, and what it cost.",
    ),
    "verify": LazyCommand(
        "callslip.cli.commands.documents.sanity:verify_group",
        "Check that ingested documents can be found.",
    ),
    "versions": LazyCommand(
        "callslip.cli.commands.documents.versions:versions_command",
        "Show the history of a document, newest version first.",
    ),
}
"""A test compares each summary with the help of its command."""


@click.group(
    cls=LazyGroup, table=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(package_name="callslip", prog_name="callslip")
def main() -> None:
    """Callslip takes documents in and answers questions from them.

    \b
    Start:   callslip up
    Add:     callslip ingest handbook.pdf policies/
    Search:  callslip search "how long is parental leave?"
    Ask:     callslip ask "how long is parental leave?"
    """

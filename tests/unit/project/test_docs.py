"""Pages of documentation say what the code says."""

import re
from dataclasses import fields
from inspect import signature
from pathlib import Path
from types import SimpleNamespace
from typing import get_args

import anyio
from client_parts import FOUND
from context_parts import LoneBroker, app_over

from callslip.agent.budget import Outcome
from callslip.api import annotator_wsgi
from callslip.api.adapters import faq
from callslip.api.v1 import events as streams
from callslip.api.v1 import metrics
from callslip.cli.commands.documents.faq import PATIENCE_SECONDS
from callslip.cli.commands.installation import annotator
from callslip.cli.mcp import http
from callslip.cli.mcp import tools as mcp_tools
from callslip.cli.mcp.command import PORT, mcp_command
from callslip.cli.mcp.scope import Scope
from callslip.cli.mcp.server import make_server
from callslip.client import Client, Retries, models
from callslip.client import Client as OverHttp
from callslip.client.requests import URL
from callslip.compat.annotator.chunks import MOST_WORDS
from callslip.compat.faq.collections import MOST_COLLECTIONS
from callslip.config.sections.annotator import VARIABLES, AnnotatorSettings
from callslip.config.sections.faq import STRATEGIES, FaqSettings
from callslip.config.sections.ranking import SearchSettings
from callslip.ingestion.provided_chunks import LEASE_SECONDS
from callslip.models.language_models.client import MOST_BYTES
from callslip.plugins.requests import SearchOptions, metadata_of
from callslip.retrieval.candidates import hotset
from callslip.retrieval.messages import SearchRequest
from callslip.retrieval.ranking import memory
from callslip.stores.contract import EXACT_LIMIT
from callslip.stores.ledger.documents import batches
from callslip.stores.ledger.learning.memory import CENTRE_OF
from callslip.stores.ledger.outbox import events
from callslip.stores.metrics import METRICS
from callslip.stores.properties.checks import MAX_TEXT_BYTES
from callslip.stores.properties.filters import MAX_VALUES, OPERATORS
from callslip.stores.records import FILTERABLE
from callslip.tasks import webhooks
from callslip.tasks.maintenance import COSTS_DAYS
from callslip.tasks.shared import recording

DOCS = Path(__file__).parents[3] / "docs"


def test_the_page_of_filters_defines_every_parameter_operator_method_and_field() -> None:
    page = (DOCS / "filters.md").read_text(encoding="utf-8")
    names = (*SearchRequest.model_fields, *OPERATORS, *METRICS, *FILTERABLE)
    assert [name for name in names if f"`{name}`" not in page] == []
    assert f"{MAX_VALUES} values" in page
    assert f"{EXACT_LIMIT:,}" in page


def test_the_page_of_the_api_names_every_event_and_the_times_it_speaks_of() -> None:
    page = (DOCS / "api.md").read_text(encoding="utf-8")
    assert [kind for kind in events.KINDS if f"`{kind}`" not in page] == []
    assert f"every {streams.HEARTBEAT_SECONDS:.0f} s" in page
    assert streams.LONGEST_SECONDS == 600
    assert f"after {webhooks.FIRST_WAIT:.0f} s" in page
    assert webhooks.LONGEST_WAIT == 6 * 3600
    assert (batches.WINDOW_SECONDS, batches.ENOUGH_SECONDS) == (300, 10)
    assert batches.ENOUGH_DOCUMENTS == 5


def test_the_page_of_memory_names_the_thresholds_that_it_explains() -> None:
    page = (DOCS / "memory.md").read_text(encoding="utf-8")
    for low, high in (memory.CENTRED, memory.RAW):
        assert f"0 up to {low:.2f}".replace("0.", ".") in page
        assert f"1 from {high:.2f}".replace("0.", ".") in page
    assert f"at most {memory.UP_TO:g} of the way".replace("0.", ".") in page
    assert f"Until {memory.FEWEST_QUESTIONS} different questions" in page
    assert f"the newest {CENTRE_OF} questions" in page
    assert f"up to {recording.WAITING:,} wait" in page
    assert memory.REACH == 4
    assert f"A passage is hot from {hotset.LEAST_WINS:g} " in page
    assert f"at most {hotset.MOST}, often one" in page
    assert (
        f"`search.hotset_similarity` ({SearchSettings().hotset_similarity:g})".replace("0.", ".")
        in page
    )


def test_the_page_of_mcp_names_every_tool_argument_option_and_bound() -> None:
    page = (DOCS / "mcp.md").read_text(encoding="utf-8")
    server = make_server(Client("http://127.0.0.1:9"), Scope(files=Path()))
    tools = anyio.run(server.list_tools)
    names = {name for tool in tools for name in (tool.name, *tool.input_schema["properties"])}
    assert [name for name in sorted(names) if f"`{name}`" not in page] == []
    assert [o for o in mcp_command.params if o.name != "port" and o.opts[-1] not in page] == []
    assert f"{mcp_tools.TEXT_CHARACTERS:,} characters" in page
    assert f"at most {mcp_tools.LONGEST_WAIT:.0f}" in page
    assert f"127.0.0.1:{PORT}{http.PATH}" in page
    assert http.LARGEST_BODY == 16 << 20


def test_the_page_of_the_annotator_names_every_variable_and_operation() -> None:
    page = (DOCS / "compat-annotator.md").read_text(encoding="utf-8")
    for name, key in VARIABLES.items():
        assert f"| `{name}` | `{key}` |" in page
    settings = AnnotatorSettings()
    assert f"candidates that are returned; {settings.paragraphs_num} |" in page
    assert f"for keeping its files; {settings.file_server_timeout:g} |" in page
    assert f"alone; {annotator.PORT} |" in page
    operations = [key for key in annotator_wsgi.create_app().api_doc["paths"] if key != "/healthz"]
    assert [
        path for path in operations if f" {path}`" not in page and f" {path}?" not in page
    ] == []
    assert f"more than {MOST_WORDS} words" in page


def test_the_page_of_the_client_has_the_numbers_that_it_goes_by() -> None:
    page = (DOCS / "client.md").read_text(encoding="utf-8")
    retries = Retries()
    assert (retries.most, retries.within, retries.first_wait) == (4, 60, 0.5)
    assert "up to 0.5, 1, 2, 4 s, and after a response longer by its `Retry-After`" in page
    assert f"`timeout=` ({signature(OverHttp).parameters['timeout'].default:.0f} s)" in page
    assert URL in page
    for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        compile(block, "client.md", "exec")


def test_the_page_of_retrievers_names_every_option_and_what_a_passage_carries() -> None:
    page = (DOCS / "plugins.md").read_text(encoding="utf-8")
    options = [field.name for field in fields(SearchOptions) if field.name != "top"]
    found = models.SearchResponse.model_validate(FOUND)
    carried = metadata_of(found.hits[0], found)
    assert [name for name in (*options, *carried) if f"`{name}`" not in page] == []


def test_the_page_of_operations_names_every_metric() -> None:
    page = (DOCS / "operations.md").read_text(encoding="utf-8")
    ledger = SimpleNamespace(
        documents=SimpleNamespace(states=dict),
        fair_queue=SimpleNamespace(oldest=lambda: None),
        webhooks=SimpleNamespace(states=dict),
    )
    with app_over(ledger=ledger, broker=LoneBroker()).app_context():
        names = {f"`{family.name}" for family in metrics.Numbers().collect()}
    assert len(names) == 34
    assert [name for name in names if name not in page] == []
    assert [name for name in get_args(Outcome) if f"`{name}`" not in page] == []
    assert f"for {COSTS_DAYS} days" in page
    assert f"no more than {MOST_BYTES // 10**6} MB" in page


def test_the_page_of_faq_names_its_collections_and_bounds() -> None:
    page = (DOCS / "compat-faq.md").read_text(encoding="utf-8")
    assert [s for s in STRATEGIES if f"`NAME__{s}`" not in page] == []
    assert f"At most {MOST_COLLECTIONS} collections are asked, {faq.MOST_ROWS} rows" in page
    assert f"{faq.MOST_IDS:,} ids" in page
    assert f"more than {MAX_TEXT_BYTES:,} bytes" in page
    assert f"up to {PATIENCE_SECONDS:.0f} s" in page
    assert f"a lease of {LEASE_SECONDS:.0f} s" in page
    usual = FaqSettings()
    assert f"`faq.top_k` ({usual.top_k}) and\n`faq.threshold` ({usual.threshold:g})" in page

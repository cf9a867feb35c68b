"""Pages of documentation say what the code says."""

from pathlib import Path

from retrieval.messages import SearchRequest
from stores.contract import EXACT_LIMIT
from stores.filters import MAX_VALUES, OPERATORS
from stores.metrics import METRICS
from stores.records import FILTERABLE

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_of_filters_defines_every_parameter_operator_method_and_field() -> None:
    page = (DOCS / "filters.md").read_text(encoding="utf-8")
    names = (*SearchRequest.model_fields, *OPERATORS, *METRICS, *FILTERABLE)
    assert [name for name in names if f"`{name}`" not in page] == []
    assert f"{MAX_VALUES} values" in page
    assert f"{EXACT_LIMIT:,}" in page

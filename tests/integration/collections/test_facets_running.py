"""Facets on a running stack: rebuilt by the command while searches run, listed, proposed."""

import json
import threading
from typing import Any

import pytest
from api_calls import Api, assert_problem
from click.testing import CliRunner
from stack import Stack

from callslip.cli.main import main

NOTES = {
    "leave": "Parents may take parental leave of twelve weeks. The office confirms each leave.",
    "fire": "Fire doors stay closed at all times. A drill shows the way out of the building.",
    "pay": "Salaries are paid on the last working day. A bonus is paid with the June salary.",
}


@pytest.fixture
def api(stack: Stack) -> Any:
    with Api(stack) as made:
        yield made


def run(api: Api, *arguments: str) -> Any:
    given = ["facets", *arguments, "-c", api.collection, "--json"]
    shown = CliRunner().invoke(main, [*given, "--url", str(api.http.base_url)])
    assert shown.exit_code == 0, shown.output
    return json.loads(shown.output)


@pytest.mark.long
def test_a_rebuild_while_searching_is_seen_and_harms_no_search(api: Api) -> None:
    api.all_live(
        {"text": f"{text} Notice {n}.", "name": f"{kind} {n}", "properties": {"doc_type": kind}}
        for kind, text in NOTES.items()
        for n in range(3)
    )
    stop, statuses = threading.Event(), []

    def ask() -> None:
        while not stop.is_set():
            statuses.append(api.search("when is the salary paid?").status_code)

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        found = run(api, "rebuild-vectors", "--facet", "all")
    finally:
        stop.set()
        asking.join()
    assert set(statuses) == {200}
    counts = {facet["name"]: facet["counts"] for facet in found["facets"]}
    assert counts["doc_type"] == {"made": 3, "unchanged": 0, "gone": 0, "left_out": 0, "values": 3}
    assert counts["lang"]["made"] == 1
    again = run(api, "rebuild-vectors", "--facet", "doc_type")
    assert [facet["counts"]["unchanged"] for facet in again["facets"]] == [3]
    listed = {facet["name"]: facet for facet in run(api, "list")["facets"]}
    assert {v["value"]: v["chunks"] for v in listed["doc_type"]["values"]} == dict.fromkeys(
        NOTES, 3
    )
    assert listed["doc_type"]["calibration"] is not None
    assert listed["lang"]["calibration"] is None
    assert run(api, "discover")["clusters"] == []
    assert_problem(
        api.http.post(f"/v1/collections/{api.collection}/facets/rebuild", json={"facet": "colour"}),
        400,
        "invalid-request",
    )
    assert_problem(api.http.get("/v1/collections/nowhere/facets"), 404, "collection-not-found")

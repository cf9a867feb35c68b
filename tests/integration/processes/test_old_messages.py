"""Messages of another version in the queues are dropped with a reason; their documents go on."""

from api_calls import Api
from celery import Celery
from processes import waits_until
from stack import Stack

from callslip.tasks.queues import INGEST, MAINTENANCE, SEARCH


def test_messages_of_another_version_are_dropped_with_a_reason(lexical_stack: Stack) -> None:
    app = Celery("older", broker=lexical_stack.broker_url)
    for queue, task, arguments in (
        (INGEST, "ingest.of_another_version", ("a-document", 1)),
        (INGEST, "ingest.extract", ("a-document",)),
        (INGEST, "ingest.extract", ("a-document", 1, "of another version")),
        (MAINTENANCE, "maintenance.of_another_version", ()),
        (SEARCH, "search.of_another_version", ({"query": "x"},)),
    ):
        app.send_task(task, arguments, queue=queue)
    app.close()
    logs = lexical_stack.data_dir / "logs"

    def reasons(role: str) -> str:
        return (logs / f"{role}.log").read_text(encoding="utf-8")

    with Api(lexical_stack) as api:
        api.live(text="The number of the house is zebra.", name="house")
        assert api.search("zebra", alpha=0).json()["hits"]
    for role, wanted in (
        ("ingest", "ingest.of_another_version"),
        ("ingest", "TypeError"),
        ("maintenance", "maintenance.of_another_version"),
        ("search", "search.of_another_version"),
    ):
        assert waits_until(lambda role=role, wanted=wanted: wanted in reasons(role)), (role, wanted)

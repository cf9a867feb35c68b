"""Webhooks: signed, tried again, given up; over a real ledger to a real HTTP server."""

import base64
import hashlib
import hmac
import json
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace

import pytest
from context_parts import LoneBroker, context_of, working
from ledger_moves import publish, submission, submit
from receiver import Receiver, drip, hang, status
from standardwebhooks import Webhook as SignedWebhook

from callslip.config.settings import Settings, WebhookSettings
from callslip.errors import DeliveryNotFound, InvalidRequest, WebhookNotFound
from callslip.stores.ledger import Delivery, Ledger, Webhook
from callslip.stores.records import CollectionSchema, VectorSpec
from callslip.tasks import webhooks
from callslip.tasks.shared.receivers import Receivers, key_of, new_secret, sign

pytest_plugins = ["ledger_fixtures"]

LOOPBACK = "127.0.0.0/8"
SECRET = new_secret()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with closing(Receiver()) as made:
        yield made


@pytest.fixture(autouse=True)
def context(ledger: Ledger) -> Iterator[None]:
    """The task over this ledger, alone, with loopback allowed and little patience."""
    settings = Settings(webhooks=WebhookSettings(allow_networks=LOOPBACK, timeout_seconds=1.0))
    with closing(Receivers(settings.webhooks)) as receivers:
        parts = {"ledger": ledger, "receivers": receivers, "broker": LoneBroker()}
        with working(context_of(settings, **parts)):
            yield


def subscribe(ledger: Ledger, receiver: Receiver, collection: str | None = None) -> Webhook:
    kinds = ("document.live", "document.failed", "document.deleted")
    return ledger.webhooks.create(receiver.url, SECRET, kinds, collection)


def log_of(ledger: Ledger, hook: Webhook) -> list[Delivery]:
    return ledger.webhooks.deliveries(hook.webhook_id)


def test_an_event_is_sent_once_signed_and_with_the_name_of_its_document(
    ledger: Ledger, receiver: Receiver
) -> None:
    publish(ledger, "before", ["c0"])
    hook = subscribe(ledger, receiver)
    item = publish(ledger, "one", ["c1"])
    webhooks.send()
    webhooks.send()
    ((headers, body),) = receiver.got
    output = json.loads(body)
    assert output["type"] == "document.live"
    assert output["timestamp"].endswith("Z")
    assert output["data"]["document_id"] == item.document_id
    assert (output["data"]["name"], output["data"]["collection"]) == ("a.txt", "papers")
    assert output["data"]["data"] == {"chunks": 1}
    (delivery,) = log_of(ledger, hook)
    assert headers["webhook-id"] == delivery.delivery_id
    assert abs(int(headers["webhook-timestamp"]) - time.time()) < 60
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    key = base64.b64decode(SECRET.removeprefix("whsec_"))
    digest = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    assert headers["webhook-signature"] == f"v1,{digest}"
    assert (delivery.state, delivery.status, delivery.attempts) == ("delivered", 204, 1)


def test_the_signature_is_that_of_the_specification() -> None:
    secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    body = b'{"test": 2432232314}'
    signature = sign(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, body)
    assert signature == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


@pytest.mark.parametrize(
    "secret", ["", "x", "whsec_", "whsec_AAAA", "whsec_?", f"whsec_{'A' * 100}"]
)
def test_a_secret_that_is_none_is_refused(secret: str) -> None:
    with pytest.raises(InvalidRequest):
        key_of(secret)


def test_only_what_is_asked_for_of_the_collection_that_is_asked_for_is_sent(
    ledger: Ledger, receiver: Receiver
) -> None:
    ledger.collections.create(
        CollectionSchema("other", VectorSpec(4)), store="memory", embedder="tiny", analyzer="1"
    )
    hook = subscribe(ledger, receiver, collection="other")
    everything = ledger.webhooks.create(receiver.url, SECRET, ("document.queued",))
    publish(ledger, "one", ["c1"])
    gone = ledger.documents.submit("other", submission("two"), "f" * 32)
    ledger.documents.delete(gone.document_id)
    ledger.webhooks.fan_out()
    assert [d.body["type"] for d in log_of(ledger, hook)] == ["document.deleted"]
    assert [d.body["type"] for d in log_of(ledger, everything)] == ["document.queued"] * 2


def test_a_receiver_that_fails_and_comes_back_gets_everything(
    ledger: Ledger, receiver: Receiver
) -> None:
    hook = subscribe(ledger, receiver)
    receiver.answer = status(500)
    publish(ledger, "one", ["c1"])
    publish(ledger, "two", ["c2"])
    webhooks.send()
    assert len(receiver.got) == 1, "the first failure ends the turn"
    failed = log_of(ledger, hook)[-1]
    assert (failed.state, failed.attempts, failed.status) == ("waiting", 1, 500)
    assert failed.error == "the answer was 500"
    assert failed.next_at is not None
    assert 3 < failed.next_at - time.time() < 7
    receiver.answer = status(200)
    webhooks.send()
    assert len(receiver.got) == 2, "the first is not due yet"
    ledger.webhooks.resend(hook.webhook_id, failed.delivery_id)
    webhooks.send()
    ids = [headers["webhook-id"] for headers, _ in receiver.got]
    assert ids[0] == ids[2] != ids[1], "the same id at every try"
    assert {d.state for d in log_of(ledger, hook)} == {"delivered"}


def test_a_receiver_that_hangs_holds_up_no_other_and_is_tried_again(
    ledger: Ledger, receiver: Receiver
) -> None:
    receiver.answer = hang
    hook = subscribe(ledger, receiver)
    with closing(Receiver()) as other:
        subscribe(ledger, other)
        publish(ledger, "one", ["c1"])
        publish(ledger, "two", ["c2"])
        started = time.monotonic()
        webhooks.send()
        assert time.monotonic() - started < 5
        assert len(other.got) == 2
    assert log_of(ledger, hook)[-1].error == "no answer within 1 s"
    assert log_of(ledger, hook)[0].attempts == 0


def test_a_receiver_that_drips_is_cut(ledger: Ledger, receiver: Receiver) -> None:
    receiver.answer = drip
    hook = subscribe(ledger, receiver)
    publish(ledger, "one", ["c1"])
    webhooks.send()
    assert receiver.was_cut
    assert log_of(ledger, hook)[0].error in ("RemoteProtocolError", "ReadError")


def test_a_receiver_that_is_down_or_redirects_has_nothing(
    ledger: Ledger, receiver: Receiver
) -> None:
    receiver.answer = status(302)
    hook = subscribe(ledger, receiver)
    down = ledger.webhooks.create("http://127.0.0.1:9/", SECRET, ("document.live",))
    publish(ledger, "one", ["c1"])
    webhooks.send()
    assert log_of(ledger, hook)[0].error == "the answer was 302"
    assert log_of(ledger, down)[0].error == "ConnectError"


def test_an_address_inside_the_network_is_not_called(ledger: Ledger, receiver: Receiver) -> None:
    with closing(Receivers(WebhookSettings(timeout_seconds=0.3))) as guarded:
        parts = {"ledger": ledger, "receivers": guarded, "broker": LoneBroker()}
        hook = subscribe(ledger, receiver)
        publish(ledger, "one", ["c1"])
        with working(context_of(**parts)):
            webhooks.send()
    assert receiver.got == []
    assert "is not public" in (log_of(ledger, hook)[0].error or "")


def test_a_delivery_that_never_arrives_is_given_up_and_can_be_sent_again(
    ledger: Ledger, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook = subscribe(ledger, receiver)
    receiver.answer = status(500)
    publish(ledger, "one", ["c1"])
    monkeypatch.setattr(webhooks, "wait_seconds", lambda attempts: 4 * webhooks.DAY)
    webhooks.send()
    (delivery,) = log_of(ledger, hook)
    assert (delivery.state, delivery.next_at) == ("given-up", None)
    receiver.answer = status(200)
    webhooks.send()
    assert len(receiver.got) == 1
    ledger.webhooks.resend(hook.webhook_id, delivery.delivery_id)
    webhooks.send()
    assert log_of(ledger, hook)[0].state == "delivered"
    with pytest.raises(DeliveryNotFound):
        ledger.webhooks.resend(hook.webhook_id, "msg_0")


def test_waits_double_up_to_hours_with_jitter() -> None:
    for attempts, wait in ((1, 5), (2, 10), (5, 80), (13, 20_480), (14, 21_600), (2000, 21_600)):
        assert 0.75 * wait <= webhooks.wait_seconds(attempts) <= 1.25 * wait
    assert webhooks.wait_seconds(3) != webhooks.wait_seconds(3)


def test_a_receiver_that_is_gone_for_good_is_left_alone(ledger: Ledger, receiver: Receiver) -> None:
    hook = subscribe(ledger, receiver)
    receiver.answer = status(410)
    publish(ledger, "one", ["c1"])
    webhooks.send()
    publish(ledger, "two", ["c2"])
    webhooks.send()
    assert len(receiver.got) == 1
    assert ledger.webhooks.get(hook.webhook_id).stopped_at is not None
    assert [d.state for d in log_of(ledger, hook)] == ["given-up"]


def test_what_was_sent_but_not_recorded_is_sent_again_under_the_same_id(
    ledger: Ledger, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    subscribe(ledger, receiver)
    publish(ledger, "one", ["c1"])

    class Killed(BaseException):
        pass

    def die(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(ledger.webhooks, "delivered", die)
        with pytest.raises(Killed):
            webhooks.send()
    webhooks.send()
    first, second = (headers["webhook-id"] for headers, _ in receiver.got)
    assert first == second


def test_more_events_than_one_transaction_takes_are_all_delivered_once(
    ledger: Ledger, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("callslip.stores.ledger.outbox.webhooks.PER_TRANSACTION", 3)
    hook = ledger.webhooks.create(receiver.url, SECRET, ("document.queued",))
    for n in range(8):
        submit(ledger, str(n), f"{n}.txt")
    assert ledger.webhooks.fan_out() == 8
    assert ledger.webhooks.fan_out() == 0
    webhooks.send()
    names = [json.loads(body)["data"]["name"] for _, body in receiver.got]
    assert names == [f"{n}.txt" for n in range(8)]
    pages = ledger.webhooks.deliveries(hook.webhook_id, limit=5)
    rest = ledger.webhooks.deliveries(hook.webhook_id, before=pages[-1].event_id)
    assert len({d.delivery_id for d in pages + rest}) == 8


def test_no_event_is_passed_over_while_others_are_being_written(
    ledger: Ledger, receiver: Receiver
) -> None:
    """PostgreSQL gives ids before transactions end: a larger one may be seen first."""
    hook = ledger.webhooks.create(receiver.url, SECRET, ("document.queued",))

    def write(writer: int) -> list[str]:
        names = [f"{writer}-{n}.txt" for n in range(15)]
        for name in names:
            given = replace(submission(name, name), batch=f"batch-{name[-5]}")
            ledger.documents.submit("papers", given, uuid.uuid4().hex)
        return names

    with ThreadPoolExecutor(4) as pool:
        writing = [pool.submit(write, writer) for writer in range(4)]
        while not all(each.done() for each in writing):
            ledger.webhooks.fan_out()
    ledger.webhooks.fan_out()
    output = [d.body["data"]["name"] for d in log_of(ledger, hook)]
    assert sorted(output) == sorted(name for each in writing for name in each.result())


def test_old_deliveries_are_forgotten_but_none_that_waits(
    ledger: Ledger, receiver: Receiver
) -> None:
    hook = subscribe(ledger, receiver)
    publish(ledger, "one", ["c1"])
    webhooks.send()
    publish(ledger, "two", ["c2"])
    ledger.webhooks.fan_out()
    ledger.webhooks.trim(time.time() - 60)
    assert len(log_of(ledger, hook)) == 2
    ledger.webhooks.trim(time.time() + 60)
    assert [d.state for d in log_of(ledger, hook)] == ["waiting"]
    ledger.webhooks.delete(hook.webhook_id)
    with pytest.raises(WebhookNotFound):
        ledger.webhooks.get(hook.webhook_id)
    with pytest.raises(WebhookNotFound):
        ledger.webhooks.delete(hook.webhook_id)


def test_a_receiver_verifies_the_signature_with_the_library_of_the_specification() -> None:
    body, now = '{"주제": "é"}'.encode(), int(time.time())
    signature = sign(SECRET, "msg_1", now, body)
    headers = {
        "webhook-id": "msg_1",
        "webhook-timestamp": str(now),
        "webhook-signature": signature,
    }
    assert SignedWebhook(SECRET).verify(body, headers) == {"주제": "é"}
    digest = hmac.new(key_of(SECRET), b"msg_1.%d." % now + body, "sha256").digest()
    assert signature == f"v1,{base64.b64encode(digest).decode()}"

"""Keys, their usage, and the audit log, on each kind of database."""

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
from sqlalchemy import delete, insert, update

from callslip.errors import Conflict, KeyNotFound
from callslip.stores.ledger import AuditEntry, KeyGrant, KeyLimits, Ledger, Used
from callslip.stores.ledger.base.access_tables import api_keys, audit_log

pytest_plugins = ["ledger_fixtures"]

READ = KeyGrant(frozenset({"read"}))


def entry(number: int) -> AuditEntry:
    ids = {"document_id": f"{number:032}", "collection": "papers"}
    return AuditEntry(round(1.7e9 + number / 7, 3), "loader", "key", "GET x", 200, ids)


def test_a_key_is_found_by_its_text_and_not_stored(ledger: Ledger) -> None:
    grant = KeyGrant(
        frozenset({"read", "write"}),
        frozenset({"papers"}),
        frozenset({"acme"}),
        "kim",
        frozenset({"staff"}),
        KeyLimits(requests_per_minute=5),
    )
    assert not ledger.api_keys.any()
    text, made = ledger.api_keys.create("website", grant, 4e9)
    assert ledger.api_keys.of(text) == made == ledger.api_keys.get(made.key_id)
    assert ledger.api_keys.any()
    caller = made.caller
    assert (caller.name, caller.user, caller.groups) == ("website", "kim", frozenset({"staff"}))
    assert ledger.api_keys.of(f"{text[:-1]}{'A' if text[-1] != 'A' else 'B'}") is None
    assert ledger.api_keys.of(text.replace(made.key_id, "0" * 12)) is None
    with ledger._database.reading() as connection:
        (row,) = connection.execute(api_keys.select()).all()
    assert text.split("_", 2)[2] not in str(row)
    assert len({ledger.api_keys.create(f"k{n}", READ)[0] for n in range(5)}) == 5


def test_a_rotated_key_and_its_successor_are_valid_for_the_overlap(ledger: Ledger) -> None:
    first, _ = ledger.api_keys.create("website", READ)
    with pytest.raises(Conflict):
        ledger.api_keys.create("website", READ)
    second, _ = ledger.api_keys.rotate("website", 60)
    now = time.time()
    old, new = ledger.api_keys.of(first), ledger.api_keys.of(second)
    assert old is not None
    assert new is not None
    assert old.is_valid(now)
    assert not old.is_valid(now + 61)
    assert new.is_valid(now + 1e9)
    assert new.grant == old.grant
    assert ledger.api_keys.revoke("website") == 2
    with pytest.raises(KeyNotFound):
        ledger.api_keys.rotate("website", 60)
    with pytest.raises(KeyNotFound):
        ledger.api_keys.revoke("website")
    ledger.api_keys.create("website", READ)


def test_quotas_hold_however_many_ask_at_once(ledger: Ledger) -> None:
    def reserve(_: int) -> bool:
        return ledger.key_usage.reserve("loader", 7, Used(documents=1), documents=5, size=None)

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(reserve, range(12))) == 5
    assert ledger.key_usage.of("loader", 7) == Used(documents=5)
    assert ledger.key_usage.of("loader", 8) == Used()
    assert not ledger.key_usage.reserve("other", 7, Used(bytes=9), documents=None, size=8)


def test_the_log_of_many_processes_is_one_chain(ledger: Ledger, ledger_url: str) -> None:
    def append(start: int) -> None:
        with closing(Ledger(ledger_url)) as other:
            for number in range(start, start + 20, 2):
                entries = [entry(number), entry(number + 1)]
                other.audit_log.append(entries, used={("loader", 7): Used(2)})

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(append, range(0, 80, 20)))
    verified = ledger.audit_log.verify()
    assert (verified.rows, verified.last, verified.fault) == (80, 80, None)
    assert ledger.key_usage.of("loader", 7).requests == 80
    assert ledger.audit_log.verify(ledger.audit_log.rows()[40].hash).known
    assert not ledger.audit_log.verify("0" * 64).known


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (update(audit_log).where(audit_log.c.number == 3).values(caller="x"), "row 3 is not"),
        (update(audit_log).where(audit_log.c.number == 3).values(ids={}), "row 3 is not"),
        (update(audit_log).where(audit_log.c.number == 1).values(status=500), "row 1 is not"),
        (delete(audit_log).where(audit_log.c.number == 4), "row 4 is missing"),
        (delete(audit_log).where(audit_log.c.number == 1), "rows before 2 are missing"),
        (
            insert(audit_log).values(**entry(9).__dict__, number=7, hash="0" * 64),
            "row 7 is not",
        ),
    ],
)
def test_a_change_of_the_log_is_found(ledger: Ledger, change: object, fault: str) -> None:
    ledger.audit_log.append([entry(number) for number in range(6)])
    with ledger._database.writing() as connection:
        connection.execute(change)  # type: ignore[call-overload]
    assert fault in (ledger.audit_log.verify().fault or "")


def test_old_rows_of_the_log_go_and_the_chain_says_so(ledger: Ledger) -> None:
    for number in range(6):
        ledger.audit_log.append([entry(number)])
    assert ledger.audit_log.trim(entry(3).at) == 3
    assert ledger.audit_log.trim(entry(3).at) == 0
    assert ledger.audit_log.verify().fault is None
    assert ledger.audit_log.trim(9e9) == 3
    ledger.audit_log.append([entry(7)])
    verified = ledger.audit_log.verify()
    assert (verified.rows, verified.fault) == (3, None)
    with ledger._database.writing() as connection:
        connection.execute(delete(audit_log).where(audit_log.c.number == 7))
    assert ledger.audit_log.verify().fault is not None


def test_a_login_link_works_once(ledger: Ledger) -> None:
    code = ledger.secrets.login_code("abc", 60)
    assert ledger.secrets.spend(code) == "abc"
    assert ledger.secrets.spend(code) is None
    assert ledger.secrets.spend(ledger.secrets.login_code("abc", -1)) is None
    assert ledger.secrets.session() == ledger.secrets.session()
    assert len(ledger.secrets.session()) >= 40

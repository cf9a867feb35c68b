"""`callslip keys`: API keys, and the log of their use. Works on the ledger, without the server."""

import re
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from typing import Any

import click

from callslip.callers import PERMISSIONS, Permission
from callslip.cli.shared.output import aligned, as_json, emit, many, reporting
from callslip.logs import word
from callslip.stores.ledger import ApiKey, KeyGrant, KeyLimits, Ledger
from callslip.workers.local_access import FILE, read_key, write_key
from callslip.workers.local_settings import open_ledger, placed_settings

UNITS = {"m": 60, "h": 3600, "d": 86_400}

ADMIN = KeyGrant(frozenset({"admin"}))
"""What the key in `admin.key` may do: everything."""

FOLLOWING = ("GET batches.get_batch",)
"""The actions by which programs, such as `callslip ingest`, follow what they have sent."""

HEAD = ("name", "id", "permissions", "collections", "tenants", "limits", "valid", "last used")


class Duration(click.ParamType[float]):
    """Seconds, written as a number of minutes, hours or days."""

    name = "duration"

    def convert(self, value: Any, param: Any, ctx: Any) -> float:
        """Return the seconds of `30m`, `12h` or `90d`."""
        if isinstance(value, float):
            return value
        match = re.fullmatch(r"(\d{1,6})([mhd])", str(value))
        if match is None:
            self.fail("write it as 30m, 12h or 90d", param, ctx)
        return float(int(match[1]) * UNITS[match[2]])


@click.group(name="keys")
def keys_group() -> None:
    """API keys: make, list, rotate and revoke them, and read the log of their use.

    Each request needs a key, unless the server is open (`callslip up --open`). A key's permissions
    are read (search, answers, documents), write (documents, collections), feedback, delegate (name
    the user of feedback or a question), and admin, which includes all others. It can be limited to
    collections and tenants: what is outside does not exist for it. These commands work where the
    ledger is, whether the server runs or not; a running server follows within 5 seconds.

    \b
    Example:  callslip keys create website --permission read --collection handbook
              callslip keys rotate website --overlap 7d
              callslip keys audit --verify
    """


@keys_group.command(name="create")
@click.argument("name")
@click.option(
    "--permission",
    "permissions",
    type=click.Choice(PERMISSIONS),
    multiple=True,
    default=("read",),
    show_default=True,
    help="What it may do; once for each.",
)
@click.option("-c", "--collection", "collections", multiple=True, help="Only this one; repeatable.")
@click.option("--tenant", "tenants", multiple=True, help="Only this one; repeatable.")
@click.option("--user", help="The user that its requests are of.")
@click.option("--group", "groups", multiple=True, help="A group of this user; repeatable.")
@click.option("--expires", type=Duration(), help="Valid so long, such as 90d.  [default: for ever]")
@click.option("--requests-per-minute", type=click.IntRange(1), help="Further ones are 429.")
@click.option("--documents-per-day", type=click.IntRange(1), help="Submitted documents.")
@click.option("--bytes-per-day", type=click.IntRange(1), help="Bytes of submitted documents.")
@click.option("--tokens-per-day", type=click.IntRange(1), help="Tokens of language models.")
@as_json
@reporting
def create_command(
    name: str,
    permissions: tuple[Permission, ...],
    collections: tuple[str, ...],
    tenants: tuple[str, ...],
    user: str | None,
    groups: tuple[str, ...],
    expires: float | None,
    json_out: bool,
    **limits: int | None,
) -> None:
    """Make a key called NAME and print it. It is shown once: the ledger has its hash alone.

    Where the data folder has no `admin.key`, a key with the permission admin that has no limits is
    written there, too, so that commands on this machine use it. A collection may be made later; a
    warning names one that does not exist yet.

    \b
    Example:  callslip keys create loader --permission write --permission read
              callslip keys create acme --tenant acme --requests-per-minute 600 --expires 90d
    """
    grant = KeyGrant(
        frozenset(permissions),
        frozenset(collections) or None,
        frozenset(tenants) or None,
        user,
        frozenset(groups),
        KeyLimits(**limits),
    )
    if not 1 <= len(name) <= 128:
        raise click.BadParameter("a name has 1 to 128 characters", param_hint="NAME")
    if expires == 0:
        raise click.BadParameter("the key would never be valid", param_hint="--expires")
    with _ledger() as ledger:
        known = {record.name for record, _ in ledger.collections.all(names=collections)}
        text, key = ledger.api_keys.create(name, grant, expires and time.time() + expires)
    _show_new(text, key, json_out)
    for collection in sorted(set(collections) - known):
        warning = f"No collection is called {collection!r} yet: the key sees it once it is made."
        click.secho(warning, fg="yellow", err=True)
    settings = placed_settings()
    data_dir = settings.data_dir.absolute()
    lacks = settings.api.key is None and not settings.api.open and read_key(data_dir) is None
    if lacks and expires is None and grant == ADMIN:
        write_key(data_dir, text)
        click.echo(f"Commands on this machine use it: it is in {data_dir / FILE}.", err=True)


@keys_group.command(name="list")
@as_json
@reporting
def list_command(json_out: bool) -> None:
    """List every key with its permissions, limits and last use; no key itself is shown.

    \b
    Example:  callslip keys list
    """
    with _ledger() as ledger:
        keys = ledger.api_keys.all()
    if json_out:
        emit([_plain(key) for key in keys])
    elif keys:
        for line in aligned([HEAD, *map(_row, keys)], left=len(HEAD)):
            click.echo(line.rstrip())
    else:
        click.echo("There is no key: the next start makes one, unless api.key or api.open is set.")


@keys_group.command(name="rotate")
@click.argument("name")
@click.option(
    "--overlap",
    type=Duration(),
    default="24h",
    show_default=True,
    help="The earlier key stays valid so long.",
)
@as_json
@reporting
def rotate_command(name: str, overlap: float, json_out: bool) -> None:
    """Make a new key with the rights of NAME; the earlier one stays valid for the overlap.

    \b
    Example:  callslip keys rotate website --overlap 7d
    """
    with _ledger() as ledger:
        text, key = ledger.api_keys.rotate(name, overlap)
        data_dir = placed_settings().data_dir.absolute()
        local = ledger.api_keys.of(read_key(data_dir) or "")
        if local is not None and local.name == name:  # the commands on this machine use it
            write_key(data_dir, text)
        earlier = [each for each in ledger.api_keys.all() if each.name == name]
    _show_new(text, key, json_out)
    ends = [k.expires_at for k in earlier if k.key_id != key.key_id and k.revoked_at is None]
    until = max(end for end in ends if end is not None)
    click.echo(f"The earlier key is valid until {_time(until)}.", err=True)


@keys_group.command(name="revoke")
@click.argument("name")
@as_json
@reporting
def revoke_command(name: str, json_out: bool) -> None:
    """Revoke every key called NAME; a running server refuses them within 5 seconds.

    \b
    Example:  callslip keys revoke website
    """
    with _ledger() as ledger:
        revoked = ledger.api_keys.revoke(name)
    if json_out:
        emit({"name": name, "revoked": revoked})
    else:
        click.echo(f"{many(revoked, 'key')} revoked.")


@keys_group.command(name="audit")
@click.option(
    "--verify", is_flag=True, help="Compute the chain of hashes again. Exit code 1 on a fault."
)
@click.option("--expect", metavar="HASH", help="With --verify: the log must have had this hash.")
@click.option("--caller", help="Only the uses of this caller.")
@click.option(
    "--action", default="", metavar="TEXT", help="Only actions with this text, such as `DELETE`."
)
@click.option("--all", "all_", is_flag=True, help="Also the requests that follow a batch.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=50, show_default=True)
@as_json
@reporting
def audit_command(
    verify: bool,
    expect: str | None,
    caller: str | None,
    action: str,
    all_: bool,
    limit: int,
    json_out: bool,
) -> None:
    """Show who has done what, newest first: callers, actions and ids, and never a text.

    Reads of the progress of a batch are left out: programs repeat them while they wait. They are in
    the log; --all shows them.

    Each row has a hash of itself and of the row before. --verify finds a changed or missing row;
    keep the hash that it prints elsewhere and give it to --expect later, so that a log that was
    written anew is found too.

    \b
    Example:  callslip keys audit --caller website
              callslip keys audit --action delete_document
              callslip keys audit --verify --expect 9f2c…
    """
    with _ledger() as ledger:
        if verify:
            _verify(ledger, expect, json_out)
            return
        rows = ledger.audit_log.rows(
            caller=caller, action=action, without=() if all_ or action else FOLLOWING, limit=limit
        )
    if json_out:
        emit([{"number": r.number, **r.entry.__dict__, "ids": dict(r.entry.ids)} for r in rows])
        return
    for row in rows:
        use = row.entry
        who, ids = word(use.caller), " ".join(f"{n}={word(value)}" for n, value in use.ids.items())
        click.echo(f"{_time(use.at)}  {use.status}  {who}  {use.action}  {ids}".rstrip())


def _verify(ledger: Ledger, expect: str | None, json_out: bool) -> None:
    result = ledger.audit_log.verify(expect)
    fault = result.fault or (None if result.known else f"no row has the hash {expect}")
    if json_out:
        emit({"rows": result.rows, "last": result.last, "hash": result.hash, "fault": fault})
    elif fault is None:
        click.echo(f"{many(result.rows, 'row')}, unbroken up to row {result.last}: {result.hash}")
    if fault is not None:
        raise click.ClickException(f"the audit log is not whole: {fault}")


@contextmanager
def _ledger() -> Iterator[Ledger]:
    with closing(open_ledger(placed_settings())) as ledger:
        yield ledger


def _show_new(text: str, key: ApiKey, json_out: bool) -> None:
    if json_out:
        emit({"key": text, **_plain(key)})
        return
    click.echo(text)
    until = "for ever" if key.expires_at is None else f"until {_time(key.expires_at)}"
    click.echo(f"Key {key.name!r} is valid {until}; it is not shown again.", err=True)


def _plain(key: ApiKey) -> dict[str, Any]:
    grant = key.grant
    return {
        "key_id": key.key_id,
        "name": key.name,
        "permissions": sorted(grant.permissions),
        "collections": grant.collections and sorted(grant.collections),
        "tenants": grant.tenants and sorted(grant.tenants),
        "user": grant.user,
        "groups": sorted(grant.groups),
        "limits": {name: n for name, n in grant.limits.__dict__.items() if n is not None},
        "created_at": key.created_at,
        "expires_at": key.expires_at,
        "revoked_at": key.revoked_at,
        "last_used_at": key.last_used_at,
    }


def _row(key: ApiKey) -> tuple[str, ...]:
    grant, limits = key.grant, _plain(key)["limits"]
    if key.revoked_at is not None:
        valid = "revoked"
    elif key.expires_at is None:
        valid = "for ever"
    else:
        valid = f"until {_time(key.expires_at)}" if key.is_valid(time.time()) else "expired"
    return (
        key.name,
        key.key_id,
        ",".join(p for p in PERMISSIONS if p in grant.permissions),
        ",".join(sorted(grant.collections)) if grant.collections else "all",
        ",".join(sorted(grant.tenants)) if grant.tenants else "all",
        " ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in limits.items()) or "none",
        valid,
        "never" if key.last_used_at is None else _time(key.last_used_at),
    )


def _time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%SZ")

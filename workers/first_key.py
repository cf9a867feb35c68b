"""The key that the first start of `callslip up` makes, and links that log a browser in with it."""

from contextlib import closing, suppress

from callslip.config.settings import Settings
from callslip.errors import StoreDown
from callslip.stores.ledger import KeyGrant, Ledger
from callslip.workers.local_access import read_key, write_key

ADMIN = "admin"
"""The name of the key."""

LINK_SECONDS = 3600.0
"""The time in which a link logs in."""


def make_first_key(settings: Settings) -> str | None:
    """Make the admin key if the server has no key at all; return it if it is new.

    Makes none for a server that is open or has `api.key`, and none while the ledger's server does
    not answer.
    """
    if settings.api.open or settings.api.key is not None:
        return None
    with suppress(StoreDown), closing(Ledger(settings.ledger_url)) as ledger:
        if not ledger.api_keys.any():
            text, _ = ledger.api_keys.create(ADMIN, KeyGrant(frozenset({"admin"})))
            write_key(settings.data_dir, text)
            return text
    return None


def login_link(settings: Settings, url: str) -> str | None:
    """A link that logs a browser in once, with the admin key; None without such a key."""
    text = None if settings.api.open else read_key(settings.data_dir.absolute())
    if text is None:
        return None
    with suppress(StoreDown), closing(Ledger(settings.ledger_url)) as ledger:
        key = ledger.api_keys.of(text)
        if key is not None:
            code = ledger.secrets.login_code(key.key_id, LINK_SECONDS)
            return f"{url}/login?code={code}"
    return None

"""What it means that a server of models refuses a request, by its status."""

import re

from callslip.errors import CallslipError, InvalidRequest, SettingsError, TransientError

_BUSY = (408, 409, 425, 429)
_MISCONFIGURED = (401, 403, 404)
_CODE = re.compile(r"[a-z_]{1,40}")


def refused(
    status: int,
    code: object,
    address: str | None,
    *,
    what: str,
    section: str,
    down: type[TransientError],
) -> CallslipError:
    """The error for a refusal: `down` where the same may succeed later.

    `code` is the server's own word for it, if it has one; nothing else that it says is repeated,
    for it may quote the text. `section` of the settings has its address.
    """
    known = f" ({code})" if isinstance(code, str) and _CODE.fullmatch(code) else ""
    said = f"the {what} at {address} answered status {status}{known}"
    if status >= 500 or status in _BUSY:
        return down(said)
    if status in _MISCONFIGURED or 300 <= status < 400:
        return SettingsError(
            said, hint=f"Check {section}.base_url, {section}.api_key and {section}.model."
        )
    return InvalidRequest(said)

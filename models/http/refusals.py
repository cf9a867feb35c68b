"""Translates the HTTP error status of a model server into an error of Callslip."""

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
    """Return the error for a refused call: `down` if a later call may succeed.

    `code` is the server's error code, if there is one. Nothing else of the response is repeated,
    because the server may quote the text. `what` names the server in the message; `section` is the
    settings section with its address.
    """
    known = f" ({code})" if isinstance(code, str) and _CODE.fullmatch(code) else ""
    message = f"the {what} at {address} answered status {status}{known}"
    if status >= 500 or status in _BUSY:
        return down(message)
    if status in _MISCONFIGURED or 300 <= status < 400:
        return SettingsError(
            message, hint=f"Check {section}.base_url, {section}.api_key and {section}.model."
        )
    return InvalidRequest(message)

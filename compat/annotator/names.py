"""Names of files on the file server: none looks like a path, and random names are unguessable."""

import re
import secrets
import string

from callslip.errors import NotFound

MOST_CHARACTERS = 200

_NAME = re.compile(rf"[0-9A-Za-z][0-9A-Za-z._-]{{0,{MOST_CHARACTERS - 1}}}")
_OTHER = re.compile(r"[^0-9A-Za-z._-]+")
_RANDOM = string.ascii_letters + string.digits


def checked(name: str) -> str:
    """Return the name; raise NotFound if no file can have this name."""
    if not _NAME.fullmatch(name):
        raise NotFound("there is no file of this name")
    return name


def cleaned(name: str) -> str:
    """Return the last part of a client's file name, reduced to safe ASCII characters.

    Returns a random name if nothing remains.
    """
    last = re.split(r"[/\\]", name)[-1]
    cleaned_name = _OTHER.sub("_", last).lstrip("._-")[-MOST_CHARACTERS:].lstrip("._-")
    return cleaned_name or random()


def random(length: int = 10) -> str:
    """Return random letters and digits that nobody can guess."""
    return "".join(secrets.choice(_RANDOM) for _ in range(length))


def of_dialog(dialog_id: object) -> str:
    """Return a new file id as in the original: ten random characters and the dialog's id.

    The skill that reads the files recognises only ids of letters, digits and `_`.
    """
    dialog = str(dialog_id) if isinstance(dialog_id, str | int) else ""
    return f"{random()}_{re.sub('[^0-9A-Za-z]', '_', dialog)[:64]}"


def numbered(name: str) -> str:
    """Return a random variant of this name."""
    stem, dot, ending = name.rpartition(".")
    stem, ending = (stem, dot + ending) if stem else (name, "")
    return f"{stem[: MOST_CHARACTERS - 20]}_{random()}{ending[:9]}"

"""Names of files on the file server: they look like no path and cannot be guessed."""

import re
import secrets
import string

from callslip.errors import NotFound

MOST_CHARACTERS = 200

_NAME = re.compile(rf"[0-9A-Za-z][0-9A-Za-z._-]{{0,{MOST_CHARACTERS - 1}}}")
_OTHER = re.compile(r"[^0-9A-Za-z._-]+")
_RANDOM = string.ascii_letters + string.digits


def checked(name: str) -> str:
    """The name, where a file could have it; NotFound."""
    if not _NAME.fullmatch(name):
        raise NotFound("there is no file of this name")
    return name


def cleaned(name: str) -> str:
    """What is kept of a name that a client gave: its last part, in ASCII."""
    last = re.split(r"[/\\]", name)[-1]
    kept = _OTHER.sub("_", last).lstrip("._-")[-MOST_CHARACTERS:].lstrip("._-")
    return kept or random()


def random(length: int = 10) -> str:
    """Letters and digits that nobody can guess."""
    return "".join(secrets.choice(_RANDOM) for _ in range(length))


def of_dialog(dialog_id: object) -> str:
    """A new id of a file: ten random characters and the dialog's, as the original's.

    The skill that reads the files finds ids of letters, digits and `_` alone.
    """
    told = str(dialog_id) if isinstance(dialog_id, str | int) else ""
    return f"{random()}_{re.sub('[^0-9A-Za-z]', '_', told)[:64]}"


def numbered(name: str) -> str:
    """Another name like this one."""
    stem, dot, ending = name.rpartition(".")
    stem, ending = (stem, dot + ending) if stem else (name, "")
    return f"{stem[: MOST_CHARACTERS - 20]}_{random()}{ending[:9]}"

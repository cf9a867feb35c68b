"""Generates the page of all settings from their model: `python -m tools.settings_page`."""

import sys
from collections.abc import Mapping
from inspect import getdoc
from itertools import groupby

from pydantic.fields import FieldInfo

from callslip.config.keys import FAMILIES, KEYS, accepts
from callslip.config.masking import shown
from callslip.config.settings import Settings

INTRODUCTION = """\
# Settings

<!-- Written from config/settings.py by `python -m tools.settings_page > docs/settings.md`. -->

A setting has a default; a YAML file wins over it, and an environment variable over both. The file
is the one that `CALLSLIP_CONFIG` names, else `callslip.yaml` in the working directory:

```yaml
data_dir: /srv/callslip
api:
  port: 8080
```

The variable of a setting is `CALLSLIP_` and its name in capitals, `__` for each dot:
`CALLSLIP_DATA_DIR=/srv/callslip CALLSLIP_API__PORT=8080`. An empty value unsets what may be unset.
With `_FILE` behind it, a variable names a file with the value, such as a secret of a container:
`CALLSLIP_LEDGER__URL_FILE=/run/secrets/ledger_url`. The variable itself wins over that file.

Some settings also have the name of a variable of another system, such as `PARAGRAPHS_NUM`, in their
description. Such a variable wins over the file, and the variable of Callslip wins over both.

An unknown name is an error, in the file and among the variables that begin with `CALLSLIP_`.
Kubernetes adds such variables for a service that is called `callslip`: set
`enableServiceLinks: false` there. `callslip config` prints every value in use and where it came
from, secrets masked.
"""


def reference() -> str:
    """Return the page in Markdown."""
    parts = [INTRODUCTION]
    general = {key: field for key, field in KEYS.items() if "." not in key}
    parts += ["## General\n", _table(general)]
    in_sections = (key for key in KEYS if key not in general)
    for section, keys in groupby(in_sections, key=lambda key: key.rpartition(".")[0]):
        parts.append(f"## {section}\n\n{getdoc(Settings.model_fields[section].annotation) or ''}\n")
        parts.append(_table({key: KEYS[key] for key in keys}))
    for family, model in FAMILIES.items():
        parts.append(f"## {family}.NAME\n\n{getdoc(model)}\n")
        parts.append(_table({f"{family}.NAME.{n}": f for n, f in model.model_fields.items()}))
    return "\n".join(parts)


def _table(fields: Mapping[str, FieldInfo]) -> str:
    head = "| setting | default | what it is | takes |\n|---|---|---|---|\n"
    return head + "".join(_row(key, field) for key, field in fields.items())


def _row(key: str, field: FieldInfo) -> str:
    default = "" if field.default is None else f"`{shown(key.lower(), field.default)}`"
    return f"| `{key}` | {default} | {field.description} | {accepts(field)} |\n"


if __name__ == "__main__":
    sys.stdout.write(reference())

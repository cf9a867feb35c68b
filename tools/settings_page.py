"""Generates the page of all settings from their model: `python -m tools.settings_page`."""

import sys
from collections.abc import Mapping
from inspect import getdoc
from itertools import groupby

from pydantic.fields import FieldInfo

from callslip.config.keys import FAMILIES, KEYS, SECTIONS, accepts
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

Variables that users of other systems know, such as `PARAGRAPHS_NUM`, are named beside the settings
that they are; they win over the file, and those of Callslip over them.

A name that nothing knows is an error, in the file and among the variables that begin with
`CALLSLIP_`. Kubernetes adds such variables for a service that is called `callslip`: set
`enableServiceLinks: false` there. `callslip config` prints what is in force and where each value
came from, secrets masked.
"""


def reference() -> str:
    """Return the page in Markdown."""
    parts = [INTRODUCTION]
    for section, keys in groupby(KEYS, key=lambda key: key.rpartition(".")[0]):
        parts.append(_heading(section))
        parts.append(_table({key: KEYS[key] for key in keys}))
    for family, model in FAMILIES.items():
        parts.append(f"## {family}.NAME\n\n{getdoc(model)}\n")
        parts.append(_table({f"{family}.NAME.{n}": f for n, f in model.model_fields.items()}))
    return "\n".join(parts)


def _table(fields: Mapping[str, FieldInfo]) -> str:
    head = "| setting | default | what it is | takes |\n|---|---|---|---|\n"
    return head + "".join(_row(key, field) for key, field in fields.items())


def _heading(section: str) -> str:
    if section not in SECTIONS:
        return "## General\n"
    model = Settings.model_fields[section].annotation
    return f"## {section}\n\n{getdoc(model) if model else ''}\n"


def _row(key: str, field: FieldInfo) -> str:
    default = "" if field.default is None else f"`{shown(key.lower(), field.default)}`"
    return f"| `{key}` | {default} | {field.description} | {accepts(field)} |\n"


if __name__ == "__main__":
    sys.stdout.write(reference())

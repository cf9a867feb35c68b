"""The jobs that workers run for the endpoints of the invokers."""

import json
from typing import Any

from callslip.compat.context import adapter_context
from callslip.compat.genie.configuration import Configured
from callslip.compat.genie.invoker import dumped
from callslip.compat.genie.persist import WeaviatePersistInvoker
from callslip.tasks.composition import Context


def persist(context: Context, request: dict[str, Any]) -> Any:
    """Persist documents with provided chunks; return the invoker's answer as a JSON value.

    `request` has the `parameters` of the invoker and the text `content`.
    """
    configured = Configured(parameters=request["parameters"])
    invoker = WeaviatePersistInvoker(configured, adapter_context(context))
    return json.loads(dumped(invoker.answer(request["content"])))

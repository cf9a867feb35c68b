"""What every model of an answer has in common."""

from pydantic import BaseModel, ConfigDict


class Message(BaseModel):
    """An answer, or a part of one; what a newer desk adds to it is kept as an attribute."""

    model_config = ConfigDict(extra="allow", protected_namespaces=())

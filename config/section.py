"""The base class of all sections of settings."""

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """One group of settings; an unknown key in it is an error."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, validate_default=True, allow_inf_nan=False
    )

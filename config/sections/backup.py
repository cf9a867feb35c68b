"""Scheduled backups."""

from pydantic import Field, SecretStr

from callslip.config.sections.section import Section


class BackupSettings(Section):
    """Where backups go, how often they are made, and which of them stay."""

    to: str | None = Field(
        default=None,
        description="folder or fsspec URL such as s3://bucket/prefix; unset: no scheduled backup",
    )
    every_hours: float = Field(default=24.0, gt=0, description="how often a backup is made")
    keep: int = Field(
        default=7,
        ge=0,
        description="the newest backup of each of this many days and of each of this many weeks"
        " stays; 0: all stay",
    )
    verify_days: float = Field(
        default=30.0,
        ge=0,
        description="how often the newest backup is restored into a temporary folder; 0: never",
    )
    key: SecretStr | None = Field(
        default=None,
        min_length=12,
        description="passphrase of encrypted backups, at least 12 characters; unset: not encrypted",
    )

"""The servers and files of the stores."""

from pathlib import Path

from pydantic import Field, SecretStr

from callslip.config.section import Section


class ChromaSettings(Section):
    """A Chroma server, and the keyword index for it."""

    url: str | None = Field(
        default=None, description="unset: `callslip up` starts Chroma's server in data_dir"
    )
    index_dir: Path | None = Field(
        default=None, description="folder of the keyword index; unset: in data_dir"
    )


class WeaviateSettings(Section):
    """A Weaviate server, for the collections in the store `weaviate`."""

    url: str | None = Field(
        default=None, description="URL of its HTTP interface, such as http://127.0.0.1:8080"
    )
    grpc_url: str | None = Field(
        default=None, description="URL of its gRPC interface; unset: port 50051 of the same host"
    )
    api_key: SecretStr | None = Field(
        default=None, description="API key, if the server requires one"
    )
    timeout_seconds: float = Field(default=60.0, gt=0, description="the longest time of one call")


class CrateSettings(Section):
    """A CrateDB cluster, for the collections in the store `crate`."""

    url: str | None = Field(
        default=None, description="URL of its HTTP interface, such as http://127.0.0.1:4200"
    )
    user: str = Field(default="crate", description="user name")
    password: SecretStr | None = Field(
        default=None, description="password, if the cluster requires one"
    )
    schema_name: str = Field(
        default="callslip",
        pattern=r"^[a-z][a-z0-9_]{0,40}$",
        description="schema of the tables",
    )
    shards: int = Field(
        default=1, ge=1, description="shards of a new table; more than one for several machines"
    )
    replicas: str = Field(
        default="0-1", pattern=r"^[0-9]+(-([0-9]+|all))?$", description="replicas of a new table"
    )
    timeout_seconds: float = Field(default=60.0, gt=0, description="the longest time of one call")


class TfidfSettings(Section):
    """The TF-IDF store: files and numpy, no server."""

    folder: Path | None = Field(default=None, description="folder of its files; unset: in data_dir")

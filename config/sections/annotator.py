"""Settings of the Document Retriever, and the environment variables that its users know."""

from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from pydantic import Field, field_validator

from callslip.config.sections.section import Section

VARIABLES = {
    "PARAGRAPHS_NUM": "annotator.paragraphs_num",
    "FILE_SERVER_URL": "annotator.file_server_url",
    "FILE_SERVER_TIMEOUT": "annotator.file_server_timeout",
    "CONFIG_PATH": "annotator.config_path",
    "DOC_PATHS_OR_LINKS": "annotator.documents",
    "N_TURNS_TO_KEEP_DOC": "annotator.turns_to_keep",
}
"""Variables of the original, each with its setting; Callslip's own variables override them."""


class AnnotatorSettings(Section):
    """The Document Retriever of DeepPavlov Dream, its document processor and its file server.

    The variables of the original apply too: they override the file, and Callslip's variables
    override them.
    """

    paragraphs_num: int = Field(
        default=5, ge=1, le=1000, description="the number of chunks in a response; PARAGRAPHS_NUM"
    )
    file_server_url: str | None = Field(
        default=None,
        description="the URL of the file server, such as http://files:3000; unset: this"
        " service stores the files; FILE_SERVER_URL",
    )
    file_server_timeout: float = Field(
        default=30.0,
        gt=0,
        le=600,
        description="seconds for all links of a dialog together; FILE_SERVER_TIMEOUT",
    )
    own_files: bool | None = Field(
        default=None,
        description="whether this service stores the files of file_server_url itself; unset: if"
        " it listens there",
    )
    links: Literal["file-server", "public"] = Field(
        default="file-server",
        description="allowed links in a dialog: only to the file server, or also to any public"
        " address and to sources.allow_networks",
    )
    config_path: Path | None = Field(
        default=None,
        description="the original's doc_retriever_config.json; only its tokenizer is used, and a"
        " tokenizer that this service does not have is an error; CONFIG_PATH",
    )
    documents: str | None = Field(
        default=None,
        description="paths or links of documents for every dialog, separated by commas;"
        " DOC_PATHS_OR_LINKS",
    )
    turns_to_keep: int | None = Field(
        default=None,
        ge=1,
        description="turns after which documents that no skill used are dropped; unset: never;"
        " N_TURNS_TO_KEEP_DOC",
    )
    max_text_mb: int = Field(
        default=20, ge=1, le=40, description="the most text of all documents of a dialog, in MB"
    )
    folder: Path | None = Field(
        default=None, description="the folder of the service's files; unset: in data_dir"
    )
    keep_days: float | None = Field(
        default=None, gt=0, description="days after which files are removed; unset: never"
    )

    @property
    def seconds_of_a_batch(self) -> float:
        """The time in seconds after which no further dialog of a batch is begun."""
        return 4 * self.file_server_timeout

    @field_validator("file_server_url")
    @classmethod
    def _is_an_address(cls, url: str | None) -> str | None:
        if url is not None:
            split = urlsplit(url)
            if split.scheme not in ("http", "https") or not split.hostname or split.port == 0:
                raise ValueError("must be a web address")
        return url

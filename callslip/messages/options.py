"""Options of a collection: reading of JSON, enrichment, stored questions, ranking."""

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from callslip.messages.base import Word
from callslip.messages.values import is_unicode
from callslip.vocabulary import FILTERABLE, AnalyzerKind, Fusion, ProposalKind

MOST_NAMES = 2_000
"""The most names and aliases in a dictionary: each is searched for in every chunk."""

_Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]

_FieldName = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200, pattern="^[^,]+$")
]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Rule(_Part):
    """Sets facets of the documents whose name and text match."""

    set: dict[_Text, _Text] = Field(
        min_length=1, max_length=16, description="such as {'doc_type': 'law', 'jurisdiction': 'KR'}"
    )
    name: _Text | None = Field(
        default=None,
        description="pattern of the name, such as `laws/*`; `*` matches any characters",
    )
    content: _Text | None = Field(
        None,
        description="pattern in its first 4,000 characters: `[시행 *] [법률 제`; case is ignored",
    )

    @model_validator(mode="after")
    def _says_when(self) -> Self:
        if self.name is None and self.content is None:
            raise ValueError("a rule needs `name` or `content`: when it holds")
        if hidden := set(self.set) & {*FILTERABLE, "entities"}:
            raise ValueError(f"{min(hidden)!r} is a field of every chunk and no facet")
        return self


class Ranking(_Part):
    """Ranking parameters that replace the settings of the same names."""

    alpha: float | None = Field(None, ge=0, le=1, description="`search.alpha`")
    fusion: Word[Fusion] | None = Field(None, description="`search.fusion`")
    pool: int | None = Field(None, ge=1, le=500, description="`search.pool`")
    proximity: float | None = Field(None, ge=0, le=1, description="`search.proximity`")
    facets_weight: float | None = Field(None, ge=0, le=1, description="`facets.weight`")
    facets_top: int | None = Field(None, ge=1, le=20, description="`facets.top_per_facet`")
    memory_weight: float | None = Field(None, ge=0, le=1, description="`memory.weight`")
    exploration_ratio: float | None = Field(
        None, ge=0, le=1, description="`memory.exploration_ratio`"
    )
    rerank: bool | None = Field(None, description="false: do not use the reranker of the settings")
    rerank_top: int | None = Field(None, ge=1, le=200, description="`rerank.top`")
    mmr_lambda: float | None = Field(None, ge=0, le=1, description="`rerank.mmr_lambda`")
    narrow: bool | None = Field(default=None, description="`search.narrow`")
    hotset: bool | None = Field(
        default=None, description="false: do not use the hotset of the settings"
    )


class JsonFields(_Part):
    """The fields of a JSON record by use; `a.b` is b within a; by default those of the settings."""

    title: tuple[_FieldName, ...] | None = Field(
        default=None, description="its title is the first of these fields that a record has"
    )
    text: tuple[_FieldName, ...] | None = Field(
        default=None, description="its text, in this order; empty: all fields, one per line"
    )
    properties: tuple[_FieldName, ...] | None = Field(
        default=None, description="its properties, if a file is a single record"
    )

    def settings(self) -> dict[str, str]:
        """The fields that are set, in the form of the extraction settings."""
        fields_of = self.model_dump(exclude_none=True)
        return {f"json_{name}": ",".join(fields) for name, fields in fields_of.items()}


class Options(_Part):
    """Options for reading JSON, enrichment and searches."""

    entities: bool = Field(
        True, description="find persons, organisations, places, laws, programmes"
    )
    dictionary: dict[_Text, tuple[_Text, ...]] = Field(
        default={}, description="names of entities of this collection, each with its aliases"
    )
    rules: tuple[Rule, ...] = Field(
        default=(),
        max_length=200,
        description="facets by name and content; the first matching rule sets a facet",
    )
    scrub: Word[Literal["entities", "text", "off"]] = Field(
        default="entities",
        description="leave e-mail addresses, phone, card and Korean resident numbers out of the"
        " entities, or mask them in everything that is derived from a document",
    )
    confirm: bool = Field(
        default=False, description="let the language model of the settings confirm the entities"
    )
    ranking: Ranking = Field(
        default=Ranking.model_validate({}), description="ranking parameters of its searches"
    )
    json_fields: JsonFields = Field(
        default=JsonFields.model_validate({}),
        description="which fields of JSON records are title, text and properties",
    )

    analyzer: Word[AnalyzerKind] = Field(
        default="default",
        description="what makes the terms of its keyword index: stems and morphemes of every"
        " language, of English or Korean alone, whole words, or character pairs. Set it when the"
        " collection is made; later, `callslip reindex` applies it",
    )
    valid_from_default: Word[Literal["none", "created_at"]] = Field(
        default="none",
        description="`valid_from` of documents and passages without a stated one: none, or the day"
        " of the document's first submission",
    )
    keep_queries: bool = Field(
        default=False, description="store the text of questions with the statistics of the memory"
    )

    facets: tuple[_FieldName, ...] = Field(
        default=(),
        max_length=50,
        description="further facets of this collection, besides those of `facets.names`",
    )
    apply_proposals: tuple[Word[ProposalKind], ...] = Field(
        default=(),
        max_length=2,
        description="proposals of the scheduler that are applied without a yes: `ranking`, `facets`"
        " (docs/tuning.md)",
    )

    @model_validator(mode="after")
    def _can_be_looked_for(self) -> Self:
        names = [name for entry in self.dictionary.items() for name in (entry[0], *entry[1])]
        if len(names) > MOST_NAMES:
            raise ValueError(
                f"{len(names)} names in the dictionary, at most {MOST_NAMES} are allowed"
            )
        if reserved := [name for name in self.facets if name.startswith("callslip:")]:
            raise ValueError(f"{reserved[0]!r} is a property of the server and no facet")
        if not all(map(is_unicode, names)):
            raise ValueError("a name in the dictionary is not valid Unicode")
        return self


USUAL = Options.model_validate({})
"""The options of a collection without any in its request."""

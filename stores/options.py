"""Options of a collection: what is found out about its documents and kept, how it ranks."""

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

from stores.filters import is_unicode
from stores.fusion import Fusion
from stores.records import FILTERABLE

MOST_NAMES = 2_000
"""Names and aliases in a dictionary: each is looked for in every chunk."""

_Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]

_FieldName = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200, pattern="^[^,]+$")
]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Rule(_Part):
    """Facets of the documents whose name and text fit."""

    set: dict[_Text, _Text] = Field(
        min_length=1, max_length=16, description="such as {'doc_type': 'law', 'jurisdiction': 'KR'}"
    )
    name: _Text | None = Field(
        default=None, description="the document's name: `laws/*`; `*` stands for any characters"
    )
    content: _Text | None = Field(
        None,
        description="stands in its first 4,000 characters: `[시행 *] [법률 제`; case is ignored",
    )

    @model_validator(mode="after")
    def _says_when(self) -> Self:
        if self.name is None and self.content is None:
            raise ValueError("a rule needs `name` or `content`: when it holds")
        if hidden := set(self.set) & {*FILTERABLE, "entities"}:
            raise ValueError(f"{min(hidden)!r} is a field of every chunk and no facet")
        return self


class Ranking(_Part):
    """How hits are ranked, where that is to differ from the settings of the same names."""

    alpha: float | None = Field(None, ge=0, le=1, description="`search.alpha`")
    fusion: Fusion | None = Field(None, description="`search.fusion`")
    pool: int | None = Field(None, ge=1, le=500, description="`search.pool`")
    proximity: float | None = Field(None, ge=0, le=1, description="`search.proximity`")
    facets_weight: float | None = Field(None, ge=0, le=1, description="`facets.weight`")
    facets_top: int | None = Field(None, ge=1, le=20, description="`facets.top_per_facet`")
    memory_weight: float | None = Field(None, ge=0, le=1, description="`memory.weight`")
    exploration_ratio: float | None = Field(
        None, ge=0, le=1, description="`memory.exploration_ratio`"
    )
    rerank: bool | None = Field(None, description="false: without the reranker of the settings")
    rerank_top: int | None = Field(None, ge=1, le=200, description="`rerank.top`")
    mmr_lambda: float | None = Field(None, ge=0, le=1, description="`rerank.mmr_lambda`")
    narrow: bool | None = Field(default=None, description="`search.narrow`")
    hotset: bool | None = Field(
        default=None, description="false: without the hotset of the settings"
    )


class JsonFields(_Part):
    """Which fields of a JSON record are what; `a.b` is b within a, unset: as the settings say."""

    title: tuple[_FieldName, ...] | None = Field(
        default=None, description="the first of these that a record has is its title"
    )
    text: tuple[_FieldName, ...] | None = Field(
        default=None, description="its text, in this order; empty: all fields, a line each"
    )
    properties: tuple[_FieldName, ...] | None = Field(
        default=None, description="become properties, where a file is a single record"
    )

    def settings(self) -> dict[str, str]:
        """Those that are set, as the settings of extraction write them."""
        given = self.model_dump(exclude_none=True)
        return {f"json_{name}": ",".join(fields) for name, fields in given.items()}


class Options(_Part):
    """What a collection wants of reading JSON, of enrichment, and of searches."""

    entities: bool = Field(
        True, description="find persons, organisations, places, laws, programmes"
    )
    dictionary: dict[_Text, tuple[_Text, ...]] = Field(
        default={}, description="names of the collection's own, each with its aliases"
    )
    rules: tuple[Rule, ...] = Field(
        default=(),
        max_length=200,
        description="facets by name and content; the first that fits sets one",
    )
    scrub: Literal["entities", "text", "off"] = Field(
        default="entities",
        description="leave e-mail addresses, phone, card and Korean resident numbers out of the"
        " entities, or mask them in all that is made of a document",
    )
    confirm: bool = Field(
        default=False, description="ask the language model of the settings which entities are right"
    )
    ranking: Ranking = Field(
        default=Ranking.model_validate({}), description="how its hits are ranked"
    )
    json_fields: JsonFields = Field(
        default=JsonFields.model_validate({}),
        description="which fields of JSON records are title, text and properties",
    )

    keep_queries: bool = Field(
        default=False, description="keep the text of questions beside what is learned from them"
    )

    @model_validator(mode="after")
    def _can_be_looked_for(self) -> Self:
        names = [name for given in self.dictionary.items() for name in (given[0], *given[1])]
        if len(names) > MOST_NAMES:
            raise ValueError(f"{len(names)} names in the dictionary, at most {MOST_NAMES} are kept")
        if not all(map(is_unicode, names)):
            raise ValueError("a name in the dictionary is not valid Unicode")
        return self


USUAL = Options.model_validate({})
"""What a collection does that says nothing."""

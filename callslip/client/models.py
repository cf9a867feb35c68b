"""What the desk answers, from its OpenAPI document by `python -m api.client_code`."""

from datetime import date, datetime
from typing import Any, Literal

from pydantic import Field

from callslip.client.message import Message


class AnswerSentence(Message):
    """A sentence of an answer with the numbers of what supports it."""

    text: str
    citations: list[int]


class AttachedTable(Message):
    """The table of somebody else that a collection is."""

    table: str
    vectors: Literal["ours", "none"] | str
    """`ours`: of this installation's embedder; `none`: of one that is not known"""


class ChunkMemory(Message):
    """What is remembered of a chunk."""

    chunk_id: str
    document_id: str
    useful: int
    useless: int
    last_useful_at: float | None
    utility: float
    """wins less losses, decayed to this moment"""
    intents: dict[str, int]
    entities: dict[str, int]
    """of the questions it answered; as hashes unless keep_queries is on"""
    questions: int


class CollectionDeleted(Message):
    """A collection that is hidden already and removed soon."""

    collection: str


class Deleted(Message):
    """A deletion on its way: hidden already, removed soon."""

    document_id: str
    task_id: str
    task_url: str
    status_url: str


class Delivery(Message):
    """One event on its way to one receiver, or there."""

    delivery_id: str
    """the header `webhook-id`, the same at every try"""
    event_id: int
    type: (
        Literal[
            "document.queued",
            "document.live",
            "document.failed",
            "document.superseded",
            "document.deleted",
            "document.removed",
            "step.started",
            "step.finished",
            "step.retrying",
            "step.failed",
        ]
        | str
    )
    document_id: str
    state: Literal["waiting", "delivered", "given-up"] | str
    created_at: float
    attempts: int
    attempted_at: float | None
    next_at: float | None
    """when it is tried again"""
    status: int | None
    """of the last answer"""
    error: str | None


class Event(Message):
    """One thing that happened to a document."""

    event_id: int
    kind: (
        Literal[
            "document.queued",
            "document.live",
            "document.failed",
            "document.superseded",
            "document.deleted",
            "document.removed",
            "step.started",
            "step.finished",
            "step.retrying",
            "step.failed",
        ]
        | str
    )
    document_id: str
    collection: str
    tenant: str
    version: int | None
    step: Literal["extract", "sectionize", "chunk", "enrich", "embed", "upsert"] | str | None
    at: float
    data: dict[str, Any] | None
    """a step's counts or attempt, why it failed, or a deletion's receipt"""


class FacetValue(Message):
    """A value that has a vector."""

    value: str
    chunks: int
    """passages that carried it at the last rebuild"""
    aliases: list[str]
    description: str
    updated_at: float


class FacetsAsked(Message):
    """A rebuild that waits for a worker."""

    run: str
    """`run` of these facets once it is at work"""
    facets: list[str]


class FailureMessage(Message):
    """Why something failed and what to do."""

    type: str
    title: str
    detail: str
    advice: str
    step: str | None = None


class Feedback(Message):
    """Feedback as it was taken."""

    feedback_id: str
    trace_id: str
    collection: str
    tenant: str
    user: str
    verdict: Literal["helpful", "unhelpful", "validated"] | str
    at: float
    withdrawn_at: float | None
    chunk_ids: list[str]
    counted: list[str]
    """those whose memory it changed: a user counts once a day for a chunk, and a document that is
    gone learns nothing"""


class Forgotten(Message):
    """A reset."""

    chunks: int
    """of so many nothing is remembered any more"""


class Health(Message):
    """The desk itself is alive."""

    status: Literal["ok"]
    version: str


class JsonFields(Message):
    """Which fields of a JSON record are what; `a.b` is b within a, unset: as the settings say."""

    title: list[str] | None = None
    """the first of these that a record has is its title"""
    text: list[str] | None = None
    """its text, in this order; empty: all fields, a line each"""
    properties: list[str] | None = None
    """become properties, where a file is a single record"""


class JudgedSearchLine(Message):
    """A search of which hits helped."""

    question: str
    """id of the question: the same words have the same"""
    vector: str | None
    """its vector, half precision, little-endian, in base64"""
    alpha: float
    fusion: Literal["calibrated", "weighted", "rrf", "native"] | str
    explored: tuple[int, float] | None
    """the place, from 1, of a chunk that was tried, and how likely that was"""
    helped: list[int]
    """places, from 1, of the hits that helped"""
    basis: list[list[float | None]]
    """of the hits, then of candidates that were not shown, 40 in all: vector, keyword, proximity,
    facets, memory, rest (docs/tuning.md)"""


class Leg(Message):
    """Where one leg ranked a hit, from 1, and its raw score: cosine similarity or BM25."""

    rank: int
    score: float


class Legs(Message):
    """Both legs; null where a leg did not find the hit."""

    vector: Leg | None
    keyword: Leg | None


class MemoryLine(Message):
    """A line of an export: all that is remembered of a chunk."""

    chunk_id: str
    document_id: str
    useful: int
    useless: int
    last_useful_at: float | None
    utility: float
    """as it was at utility_at"""
    utility_at: float
    intents: dict[str, int]
    entities: dict[str, int]
    questions: int
    centroid: list[float] | None


class MemoryMessage(Message):
    """What a collection, or a tenant of it, has learned."""

    collection: str
    tenant: str
    changes: int
    """grows with each change"""
    chunks: int
    useful: int
    useless: int
    centre_of: int
    """questions that the centre is the mean of; 0: too few are known"""
    memories: list[ChunkMemory]
    """the greatest utility first"""
    next_after: str | None
    """send as `after` for the next page"""


class NodeMessage(Message):
    """A node of the graph that has run, as a stream tells it."""

    node: str
    attempt: int
    """from 0; each action of the validator begins another"""
    milliseconds: float
    facts: dict[str, Any]
    """what it chose and counted; never text"""


class Part(Message):
    """One part of the system."""

    ready: bool
    reason: str | None = None


class ProposedCluster(Message):
    """Passages that are alike."""

    terms: list[str]
    """analyzed terms that tell it from the others"""
    share: float
    examples: list[str]
    """ids of passages, the most typical first"""


class ProposedProperty(Message):
    """A property that could be a facet."""

    name: str
    distinct: int
    """how many values it has"""
    values: dict[str, int]
    """the most frequent, with their passages"""
    coverage: float
    """share of passages that have it"""
    evenness: float
    """entropy over the values, by the greatest possible"""
    separation: float
    """share of the vectors' variance that it explains"""
    score: float


class Ranking(Message):
    """How hits are ranked, where that is to differ from the settings of the same names."""

    alpha: float | None = None
    """`search.alpha`"""
    fusion: Literal["calibrated", "weighted", "rrf", "native"] | str | None = None
    """`search.fusion`"""
    pool: int | None = None
    """`search.pool`"""
    proximity: float | None = None
    """`search.proximity`"""
    facets_weight: float | None = None
    """`facets.weight`"""
    facets_top: int | None = None
    """`facets.top_per_facet`"""
    memory_weight: float | None = None
    """`memory.weight`"""
    exploration_ratio: float | None = None
    """`memory.exploration_ratio`"""
    rerank: bool | None = None
    """false: without the reranker of the settings"""
    rerank_top: int | None = None
    """`rerank.top`"""
    mmr_lambda: float | None = None
    """`rerank.mmr_lambda`"""
    narrow: bool | None = None
    """`search.narrow`"""
    hotset: bool | None = None
    """false: without the hotset of the settings"""


class RankingMessage(Message):
    """What searches of a collection go by, where a request does not say otherwise."""

    alpha: float
    fusion: Literal["calibrated", "weighted", "rrf", "native"] | str
    pool: int
    proximity: float
    facets_weight: float
    facets_top: int
    memory_weight: float
    exploration_ratio: float
    rerank: bool
    rerank_top: int
    mmr_lambda: float
    narrow: bool
    hotset: bool


class Readiness(Message):
    """Whether work that is sent now will be done."""

    ready: bool
    parts: dict[str, Part]


class Reasons(Message):
    """
    What a hit's score is made of.

    `fused` is what the legs gave, or `hotset` how near the question is to those that the passage
    has answered, `proximity` words that follow each other as in the question,
    `rerank` the reranker, `prior` facets that the question is about, `memory` what helped before.
    """

    parts: dict[str, float]
    """name to what it adds; their sum is the score"""
    basis: dict[str, float | None]
    """what the weights are multiplied with: alpha with `vector`, 1 - alpha with `keyword`, …; null:
    the weight was 0 (docs/tuning.md)"""
    rank_of_legs: int
    """by `fused` alone"""
    rank_of_content: int
    """before prior and memory"""


class Receipt(Message):
    """What was held of a deleted collection, or a tenant of it, and what is left."""

    collection: str
    tenant: str
    """empty: the whole collection"""
    deleted_at: float
    removed_at: float | None
    """null while the removal is under way"""
    before: dict[str, int]
    """objects in each half of each store, and files"""
    after: dict[str, int] | None
    """the same, counted again when all was removed"""


class Receipts(Message):
    """Of every deletion under a collection's name, newest first."""

    receipts: list[Receipt]


class Retried(Message):
    """What waits for a worker again."""

    retried: list[str]
    """document ids"""
    more: bool
    """send the same again for the rest"""


class Rule(Message):
    """Facets of the documents whose name and text fit."""

    set: dict[str, str]
    """such as {'doc_type': 'law', 'jurisdiction': 'KR'}"""
    name: str | None = None
    """the document's name: `laws/*`; `*` stands for any characters"""
    content: str | None = None
    """stands in its first 4,000 characters: `[시행 *] [법률 제`; case is ignored"""


class Span(Message):
    """Characters of the document's extracted text: `text[start:end]` is the hit's text."""

    start: int
    end: int


class StepMessage(Message):
    """How far one step is."""

    step: str
    state: Literal["pending", "running", "done", "failed"] | str
    attempts: int
    crashes: int
    seconds: float | None
    worker: str | None
    counts: dict[str, int]
    retry_in_seconds: float | None
    error: FailureMessage | None


class Submitted(Message):
    """What became of a submission."""

    outcome: Literal["accepted", "unchanged"] | str
    document_id: str
    version: int
    task_id: str
    status_url: str
    task_url: str


class TakenIn(Message):
    """An import."""

    chunks: int
    """whose memory was replaced"""
    unknown: int
    """chunks that the collection does not have, left out"""


class Task(Message):
    """One submission or deletion."""

    task_id: str
    kind: Literal["ingest", "delete"] | str
    document_id: str
    version: int | None
    state: Literal["waiting", "working", "stalled", "done", "failed", "superseded"] | str
    steps_done: int
    steps: int
    error: FailureMessage | None


class Tenant(Message):
    """A tenant of a collection."""

    tenant: str
    """any name"""


class Tenants(Message):
    """Every tenant of a collection, by name."""

    tenants: list[str]


class TextSlice(Message):
    """A part of a document's extracted text."""

    document_id: str
    start: int
    end: int
    length: int
    """of the whole text"""
    text: str


class TimeClamp(Message):
    """The moment that hits are in force at, and how it was chosen."""

    at: datetime | None
    """an instant in UTC; null: any time"""
    source: Literal["given", "understood", "default"] | str
    """given: in the request; understood: from the question; default: search.as_of"""
    words: str | None
    """of the question, that it was understood from"""


class Today(Message):
    """How much of the day's ceiling is left, in tokens."""

    used: int
    """and reserved for calls under way, or that a crash cut off"""
    ceiling: int
    """llm.tokens_per_day; 0: none"""
    left: int | None
    """null where there is no ceiling"""
    renewed_at: float


class TraceMessage(Message):
    """How a search came to its hits, and what was said of them since."""

    trace: dict[str, Any]
    outcomes: list[Feedback]
    """oldest first, with the chunks whose memory moved"""


class TurnMessage(Message):
    """A question of a conversation and its answer."""

    question: str
    understood: str
    """the question as it was searched, by itself"""
    text: str
    answered: bool
    trace_id: str
    at: float
    """seconds since 1970"""


class Usage(Message):
    """Tokens of the language model, for this answer."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0


class Used(Message):
    """What was used, and its cost at the prices that the settings have now."""

    calls: int
    input_tokens: int
    output_tokens: int
    cost: float
    """in the currency of llm.input_price and llm.output_price"""


class UsedOnDay(Message):
    """What one model used on one day."""

    calls: int
    input_tokens: int
    output_tokens: int
    cost: float
    """in the currency of llm.input_price and llm.output_price"""
    day: date
    """in UTC"""
    model: str


class Verdict(Message):
    """What the validator said."""

    approved: bool
    reason: (
        Literal[
            "supported",
            "no-passages",
            "not-in-force",
            "not-covered",
            "not-apart",
            "not-grounded",
            "model-declined",
        ]
        | str
    )
    action: Literal["DRILLDOWN", "RELAX", "PIVOT"] | str | None
    """what was to be done otherwise; null where approved, or nothing was left to try"""
    confidence: float
    """that the passages answer the question, in [0, 1]; approved from agent.confidence_threshold of
    the settings on"""


class VersionMessage(Message):
    """One content that a document has, or had."""

    version: int
    state: Literal["queued", "live", "superseded", "failed"] | str
    """live: what searches see"""
    submitted_at: float
    finished_at: float | None
    sha256: str
    size: int
    filename: str
    title: str
    properties: dict[str, Any]
    counts: dict[str, dict[str, int]]
    """what each step made, by step"""
    superseded_by: int | None
    """the version that took its place"""
    restores: int | None
    """of a rollback: the version that it brought back"""
    error: FailureMessage | None


class Versions(Message):
    """The history of a document, newest version first."""

    document_id: str
    name: str
    live_version: int | None
    versions: list[VersionMessage]


class Webhook(Message):
    """Who is told of what."""

    webhook_id: str
    url: str
    collection: str | None
    events: list[
        Literal[
            "document.queued",
            "document.live",
            "document.failed",
            "document.superseded",
            "document.deleted",
            "document.removed",
            "step.started",
            "step.finished",
            "step.retrying",
            "step.failed",
        ]
        | str
    ]
    created_at: float
    stopped_at: float | None
    """since when its receiver is gone (410)"""


class WebhookMade(Message):
    """A new webhook; the secret is shown this once."""

    webhook_id: str
    url: str
    collection: str | None
    events: list[
        Literal[
            "document.queued",
            "document.live",
            "document.failed",
            "document.superseded",
            "document.deleted",
            "document.removed",
            "step.started",
            "step.finished",
            "step.retrying",
            "step.failed",
        ]
        | str
    ]
    created_at: float
    stopped_at: float | None
    """since when its receiver is gone (410)"""
    secret: str


class Webhooks(Message):
    """Every webhook, oldest first."""

    webhooks: list[Webhook]


class Attempt(Message):
    """One way through the plan, from its search to its verdict."""

    trace_id: str
    """of its search"""
    action: Literal["DRILLDOWN", "RELAX", "PIVOT"] | str | None
    """what was done otherwise than before"""
    query: str
    """what was searched"""
    hits: int
    verdict: Verdict


class BatchDocument(Message):
    """One document of a batch."""

    document_id: str
    version: int
    collection: str
    name: str
    state: Literal["waiting", "working", "stalled", "live", "failed", "superseded", "deleted"] | str
    unchanged: bool
    """its content was there already"""
    error: FailureMessage | None


class BatchDocuments(Message):
    """A page of a batch's documents."""

    documents: list[BatchDocument]
    next_after: str | None
    """send as `after` for the next page"""


class Citation(Message):
    """A passage that an answer rests on, and the sentence of it that says so."""

    number: int
    """from 1; sentences name it"""
    chunk_id: str
    document_id: str
    version: int
    """of the document, live when this was answered"""
    title: str
    filename: str
    section: str
    heading: str
    quote: str
    """the sentence, word for word"""
    span: Span
    """of the quote in the document's extracted text"""
    passage: Span
    """of the whole passage"""
    valid_from: datetime | None
    """in force from; null: ever since"""
    valid_to: datetime | None
    """in force until, not included; null: open"""
    url: str | None
    """path of the page that shows it with the sentence marked; null where there is no text around
    the passage"""


class Conversation(Message):
    """What was asked under one `thread_id`."""

    thread_id: str
    created_at: float
    asked_at: float
    turns: list[TurnMessage]
    """oldest first, the newest 20"""


class DeadLetter(Message):
    """A document that failed for good."""

    document_id: str
    version: int
    collection: str
    tenant: str
    name: str
    live_version: int | None
    """an older version that searches still see"""
    step: str | None
    """where it failed"""
    attempts: int
    """of that step"""
    crashes: int
    """attempts that ended with their worker"""
    submitted_at: float
    failed_at: float
    error: FailureMessage


class DeadLetters(Message):
    """Documents whose newest version failed, the latest first."""

    dead_letters: list[DeadLetter]
    next_after: str | None
    """send as `after` for the next page"""


class Deliveries(Message):
    """A page of a webhook's deliveries, newest events first."""

    deliveries: list[Delivery]
    next_before: int | None
    """send as `before` for the next page"""


class Document(Message):
    """A document with its newest version and that version's steps."""

    document_id: str
    collection: str
    tenant: str
    name: str
    parent: str | None
    """id of the document that it came within, such as a mail"""
    title: str
    filename: str
    size: int
    sha256: str
    version: int
    live_version: int | None
    """what searches see; null where nothing is live yet"""
    state: Literal["waiting", "working", "stalled", "live", "failed", "deleted"] | str
    """waiting: for a free worker; stalled: nobody has it until the next sweep"""
    created_at: float
    submitted_at: float
    finished_at: float | None
    properties: dict[str, Any]
    steps: list[StepMessage]
    error: FailureMessage | None
    receipt: dict[str, dict[str, int]] | None
    """after a deletion: objects in each store before and after"""


class Documents(Message):
    """A page of documents, newest first."""

    documents: list[Document]
    states: dict[str, int]
    """documents of the collection by ledger state"""
    next_before: float | None
    """send as `before` for the next page"""


class Facet(Message):
    """A facet of a collection and its last rebuild."""

    name: str
    run: str
    began_at: float
    ended_at: float | None
    """null while it is being rebuilt"""
    counts: dict[str, int]
    """`made`, `unchanged`, `gone`, `left_out`, and `values` in all"""
    calibration: dict[str, float] | None
    """of the weights (docs/facets.md); null where no value can be told from another"""
    error: FailureMessage | None
    values: list[FacetValue]


class FacetProposals(Message):
    """What could be facets, the best first."""

    properties: list[ProposedProperty]
    clusters: list[ProposedCluster]
    sampled: int


class Facets(Message):
    """The facets of a collection, by name."""

    facets: list[Facet]


class Hit(Message):
    """A passage with its place and the reasons for its rank."""

    rank: int
    score: float
    chunk_id: str
    document_id: str
    title: str
    filename: str
    section: str
    heading: str
    text: str
    span: Span
    lang: str
    properties: dict[str, Any]
    legs: Legs
    level: int
    """0: a document, 1: a section, 2: a passage"""
    parent_id: str | None
    """chunk id of the chunk that holds this one"""
    parent_of: str | None
    """chunk id of the hit that brought this parent; null for a hit of its own"""
    vector: list[float] | None
    """the vector that was searched, where `include_vector` asked for it"""
    reasons: Reasons | None = None
    """where `explain` asked for them"""


class Options(Message):
    """What a collection wants of reading JSON, of enrichment, and of searches."""

    entities: bool = True
    """find persons, organisations, places, laws, programmes"""
    dictionary: dict[str, list[str]] = {}
    """names of the collection's own, each with its aliases"""
    rules: list[Rule] = Field([], validate_default=True)
    """facets by name and content; the first that fits sets one"""
    scrub: Literal["entities", "text", "off"] | str = "entities"
    """leave e-mail addresses, phone, card and Korean resident numbers out of the entities, or mask
    them in all that is made of a document"""
    confirm: bool = False
    """ask the language model of the settings which entities are right"""
    ranking: Ranking = Field({}, validate_default=True)
    """how its hits are ranked"""
    json_fields: JsonFields = Field({}, validate_default=True)
    """which fields of JSON records are title, text and properties"""
    keep_queries: bool = False
    """keep the text of questions beside what is learned from them"""


class SearchResponse(Message):
    """The hits, best first, and how they were found."""

    trace_id: str
    """names the search in feedback and in `/debug/trace`"""
    collection: str
    query: str
    hits: list[Hit]
    alpha: float
    fusion: Literal["calibrated", "weighted", "rrf", "native"] | str
    as_of: TimeClamp
    cut: bool
    """true where `top` was left out and there may be more hits than are given"""
    candidates: int
    """distinct chunks that the legs found together"""
    hotset: bool = False
    """true where the hits are passages that helped with nearly this question, and nothing else was
    searched (`search.hotset`)"""
    partial: bool
    """true where a leg, or the reranker, was left out because it did not answer"""
    left_out: dict[str, str]
    """`vector`, `keyword` or `rerank` to the reason"""
    timings: dict[str, float]
    """milliseconds per stage, measured in the worker"""


class UsageMessage(Message):
    """What language models have used for answers."""

    collection: str | None
    """null: of all together"""
    tenant: str
    """empty: of all together"""
    days: int
    usage: list[UsedOnDay]
    """by day, the newest first, and model"""
    total: Used
    today: Today | None
    """null unless one place is named: a tenant, or a collection without tenants"""


class Answer(Message):
    """An answer with what supports it, or why there is none."""

    trace_id: str
    """names it in feedback and in `/debug/trace`"""
    collection: str
    thread_id: str | None
    question: str
    understood: str
    """the question as it was searched, by itself"""
    answered: bool
    """false: not in these documents, see `nearest`"""
    text: str
    sentences: list[AnswerSentence]
    citations: list[Citation]
    nearest: list[Citation]
    """passages that came near, where nothing answered"""
    written_by: Literal["extracts", "model"] | str
    """extracts: sentences of the documents; model: the language model"""
    model_left_out: str | None
    """why the language model did not write, where one is set up"""
    verdict: Verdict
    attempts: list[Attempt]
    """in their order; the last one is what was answered"""
    as_of: TimeClamp
    partial: bool
    """true where a leg of the search did not answer"""
    usage: Usage
    timings: dict[str, float]
    """milliseconds by node, all attempts together"""


class Batch(Message):
    """How far documents that were sent together are."""

    batch_id: str
    created_at: float
    started_at: float | None
    """when the first was submitted"""
    expected: int | None
    submitted: int
    unchanged: int
    """of these, those whose content was there already"""
    states: dict[str, int]
    """documents by state"""
    left: int
    """not done yet, of the expected ones where that is known"""
    seconds: float | None
    """since the first submission; until the end if over"""
    documents_per_minute: float | None
    """that went live, over the last five minutes; null where none did"""
    chunks_per_minute: float | None
    seconds_left: float | None
    """at the pace of these minutes; null while nobody can say"""
    failures: list[BatchDocument]
    """the first of those that failed"""


class Collection(Message):
    """Documents that are searched together."""

    name: str
    store: str
    embedder: str
    dimension: int
    metric: Literal["cosine", "dot", "l2-squared", "hamming", "manhattan"] | str
    vector_names: list[str]
    """of further vectors beside the default one"""
    tenants: bool
    analyzer: str
    options: Options
    created_at: float
    documents: int
    """how many are live; rows of an attached table are not counted"""
    attached: AttachedTable | None = None
    """where it is a table that is only read (docs/cratedb-hybrid-search.md)"""


class Collections(Message):
    """Every collection, by name."""

    collections: list[Collection]

"""The hierarchy of the errors that Callslip raises deliberately.

    CallslipError
    ├── PermanentError              the same call will fail again: never retried
    │   ├── InvalidRequest          400  a value of the request is wrong
    │   │   ├── InvalidFilter
    │   │   ├── EmptyQuery
    │   │   ├── QueryTooLong
    │   │   ├── InvalidCorrection   of a chunk: empty, or longer than the embedder reads
    │   │   ├── MetricNotIndexed    too many chunks to compare one by one
    │   │   └── StoreCannot         this kind of store lacks the feature
    │   ├── KeyRefused              401  the server asks for a key
    │   ├── PermissionMissing       403  the key does not permit the request
    │   ├── NotFound                404
    │   │   ├── CollectionNotFound
    │   │   ├── TenantNotFound
    │   │   ├── VectorNotFound
    │   │   ├── ChunkNotFound       a passage of a document, to correct
    │   │   ├── DocumentNotFound
    │   │   ├── PageNotFound        a page of a PDF, to draw
    │   │   ├── DocumentTableNotFound  a table of a text, as CSV
    │   │   ├── SourceNotFound
    │   │   ├── TaskNotFound
    │   │   ├── BatchNotFound
    │   │   ├── WebhookNotFound
    │   │   ├── DeliveryNotFound
    │   │   ├── TraceNotFound
    │   │   ├── FeedbackNotFound
    │   │   ├── ProposalNotFound    of better weights or further facets
    │   │   ├── KeyNotFound
    │   │   ├── ThreadNotFound
    │   │   └── TableNotFound       a table or Chroma collection to attach, or an attached one
    │   ├── Conflict                409
    │   │   ├── CollectionExists
    │   │   ├── SourceExists
    │   │   ├── DuplicateContent
    │   │   ├── NameTaken           of a document that the caller may not read
    │   │   └── AttachedReadOnly    the collection is attached
    │   ├── PreconditionFailed      412  a document was changed meanwhile (If-Match)
    │   ├── DocumentError           422  this file cannot be divided into chunks
    │   │   ├── EmptyFile
    │   │   ├── FileTooLarge        413
    │   │   ├── UnsupportedType     415
    │   │   ├── BrokenFile
    │   │   ├── NeedsPassword
    │   │   ├── NoTextLayer
    │   │   ├── NoText
    │   │   ├── GarbageText
    │   │   ├── ExtractionLimit
    │   │   ├── ObjectRefused       the store refuses one of its chunks
    │   │   └── WorkerLost          its worker died in each attempt
    │   ├── ManifestError           422  lines of a manifest are wrong or contradict each other
    │   ├── SourceError             422  a source, or a file of it, cannot be read
    │   │   ├── AddressNotAllowed   a URL leads to an address inside the network
    │   │   └── NothingListed       a listing is empty, which is more likely a mistake
    │   ├── EvaluationError             retrieval cannot be measured on this judged set
    │   │   └── JudgedSetError      its files are not in BEIR form
    │   ├── TuningError                 weights cannot be fitted, or a proposal is not applied
    │   │   ├── TooFewQuestions
    │   │   ├── NotBetter           the interval of its held-out gain includes 0
    │   │   └── GuardHolds          it may be worse after a correction of position bias
    │   ├── MoveError               a collection cannot be moved, and stays in its store
    │   │   ├── ArchiveError        the file is no complete and undamaged archive
    │   │   └── CopyDiffers         source and target of a move differ
    │   ├── BackupError                 a backup cannot be made or read
    │   ├── BadReply                502  a language model's reply is unusable; it has the usage
    │   ├── LedgerError             the ledger's database is damaged, or newer than this Callslip
    │   ├── SettingsError           a setting is wrong
    │   └── StartError              `callslip up` cannot start or continue
    └── TransientError              503  worth another try, with backoff
        ├── ServerDown
        ├── BrokerDown
        ├── StoreDown
        │   ├── KeywordsDown        the keyword index beside Chroma; vectors may answer alone
        │   │   └── KeywordsLost    its files are gone
        │   ├── StoreReadOnly
        │   ├── StoreNotAllowed     the store's user lacks a privilege
        │   ├── StoreTooOld         the server's version is not supported
        │   └── BatchInterrupted    only some objects were written; it lists them
        ├── FileMissing             the blob store lacks a file of a document
        ├── EmbedderDown
        ├── LanguageModelDown
        ├── RerankerDown            searches continue with the fused order
        ├── LayoutServerDown        the document is read when the server is back
        ├── SourceDown              a source does not answer
        ├── Overloaded
        │   ├── BacklogFull         429  too many documents wait
        │   ├── DiskFull            507  too little room for another document
        │   ├── FeedbackLimit       429  one user sent more feedback than the limit allows
        │   ├── ModelBudgetSpent    429  the language model's tokens of the day are used up
        │   └── TooManyRequests     429  a key's limit is used up, or wrong keys were sent
        ├── SearchTimeout           504
        ├── AnswerTimeout           504
        ├── WorkTimeout             504  no worker has done the work of a request in time
        └── LeaseLost               another worker has the lease of this step

Each class has a `slug` (stable: the problem's `type` and the ledger contain it), a `status` (over
HTTP) and a `hint` (what the user can do). The message names the wrong value; it never contains a
document's text. A TransientError has `retry_after`: the seconds until another try.
"""

from callslip.errors.base import CallslipError as CallslipError
from callslip.errors.base import InternalError as InternalError
from callslip.errors.base import PermanentError as PermanentError
from callslip.errors.base import TransientError as TransientError
from callslip.errors.contents import AddressNotAllowed as AddressNotAllowed
from callslip.errors.contents import BrokenFile as BrokenFile
from callslip.errors.contents import DocumentError as DocumentError
from callslip.errors.contents import EmptyFile as EmptyFile
from callslip.errors.contents import ExtractionLimit as ExtractionLimit
from callslip.errors.contents import FileTooLarge as FileTooLarge
from callslip.errors.contents import GarbageText as GarbageText
from callslip.errors.contents import ManifestError as ManifestError
from callslip.errors.contents import NeedsPassword as NeedsPassword
from callslip.errors.contents import NoText as NoText
from callslip.errors.contents import NoTextLayer as NoTextLayer
from callslip.errors.contents import NothingListed as NothingListed
from callslip.errors.contents import ObjectRefused as ObjectRefused
from callslip.errors.contents import SourceError as SourceError
from callslip.errors.contents import UnsupportedType as UnsupportedType
from callslip.errors.contents import WorkerLost as WorkerLost
from callslip.errors.operations import ArchiveError as ArchiveError
from callslip.errors.operations import BackupError as BackupError
from callslip.errors.operations import BadReply as BadReply
from callslip.errors.operations import CopyDiffers as CopyDiffers
from callslip.errors.operations import EvaluationError as EvaluationError
from callslip.errors.operations import GuardHolds as GuardHolds
from callslip.errors.operations import JudgedSetError as JudgedSetError
from callslip.errors.operations import LedgerError as LedgerError
from callslip.errors.operations import MoveError as MoveError
from callslip.errors.operations import NotBetter as NotBetter
from callslip.errors.operations import SettingsError as SettingsError
from callslip.errors.operations import StartError as StartError
from callslip.errors.operations import TooFewQuestions as TooFewQuestions
from callslip.errors.operations import TuningError as TuningError
from callslip.errors.passing import AnswerTimeout as AnswerTimeout
from callslip.errors.passing import BacklogFull as BacklogFull
from callslip.errors.passing import BatchInterrupted as BatchInterrupted
from callslip.errors.passing import BrokerDown as BrokerDown
from callslip.errors.passing import DiskFull as DiskFull
from callslip.errors.passing import EmbedderDown as EmbedderDown
from callslip.errors.passing import FeedbackLimit as FeedbackLimit
from callslip.errors.passing import FileMissing as FileMissing
from callslip.errors.passing import KeywordsDown as KeywordsDown
from callslip.errors.passing import KeywordsLost as KeywordsLost
from callslip.errors.passing import LanguageModelDown as LanguageModelDown
from callslip.errors.passing import LayoutServerDown as LayoutServerDown
from callslip.errors.passing import LeaseLost as LeaseLost
from callslip.errors.passing import ModelBudgetSpent as ModelBudgetSpent
from callslip.errors.passing import Overloaded as Overloaded
from callslip.errors.passing import RerankerDown as RerankerDown
from callslip.errors.passing import SearchTimeout as SearchTimeout
from callslip.errors.passing import ServerDown as ServerDown
from callslip.errors.passing import SourceDown as SourceDown
from callslip.errors.passing import StoreDown as StoreDown
from callslip.errors.passing import StoreNotAllowed as StoreNotAllowed
from callslip.errors.passing import StoreReadOnly as StoreReadOnly
from callslip.errors.passing import StoreTooOld as StoreTooOld
from callslip.errors.passing import TooManyRequests as TooManyRequests
from callslip.errors.passing import WorkTimeout as WorkTimeout
from callslip.errors.requests import AttachedReadOnly as AttachedReadOnly
from callslip.errors.requests import BatchNotFound as BatchNotFound
from callslip.errors.requests import ChunkNotFound as ChunkNotFound
from callslip.errors.requests import CollectionExists as CollectionExists
from callslip.errors.requests import CollectionNotFound as CollectionNotFound
from callslip.errors.requests import Conflict as Conflict
from callslip.errors.requests import DeliveryNotFound as DeliveryNotFound
from callslip.errors.requests import DocumentNotFound as DocumentNotFound
from callslip.errors.requests import DocumentTableNotFound as DocumentTableNotFound
from callslip.errors.requests import DuplicateContent as DuplicateContent
from callslip.errors.requests import EmptyQuery as EmptyQuery
from callslip.errors.requests import FeedbackNotFound as FeedbackNotFound
from callslip.errors.requests import InvalidCorrection as InvalidCorrection
from callslip.errors.requests import InvalidFilter as InvalidFilter
from callslip.errors.requests import InvalidRequest as InvalidRequest
from callslip.errors.requests import KeyNotFound as KeyNotFound
from callslip.errors.requests import KeyRefused as KeyRefused
from callslip.errors.requests import MetricNotIndexed as MetricNotIndexed
from callslip.errors.requests import NameTaken as NameTaken
from callslip.errors.requests import NotFound as NotFound
from callslip.errors.requests import PageNotFound as PageNotFound
from callslip.errors.requests import PermissionMissing as PermissionMissing
from callslip.errors.requests import PreconditionFailed as PreconditionFailed
from callslip.errors.requests import ProposalNotFound as ProposalNotFound
from callslip.errors.requests import QueryTooLong as QueryTooLong
from callslip.errors.requests import SourceExists as SourceExists
from callslip.errors.requests import SourceNotFound as SourceNotFound
from callslip.errors.requests import StoreCannot as StoreCannot
from callslip.errors.requests import TableNotFound as TableNotFound
from callslip.errors.requests import TaskNotFound as TaskNotFound
from callslip.errors.requests import TenantNotFound as TenantNotFound
from callslip.errors.requests import ThreadNotFound as ThreadNotFound
from callslip.errors.requests import TraceNotFound as TraceNotFound
from callslip.errors.requests import VectorNotFound as VectorNotFound
from callslip.errors.requests import WebhookNotFound as WebhookNotFound


def _walk(cls: type[CallslipError]) -> dict[str, type[CallslipError]]:
    classes = {cls.slug: cls}
    for child in cls.__subclasses__():
        classes |= _walk(child)
    return classes


BY_SLUG: dict[str, type[CallslipError]] = _walk(CallslipError)
"""The class of each slug: queues and the ledger carry an error as (slug, detail, advice)."""

DeskDown = ServerDown
"""The name of ServerDown in programs that were written for version 0.1."""

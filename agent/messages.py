"""The agent's request and response, in HTTP and in the queue."""

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from callslip.messages.answers import Action as Action
from callslip.messages.answers import Answer as Answer
from callslip.messages.answers import AnswerSentence as AnswerSentence
from callslip.messages.answers import Attempt as Attempt
from callslip.messages.answers import Citation as Citation
from callslip.messages.answers import Conversation as Conversation
from callslip.messages.answers import NodeMessage as NodeMessage
from callslip.messages.answers import Reason as Reason
from callslip.messages.answers import RecordedAnswer as RecordedAnswer
from callslip.messages.answers import RecordedCitation as RecordedCitation
from callslip.messages.answers import RecordedSentence as RecordedSentence
from callslip.messages.answers import SentenceMessage as SentenceMessage
from callslip.messages.answers import Source as Source
from callslip.messages.answers import TurnMessage as TurnMessage
from callslip.messages.answers import Usage as Usage
from callslip.messages.answers import Verdict as Verdict
from callslip.models.text.normalization import normal_question
from callslip.retrieval.messages import Moment, Text
from callslip.stores.naming import Tenant
from callslip.stores.properties.filters import is_unicode
from callslip.vocabulary import THREAD

ThreadId = Annotated[str, Field(pattern=THREAD)]


def _asks(question: str) -> str:
    if not is_unicode(question):
        raise ValueError("is not valid Unicode")
    if not any(map(str.isalnum, question)):
        raise ValueError("has no letter or digit")
    return normal_question(question)


class AnswerRequest(BaseModel):
    """A question to answer from the documents of a collection."""

    model_config = ConfigDict(extra="forbid")

    collection: Text = Field(description="the collection to answer from")
    question: Annotated[str, AfterValidator(_asks)] = Field(
        min_length=1, description="in English or Korean", examples=["how long is parental leave?"]
    )
    tenant: Tenant | None = Field(None, description="whose documents; of a collection with tenants")
    thread_id: ThreadId | None = Field(
        None,
        description="names a conversation: a question that leans on earlier ones, as `and for"
        " twins?`, is understood by those that were answered",
    )
    user: str = Field(
        "",
        max_length=128,
        pattern=r"^[^\x00]*$",
        description="any name of who asks: an answer teaches memory once another asker's answer"
        " agrees; all questions without a name count as one asker's; on a server with keys the"
        " caller asks, and only one with the permission `delegate` may name another",
    )
    as_of: Moment | None = Field(
        None,
        description="only what is in force then, as in a search",
        examples=["2020-03-31"],
    )
    having_all: dict[str, Any] | None = Field(
        None, description="conditions on passages that must all hold, as in a search"
    )
    having_any: dict[str, Any] | None = Field(
        None, description="conditions of which at least one must hold"
    )
    model: bool = Field(
        True,
        description="whether the language model writes, where one is set up; false: sentences of"
        " the documents",
    )

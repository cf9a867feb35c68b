"""/v1/answer and /v1/conversations: questions to the agent."""

import threading
from collections.abc import Callable, Iterator
from typing import TypeVar

from flask import Response, request
from flask_openapi3 import APIBlueprint, Tag
from pydantic import BaseModel, Field

from agent.messages import Answer, AnswerRequest, Conversation, NodeMessage, ThreadId
from api.answers import answer
from api.events import HEADERS, Places
from api.messages import OfTenant, Request
from callslip.errors import CallslipError, Overloaded
from config import get_settings
from retrieval.plan import check_query
from stores import naming
from stores.filters import parse
from tasks import answer as tasks
from tasks.process import ledger

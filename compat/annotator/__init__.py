"""The Document Retriever of DeepPavlov Dream, with its document processor and its file server.

docs/compat-annotator.md says what differs from the original.
"""

from compat.annotator.dialogs import Dialog, answers
from compat.annotator.folder import Folder
from compat.annotator.links import Links, links
from compat.annotator.processor import process
from compat.annotator.retriever import candidates, vectorize

__all__ = ["Dialog", "Folder", "Links", "answers", "candidates", "links", "process", "vectorize"]

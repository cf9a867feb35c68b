"""The Document Retriever of DeepPavlov Dream, with its document processor and its file server.

docs/compat-annotator.md lists the differences from the original.
"""

from callslip.compat.annotator.dialogs import Dialog, answers
from callslip.compat.annotator.folder import Folder
from callslip.compat.annotator.links import Links, links
from callslip.compat.annotator.processor import process
from callslip.compat.annotator.retriever import candidates, vectorize

__all__ = ["Dialog", "Folder", "Links", "answers", "candidates", "links", "process", "vectorize"]

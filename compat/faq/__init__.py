"""`VectorSearch` over collections of an FAQ, in whichever store they are.

docs/compat-faq.md says what differs from the original.
"""

from compat.faq.vector_search import VectorSearch

__all__ = ["VectorSearch"]

"""`VectorSearch` over collections of an FAQ, in any store.

docs/compat-faq.md lists the differences from the original.
"""

from callslip.compat.faq.vector_search import VectorSearch

__all__ = ["VectorSearch"]

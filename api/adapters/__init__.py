"""Endpoints of other systems: the Document Retriever, FAQ, the Genie Flow invokers."""

"""Sources of documents (a URL, a folder, a bucket), and the detection of changes in them."""

from callslip.ingestion.sources.registry import open_origin, source_url
from callslip.ingestion.sources.sync import SOURCE, Crawl, sync

__all__ = ["SOURCE", "Crawl", "open_origin", "source_url", "sync"]

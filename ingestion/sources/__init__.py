"""Where documents are fetched from: a URL, a folder, a bucket; and what changed there since."""

from ingestion.sources.places import open_place, source_url
from ingestion.sources.sync import SOURCE, Crawl, sync

__all__ = ["SOURCE", "Crawl", "open_place", "source_url", "sync"]

"""Where documents are fetched from: a URL, a folder, a bucket; and what changed there since."""

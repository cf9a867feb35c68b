"""Plain text, in whatever encoding it comes."""

from config.settings import ExtractSettings
from ingestion.extract.decode import decode
from ingestion.parts import ExtractedText


def read(data: bytes, limits: ExtractSettings) -> ExtractedText:
    """Decode it; the lines are left as they are."""
    decoded = decode(data)
    return ExtractedText(decoded.text, "text/plain", warnings=decoded.warnings)

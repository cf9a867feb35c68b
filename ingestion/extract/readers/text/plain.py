"""Plain text in any encoding."""

from callslip.config.settings import ExtractSettings
from callslip.ingestion.extract.decode import decode
from callslip.ingestion.values import ExtractedText


def read(data: bytes, limits: ExtractSettings) -> ExtractedText:
    """Decode the text; the lines stay unchanged."""
    decoded = decode(data)
    return ExtractedText(decoded.text, "text/plain", warnings=decoded.warnings)

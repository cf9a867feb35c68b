"""CSV with any common delimiter: a table with a row on each line."""

import csv
import io

from callslip.config.settings import ExtractSettings
from callslip.ingestion.extract.composer import Composer
from callslip.ingestion.extract.decode import decode
from callslip.ingestion.extract.sniff import CSV
from callslip.ingestion.values import ExtractedText

_DELIMITERS = ",;\t|"
_SAMPLE = 8_192


def read(data: bytes, limits: ExtractSettings) -> ExtractedText:
    """Read a single table; the delimiter is detected by the content."""
    decoded = decode(data)
    composer = Composer(limits)
    csv.field_size_limit(limits.max_chars)
    rows = csv.reader(io.StringIO(decoded.text, newline=""), _dialect(decoded.text[:_SAMPLE]))
    composer.table(rows)
    return composer.text(CSV, warnings=decoded.warnings)


def _dialect(sample: str) -> type[csv.Dialect]:
    try:
        return csv.Sniffer().sniff(sample, _DELIMITERS)
    except csv.Error:  # a single column
        return csv.excel

"""Counts the parts of a package, such as a DOCX, that a reader leaves out."""

import re
import zipfile
from collections import Counter
from collections.abc import Mapping


def parts_left_out(
    archive: zipfile.ZipFile,
    kinds: Mapping[str, str],
    marks: Mapping[str, tuple[str, bytes]] | None = None,
) -> Counter[str]:
    """Count the files of a package by the kinds whose pattern their names match.

    A kind of `marks` counts instead how often its second pattern is in such files.
    """
    counts: Counter[str] = Counter()
    for name in archive.namelist():
        for kind, pattern in kinds.items():
            counts[kind] += bool(re.match(pattern, name))
        for kind, (pattern, mark) in (marks or {}).items():
            if re.match(pattern, name):
                counts[kind] += len(re.findall(mark, archive.read(name)))
    return counts

"""The lines of a text with their offsets."""

from bisect import bisect_right

from callslip.ingestion.extract.cuts import Cut


class Lines:
    """The lines of a text with the offset of each."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.all = text.split("\n")
        self.starts = [0]
        for line in self.all:
            self.starts.append(self.starts[-1] + len(line) + 1)

    def __len__(self) -> int:
        return len(self.all)

    def at(self, offset: int) -> int:
        """The number, from 0, of the line that has this offset of the text."""
        return bisect_right(self.starts, offset) - 1

    def between(self, start: int, end: int) -> range:
        """The numbers of the lines of a span."""
        return range(self.at(start), self.at(max(start, end - 1)) + 1)

    def cut(self, first: int, after: int, instead: str = "") -> Cut:
        """A cut of whole lines."""
        return Cut(self.starts[first], min(self.starts[after], len(self.text)), instead)

    def blank(self, at: int) -> bool:
        """Whether line `at` is blank; true also before the first line and after the last."""
        return not (0 <= at < len(self.all)) or not self.all[at].strip()

    def indent(self, at: int) -> int:
        """Return the indentation of line `at`, which must not be blank."""
        return len(self.all[at]) - len(self.all[at].lstrip())

    def end(self, at: int) -> int:
        """Return the offset of the end of line `at`, before its line break."""
        return self.starts[at] + len(self.all[at])

    def after_blank(self, at: int) -> int:
        """Return the first line from `at` on that is not blank, or the number of lines."""
        while at < len(self.all) and self.blank(at):
            at += 1
        return at

    def after_indented(self, at: int) -> int:
        """Return the index after the last line that is indented deeper than line `at`."""
        margin, after = self.indent(at), at + 1
        for i in range(at + 1, len(self.all)):
            if self.blank(i):
                continue
            if self.indent(i) <= margin:
                break
            after = i + 1
        return after

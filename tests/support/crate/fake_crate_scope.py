"""What expressions mean in the fake CrateDB, row by row, and which rows a condition leaves."""

import functools
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
from fake_crate_parse import Node, Refused, Statement
from fake_crate_tables import Path, Row, Table, cast, spelled, sql_error

MAX_CLAUSES = 8192
MAX_EFFORT = 100_000
MAX_TOKEN = 255

Rows = list[list[Any]]
Value = Callable[[Row], Any]
"""What an expression gives for a row; None is SQL's NULL."""


class Scope:
    """What the names in an expression stand for: a table's columns, or a query's items."""

    def __init__(
        self, table: Table | None, args: Sequence[Any], names: set[str] | None = None
    ) -> None:
        self._table, self._args, self._names = table, args, names or set()

    def rows(self, where: Node | None) -> list[Row]:
        """The rows that match: as written where the whole key is named, else as refreshed."""
        table = self._table
        assert table is not None
        if where is None:
            return [{**row} for row in table.seen.values()]
        parts = where.inner if where.kind == "AND" else (where,)
        if key := self._key(parts):
            row = table.live.get(key)
            return [row] if row else []
        if self._args and any(part.kind == "literal" for part in parts):
            what = "The assembled list of ParameterSymbols is invalid. Missing parameters."
            raise Refused(f"IllegalStateException[{what}]", 5000, 500)
        candidates = {key: {**row, "_score": 0.0} for key, row in table.seen.items()}
        rest = []
        for part in parts:
            if part.kind == "MATCH":
                candidates = self._match(part, candidates)
            elif part.kind == "call" and part.value == "KNN_MATCH":
                candidates = self._knn(part, candidates)
            else:
                rest.append(part)
        if sum(_clauses(part) for part in rest) > MAX_CLAUSES:
            raise Refused(f"TooManyClauses[maxClauseCount is set to {MAX_CLAUSES}]", 5000, 500)
        tests = [self.compile(part) for part in rest]
        kept = [row for row in candidates.values() if all(test(row) is True for test in tests)]
        for row in kept:  # each further clause adds to the score
            row["_score"] = float(np.float32(row["_score"] + 1.0 * len(rest)))
        return kept

    def compile(self, node: Node) -> Value:
        """Make a function of an expression; what the server would refuse is refused now."""
        compiler = getattr(self, f"_on_{_METHODS.get(node.kind, node.kind)}", None)
        if compiler is None:
            raise Refused(f"UnsupportedFeatureException[{node.kind}]", 4004)
        made: Value = compiler(node)
        return made

    def _on_column(self, node: Node) -> Value:
        path: Path = node.value
        if node.inner:
            path = (f"{path[0]}.{path[1]}", *path[2:])
        if self._table is None:
            if path[0] not in self._names:
                raise Refused(f"ColumnUnknownException[Column {path[0]} unknown]", 4043, 404)
        elif path != ("_score",):
            self._table.type_of(path)
        if len(path) == 1:
            name = path[0]
            return lambda row: row.get(name)

        def deep(row: Row) -> Any:
            value: Any = row
            for part in path:
                value = value.get(part) if isinstance(value, dict) else None
            return value

        return deep

    def _on_literal(self, node: Node) -> Value:
        return lambda _: node.value

    def _on_parameter(self, node: Node) -> Value:
        value = self._args[node.value]
        return lambda _: value

    def _on_and(self, node: Node) -> Value:
        parts = [self.compile(part) for part in node.inner]

        def every(row: Row) -> Any:
            values = [part(row) for part in parts]
            return False if False in values else None if None in values else True

        return every

    def _on_or(self, node: Node) -> Value:
        parts = [self.compile(part) for part in node.inner]

        def some(row: Row) -> Any:
            values = [part(row) for part in parts]
            return True if True in values else None if None in values else False

        return some

    def _on_not(self, node: Node) -> Value:
        inner = self.compile(node.inner[0])
        return lambda row: None if (value := inner(row)) is None else not value

    def _on_null(self, node: Node) -> Value:
        inner = self.compile(node.inner[0])
        return lambda row: inner(row) is None

    def _on_not_null(self, node: Node) -> Value:
        inner = self.compile(node.inner[0])
        return lambda row: inner(row) is not None

    def _on_compare(self, node: Node) -> Value:
        left, right = self._alike(*node.inner)
        return _strict(left, right, _COMPARISONS[node.value])

    def _on_any(self, node: Node) -> Value:
        one, many = node.inner
        if many.kind in ("?", "listed"):
            type_ = self._type(one)
            if many.kind == "listed":
                type_, (many,) = {"type": many.value["of"]}, many.inner
            elif type_["type"] == "undefined":  # CrateDB 6.3 compares nothing, without an error
                return lambda _: None
            if not isinstance(self._args[many.value], list):
                raise sql_error("Cannot cast to an array")
            values = [cast(type_, member) for member in self._args[many.value]]
            probe = self.compile(one)
            return lambda row: None if (v := probe(row)) is None else _among(v, values)
        type_ = self._type(many)
        if type_["type"] not in ("array", "undefined"):
            raise Refused("UnsupportedFunctionException[Unknown function: any]", 4004)
        value = constant(one, self._args)
        value = cast({"type": type_["of"]}, value) if "of" in type_ else value
        members = self.compile(many)
        return lambda row: None if (held := members(row)) is None else _among(value, held)

    def _on_like(self, node: Node) -> Value:
        text = self.compile(node.inner[0])
        pattern = constant(node.inner[1], self._args)
        _check_pattern(pattern)
        regex = re.compile(_like(pattern), re.DOTALL)

        def test(row: Row) -> Any:
            value = text(row)
            return None if value is None else regex.fullmatch(str(value)) is not None

        return test

    def _on_sum(self, node: Node) -> Value:
        left, right = (self.compile(part) for part in node.inner)
        return _strict(left, right, lambda a, b: a + b)

    def _on_quotient(self, node: Node) -> Value:
        left, right = (self.compile(part) for part in node.inner)
        return _strict(left, right, lambda a, b: a / b)

    def _on_call(self, node: Node) -> Value:
        if node.value == "VECTOR_SIMILARITY":
            column, vector = node.inner
            query = self._vector(column.value, constant(vector, self._args))
            held = self.compile(column)
            return lambda row: None if (v := held(row)) is None else _similarity(v, query)
        inner = [self.compile(part) for part in node.inner]
        if node.value == "COALESCE":
            return lambda row: next((v for part in inner if (v := part(row)) is not None), None)
        if node.value == "CONCAT":  # of nothing is nothing, not NULL
            return lambda row: "".join(part(row) or "" for part in inner)
        if node.value == "TRUNC" and len(inner) == 2:
            return _strict(inner[0], inner[1], lambda v, d: math.trunc(v * 10**d) / 10**d)
        raise Refused(f"UnsupportedFunctionException[Unknown function: {node.value}]", 4004)

    def _on_cast(self, node: Node) -> Value:
        inner, (name, type_) = self.compile(node.inner[0]), node.value
        if (name, type_) == ("CAST", "double precision"):
            return lambda row: None if (v := inner(row)) is None else float(v)
        if (name, type_) == ("TRY_CAST", "timestamp with time zone"):
            return lambda row: None if (v := inner(row)) is None else _milliseconds(v)
        raise Refused(f"UnsupportedFeatureException[{name} to {type_}]", 4004)

    def _type(self, node: Node) -> Any:
        if self._table is None or node.kind != "column" or node.value == ("_score",):
            return {"type": "undefined"}
        return self._table.type_of(node.value)

    def _alike(self, left: Node, right: Node) -> tuple[Value, Value]:
        """Both sides, a parameter as the other side's type."""
        made = []
        for one, other in ((left, right), (right, left)):
            if one.kind == "?":
                value = cast(self._type(other), self._args[one.value])
                made.append(lambda _, value=value: value)
            else:
                made.append(self.compile(one))
        return made[0], made[1]

    def _key(self, parts: Sequence[Node]) -> tuple[Any, ...] | None:
        assert self._table is not None
        named = {
            part.inner[0].value[0]: constant(part.inner[1], self._args)
            for part in parts
            if part.kind == "COMPARE"
            and part.value == "="
            and part.inner[1].kind == "?"
            and part.inner[0].kind == "column"
        }
        keys = self._table.keys
        if len(parts) == len(named) == len(keys) and set(named) == set(keys):
            return tuple(cast(self._table.type_of((name,)), named[name]) for name in keys)
        return None

    def _vector(self, path: Path, given: Any) -> Any:
        assert self._table is not None
        type_ = self._table.type_of(path)
        if type_["type"] != "float_vector":
            raise Refused("UnsupportedFunctionException[Invalid arguments]", 4004)
        vector = cast(type_, given)
        if len(vector) != type_["length"]:
            what = f"vector query dimension: {len(vector)} differs from field dimension"
            raise sql_error(f"{what}: {type_['length']}")
        return vector

    def _knn(self, part: Node, candidates: dict[Any, Row]) -> dict[Any, Row]:
        """The k nearest of all rows that queries see; other conditions come after."""
        assert self._table is not None
        column, vector, count = part.inner
        k = constant(count, self._args)
        if not isinstance(k, int) or k < 1:
            raise sql_error(f"k must be at least 1, got: {k}")
        query, name = self._vector(column.value, constant(vector, self._args)), column.value[0]
        held = {
            key: _similarity(row[name], query)
            for key, row in self._table.seen.items()
            if row.get(name) is not None
        }
        near = sorted(held, key=lambda key: -held[key])[:k]
        return {
            key: {**candidates[key], "_score": candidates[key]["_score"] + held[key]}
            for key in near
            if key in candidates
        }

    def _match(self, part: Node, candidates: dict[Any, Row]) -> dict[Any, Row]:
        assert self._table is not None
        text = str(constant(part.inner[0], self._args))
        best: dict[Any, float] = {}
        for path, boost in part.value:
            for key, score in self._scores(path, text).items():
                best[key] = max(best.get(key, 0.0), float(np.float32(score * boost)))
        return {
            key: {**candidates[key], "_score": candidates[key]["_score"] + added}
            for key, added in best.items()
            if key in candidates
        }

    def _scores(self, path: Path, text: str) -> dict[Any, float]:
        """BM25 of the rows in one column."""
        assert self._table is not None
        type_ = self._table.type_of(path)
        if "analyzer" not in type_:
            what = f"Cannot use MATCH on column {spelled(path)} without a fulltext index"
            raise Refused(f"UnsupportedFeatureException[{what}]", 4004)
        if type_["analyzer"] not in ANALYZERS:
            raise Refused("UnsupportedFeatureException[the fake knows two analyzers]", 4004)
        analyze = ANALYZERS[type_["analyzer"]]
        query = analyze(text)
        if len(query) > MAX_CLAUSES:
            raise Refused(f"TooManyClauses[maxClauseCount is set to {MAX_CLAUSES}]", 5000, 500)
        return bm25(_postings(self._table, path[0], analyze, self._table.version), query)


_METHODS = {
    "?": "parameter",
    "AND": "and",
    "OR": "or",
    "NOT": "not",
    "NULL": "null",
    "NOT NULL": "not_null",
    "COMPARE": "compare",
    "ANY": "any",
    "CAST": "cast",
    "LIKE": "like",
    "+": "sum",
    "/": "quotient",
}

_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "=": lambda a, b: bool(a == b),
    "<>": lambda a, b: bool(a != b),
    "<": lambda a, b: bool(a < b),
    "<=": lambda a, b: bool(a <= b),
    ">": lambda a, b: bool(a > b),
    ">=": lambda a, b: bool(a >= b),
}


def tokens(text: str) -> list[str]:
    """What the `whitespace` analyzer makes of a text: Java's white space, 255 characters a word."""
    words = re.split(
        "[\t-\r\x1c-\x1f \u1680\u2000-\u2006\u2008-\u200a\u2028\u2029\u205f\u3000]", text
    )
    cut = (word[at : at + MAX_TOKEN] for word in words for at in range(0, len(word), MAX_TOKEN))
    return [word for word in cut if word]


def standard(text: str) -> list[str]:
    """What the `standard` analyzer makes of a text, as far as tests go: words in lower case."""
    return re.findall(r"\w+", text.lower())


ANALYZERS = {"whitespace": tokens, "standard": standard}

Postings = tuple[dict[str, dict[Any, int]], dict[Any, int]]


@functools.lru_cache(maxsize=64)
def _postings(
    table: Table, column: str, analyze: Callable[[str], list[str]], version: int
) -> Postings:
    """Rows by word with its count, and the lengths of all rows, as of one refresh."""
    by_word: dict[str, dict[Any, int]] = {}
    lengths = {}
    for key, row in table.seen.items():
        words = analyze(row.get(column) or "")
        if words:
            lengths[key] = len(words)
        for word, count in Counter(words).items():
            by_word.setdefault(word, {})[key] = count
    return by_word, lengths


def bm25(
    postings: Postings, query: Sequence[str], k1: float = 1.2, b: float = 0.75
) -> dict[Any, float]:
    """Lucene's BM25: without the constant factor k1 + 1."""
    by_word, lengths = postings
    mean = sum(lengths.values()) / max(len(lengths), 1)
    found: dict[Any, float] = {}
    for word, times in Counter(query).items():
        having = by_word.get(word, {})
        idf = math.log(1 + (len(lengths) - len(having) + 0.5) / (len(having) + 0.5))
        for key, count in having.items():
            norm = k1 * (1 - b + b * lengths[key] / mean)
            found[key] = found.get(key, 0.0) + times * idf * count / (count + norm)
    return found


@functools.total_ordering
class _Descending:
    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Descending) and bool(self.value == other.value)

    def __lt__(self, other: "_Descending") -> bool:
        return bool(other.value < self.value)

    def __hash__(self) -> int:
        return hash(self.value)


def ordering(scope: Scope, order: Iterable[tuple[Node, bool]]) -> Callable[[Row], tuple[Any, ...]]:
    parts = [(scope.compile(node), descending) for node, descending in order]
    return lambda row: tuple(_Descending(v(row)) if down else v(row) for v, down in parts)


def constant(node: Node, args: Sequence[Any]) -> Any:
    if node.kind == "?":
        return args[node.value]
    if node.kind == "literal":
        return node.value
    raise Refused("UnsupportedFeatureException[not a constant]", 4004)


def _strict(left: Value, right: Value, act: Callable[[Any, Any], Any]) -> Value:
    def run(row: Row) -> Any:
        a, b = left(row), right(row)
        return None if a is None or b is None else act(a, b)

    return run


def _among(value: Any, members: Any) -> bool:
    return any(type(value) is type(m) and value == m for m in members)


def _milliseconds(value: Any) -> int | None:
    try:
        moment = datetime.fromisoformat(str(value))
    except ValueError:
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return int(moment.timestamp() * 1000)


def _similarity(held: Any, query: Any) -> float:
    gap = held.astype(np.float64) - query
    return float(np.float32(1 / (1 + float(gap @ gap))))


def _like(pattern: str) -> str:
    parts = re.findall(r"\\.|.", pattern, re.DOTALL)
    signs = {"%": ".*", "_": "."}
    return "".join(signs.get(part) or re.escape(part[-1]) for part in parts)


def _check_pattern(pattern: str) -> None:
    """Lucene makes an automaton of a pattern, and gives up when its states hold too many others."""
    parts = re.findall(r"\\.|.", pattern, re.DOTALL)

    def closed(states: Iterable[int]) -> frozenset[int]:
        found = set(states)
        for state in sorted(found):
            while state < len(parts) and parts[state] == "%":
                state += 1
                found.add(state)
        return frozenset(found)

    effort, waiting = 0, [closed([0])]
    known = set(waiting)
    while waiting:
        states = waiting.pop()
        effort += len(states)
        if effort > MAX_EFFORT:
            what = "Determinizing automaton would require more than 10000 effort."
            raise Refused(f"TooComplexToDeterminizeException[{what}]", 5000, 500)
        looping = {s for s in states if s < len(parts) and parts[s] == "%"}
        for sign in {parts[s] for s in states if s < len(parts)}:
            stepped = {s + 1 for s in states if s < len(parts) and parts[s] in (sign, "_")}
            reached = closed(looping | (stepped if sign != "%" else set()))
            if reached and reached not in known:
                known.add(reached)
                waiting.append(reached)


def _clauses(node: Node) -> int:
    return 1 + sum(_clauses(inner) for inner in node.inner)


def check_arguments(statement: Statement, args: Sequence[Any]) -> None:
    if statement.parameters > len(args):
        what = f"The query contains a parameter placeholder ${statement.parameters}"
        raise sql_error(f"{what}, but there are only {len(args)} parameter values")

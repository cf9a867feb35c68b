"""The fake CrateDB's answers: statements run over the tables."""

import functools
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from fake_crate_parse import Node, Refused, Statement, parse
from fake_crate_tables import Path, Row, Table, cast, spelled, sql_error

MAX_CLAUSES = 8192
MAX_EFFORT = 100_000
MAX_TOKEN = 255

Rows = list[list[Any]]
Value = Callable[[Row], Any]
"""What an expression gives for a row; None is SQL's NULL."""

_INDEXED = ("text", "double precision", "bigint", "boolean", "timestamp with time zone")


class Cluster:
    """All tables, and the statements that work on them."""

    def __init__(self) -> None:
        self.tables: dict[tuple[str, str], Table] = {}

    def run(self, text: str, args: Sequence[Any]) -> tuple[Rows, int]:
        """Run a statement; its rows and how many it gave or changed."""
        statement = parse(text)
        _check_arguments(statement, args)
        match statement.kind:
            case "SELECT":
                rows = self._select(statement.parts, args)
                return rows, len(rows)
            case "INSERT INTO":
                return [], self._insert(statement, args)
            case "DELETE FROM":
                return [], self._delete(statement, args)
            case "REFRESH TABLE":
                for table in [self._table(name) for name in statement["tables"]]:
                    table.refresh()
                return [], len(statement["tables"])
            case "CREATE TABLE":
                return [], self._create(statement)
            case "DROP TABLE":
                return [], self._drop(statement)
        table = self._table(statement["table"])
        if statement["added"]:
            table.add_columns(statement["added"])
        else:
            table.settings |= statement["settings"]
        return [], -1

    def run_many(self, text: str, rows: Sequence[Sequence[Any]]) -> list[dict[str, Any]]:
        """Run a statement once for each row: a row that is refused is so alone.

        What cannot be cast, or has too few values, is refused before any row is written.
        """
        statement = parse(text)
        if statement.kind != "INSERT INTO":
            raise Refused("UnsupportedFeatureException[Bulk arguments are not supported]", 4004)
        table = self._table(statement["table"])
        table.allow("INSERT")
        values = [self._values(statement, table, row) for row in rows]
        results: list[dict[str, Any]] = []
        named = 0
        for row in values:
            try:
                count = table.write(statement["columns"], row, statement["conflict"])
                results.append({"rowcount": count})
            except Refused as error:
                named += 1
                why = {"error": {"code": error.code, "message": str(error)}} if named <= 10 else {}
                results.append({"rowcount": -2, **why})
        return results

    def _table(self, name: tuple[str, str]) -> Table:
        if name in self.tables:
            return self.tables[name]
        if name[0] not in {schema for schema, _ in self.tables}:
            raise Refused(f"SchemaUnknownException[Schema '{name[0]}' unknown]", 4045, 404)
        raise Refused(f"RelationUnknown[Relation '{'.'.join(name)}' unknown]", 4041, 404)

    def _create(self, statement: Statement) -> int:
        name = statement["table"]
        if name in self.tables:
            if statement["lenient"]:
                return 0
            what = f"Relation '{'.'.join(name)}' already exists."
            raise Refused(f"RelationAlreadyExists[{what}]", 4093, 409)
        made = Table(name, statement["columns"], statement["keys"], statement["settings"])
        self.tables[name] = made
        return 1

    def _drop(self, statement: Statement) -> int:
        name = statement["table"]
        if name not in self.tables and statement["lenient"]:
            return 0
        self._table(name).allow("DROP")
        del self.tables[name]
        return 1

    def _values(self, statement: Statement, table: Table, args: Sequence[Any]) -> list[Any]:
        _check_arguments(statement, args)
        given = [_constant(node, args) for node in statement["values"]]
        if len(given) != len(statement["columns"]):
            raise sql_error("Number of columns and values differ")
        return [table.cast(name, v) for name, v in zip(statement["columns"], given, strict=True)]

    def _insert(self, statement: Statement, args: Sequence[Any]) -> int:
        table = self._table(statement["table"])
        table.allow("INSERT")
        values = self._values(statement, table, args)
        return table.write(statement["columns"], values, statement["conflict"])

    def _delete(self, statement: Statement, args: Sequence[Any]) -> int:
        table = self._table(statement["table"])
        table.allow("DELETE")
        found = _Scope(table, args).rows(statement["where"])
        for row in found:
            table.live.pop(tuple(row[name] for name in table.keys), None)
        return len(found)

    # Queries

    def _select(self, query: dict[str, Any], args: Sequence[Any]) -> Rows:
        return [list(row.values()) for row in self._named(query, args)]

    def _named(self, query: dict[str, Any], args: Sequence[Any]) -> list[Row]:
        """The rows of a query by the names of its items, or their places where they have none."""
        scope, rows = self._source(query, args)
        items = query["items"]
        names = [name or f"#{at}" for at, (name, _) in enumerate(items)]
        names = [f"{n}#{at}" if n in names[:at] else n for at, n in enumerate(names)]
        if query["group"] or any(node.kind == "COUNT" for _, node in items):
            return _grouped(scope, query, rows, names)
        given = [self._item(scope, node, rows) for _, node in items]
        results = [dict(zip(names, values, strict=True)) for values in zip(*given, strict=True)]
        if query["order"]:
            inner = _Scope(None, args, set(names))
            paired = [{**row, **result} for row, result in zip(rows, results, strict=True)]
            order = _ordering(inner, query["order"])
            at = sorted(range(len(results)), key=lambda i: order(paired[i]))
            results = [results[i] for i in at]
        limit = None if query["limit"] is None else _constant(query["limit"], args)
        return results[:limit]

    def _item(self, scope: "_Scope", node: Node, rows: list[Row]) -> list[Any]:
        if node.kind != "RANK":
            value = scope.compile(node)
            return [value(row) for row in rows]
        order = _ordering(scope, node.value)
        keys = [order(row) for row in rows]
        ordered = sorted(keys)
        first = {}
        for place, key in enumerate(ordered, 1):
            first.setdefault(key, place)
        return [first[key] for key in keys]

    def _source(self, query: dict[str, Any], args: Sequence[Any]) -> tuple["_Scope", list[Row]]:
        source = query["source"]
        if source is None:
            return _Scope(None, args), [{}]
        if source[0] == "derived":
            rows = self._named(source[2], args)
            return _Scope(None, args, _names(source[2])), rows
        if source[0] == "join":
            return self._joined(source, args)
        if source == ("information_schema", "columns"):
            rows = list(self._information())
            scope = _Scope(None, args, {"table_schema", "table_name", "column_details"})
            wanted = scope.compile(query["where"])
            return scope, [row for row in rows if wanted(row)]
        scope = _Scope(self._table(source), args)
        return scope, scope.rows(query["where"])

    def _information(self) -> Iterator[Row]:
        for (schema, name), table in self.tables.items():
            for path in table.columns:
                details = {"name": path[0], "path": list(path[1:])}
                yield {"table_schema": schema, "table_name": name, "column_details": details}

    def _joined(self, source: Any, args: Sequence[Any]) -> tuple["_Scope", list[Row]]:
        _, (left_name, left), (right_name, right), on = source
        if on.kind != "COMPARE" or on.value != "=" or len(on.inner) != 2:
            raise Refused("UnsupportedFeatureException[join]", 4004)
        sides = []
        for name, query in ((left_name, left), (right_name, right)):
            column = next(node.value[1] for node in on.inner if node.value[0] == name)
            rows = self._named(query, args)
            sides.append((name, {row[column]: row for row in rows}, sorted(_names(query))))
        joined = []
        for key in dict.fromkeys([*sides[0][1], *sides[1][1]]):
            row: Row = {}
            for name, rows_by_key, columns in sides:
                one = rows_by_key.get(key, {})
                row |= {f"{name}.{column}": one.get(column) for column in columns}
            joined.append(row)
        known = {f"{name}.{column}" for name, _, columns in sides for column in columns}
        return _Scope(None, args, known), joined


class _Scope:
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
        if many.kind == "?":
            type_ = self._type(one)
            if not isinstance(self._args[many.value], list):
                raise sql_error("Cannot cast to an array")
            values = [cast(type_, member) for member in self._args[many.value]]
            probe = self.compile(one)
            return lambda row: None if (v := probe(row)) is None else _among(v, values)
        type_ = self._type(many)
        if type_["type"] not in ("array", "undefined"):
            raise Refused("UnsupportedFunctionException[Unknown function: any]", 4004)
        value = _constant(one, self._args)
        value = cast({"type": type_["of"]}, value) if "of" in type_ else value
        members = self.compile(many)
        return lambda row: None if (held := members(row)) is None else _among(value, held)

    def _on_like(self, node: Node) -> Value:
        text = self.compile(node.inner[0])
        pattern = _constant(node.inner[1], self._args)
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
            query = self._vector(column.value, _constant(vector, self._args))
            held = self.compile(column)
            return lambda row: None if (v := held(row)) is None else _similarity(v, query)
        inner = [self.compile(part) for part in node.inner]
        if node.value == "COALESCE":
            return lambda row: next((v for part in inner if (v := part(row)) is not None), None)
        if node.value == "TRUNC" and len(inner) == 2:
            return _strict(inner[0], inner[1], lambda v, d: math.trunc(v * 10**d) / 10**d)
        raise Refused(f"UnsupportedFunctionException[Unknown function: {node.value}]", 4004)

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
            part.inner[0].value[0]: _constant(part.inner[1], self._args)
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
        k = _constant(count, self._args)
        if not isinstance(k, int) or k < 1:
            raise sql_error(f"k must be at least 1, got: {k}")
        query, name = self._vector(column.value, _constant(vector, self._args)), column.value[0]
        held = {
            key: row[name] for key, row in self._table.seen.items() if row.get(name) is not None
        }
        near = sorted(held, key=lambda key: -_similarity(held[key], query))[:k]
        return {key: candidates[key] for key in near if key in candidates}

    def _match(self, part: Node, candidates: dict[Any, Row]) -> dict[Any, Row]:
        assert self._table is not None
        path, boost = part.value
        type_ = self._table.type_of(path)
        if "analyzer" not in type_:
            what = f"Cannot use MATCH on column {spelled(path)} without a fulltext index"
            raise Refused(f"UnsupportedFeatureException[{what}]", 4004)
        if type_["analyzer"] != "whitespace":
            raise Refused("UnsupportedFeatureException[the fake knows one analyzer]", 4004)
        query = tokens(str(_constant(part.inner[0], self._args)))
        if len(query) > MAX_CLAUSES:
            raise Refused(f"TooManyClauses[maxClauseCount is set to {MAX_CLAUSES}]", 5000, 500)
        found = {}
        for key, score in bm25(_postings(self._table, path[0], self._table.version), query).items():
            if key in candidates:
                added = float(np.float32(score * boost))
                found[key] = {**candidates[key], "_score": candidates[key]["_score"] + added}
        return found


_METHODS = {
    "?": "parameter",
    "AND": "and",
    "OR": "or",
    "NOT": "not",
    "NULL": "null",
    "NOT NULL": "not_null",
    "COMPARE": "compare",
    "ANY": "any",
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


Postings = tuple[dict[str, dict[Any, int]], dict[Any, int]]


@functools.lru_cache(maxsize=64)
def _postings(table: Table, column: str, version: int) -> Postings:
    """Rows by word with its count, and the lengths of all rows, as of one refresh."""
    by_word: dict[str, dict[Any, int]] = {}
    lengths = {}
    for key, row in table.seen.items():
        words = tokens(row.get(column) or "")
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


def _grouped(scope: _Scope, query: dict[str, Any], rows: list[Row], names: list[str]) -> list[Row]:
    keys = [scope.compile(node) for node in query["group"]]
    counts = Counter(tuple(key(row) for key in keys) for row in rows)
    if not keys:
        counts[()] += 0
    results = []
    for group, count in counts.items():
        places = iter(group)
        values = [count if n.kind == "COUNT" else next(places) for _, n in query["items"]]
        results.append(dict(zip(names, values, strict=True)))
    return results


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


def _ordering(
    scope: _Scope, order: Iterable[tuple[Node, bool]]
) -> Callable[[Row], tuple[Any, ...]]:
    parts = [(scope.compile(node), descending) for node, descending in order]
    return lambda row: tuple(_Descending(v(row)) if down else v(row) for v, down in parts)


def _names(query: dict[str, Any]) -> set[str]:
    return {name for name, _ in query["items"]}


def _constant(node: Node, args: Sequence[Any]) -> Any:
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


def _check_arguments(statement: Statement, args: Sequence[Any]) -> None:
    if statement.parameters > len(args):
        what = f"The query contains a parameter placeholder ${statement.parameters}"
        raise sql_error(f"{what}, but there are only {len(args)} parameter values")

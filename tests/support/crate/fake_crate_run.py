"""The fake CrateDB's answers: statements run over the tables."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from fake_crate_parse import Node, Refused, Statement, parse
from fake_crate_scope import Row, Rows, Scope, check_arguments, constant, ordering
from fake_crate_tables import Table, spelled, sql_error

INFORMATION = {
    "columns": {
        *("table_schema", "table_name", "column_name", "column_details", "data_type"),
        "character_maximum_length",
    },
    "tables": {"table_schema", "table_name", "table_type"},
}
"""What is known of the tables of information_schema."""


class Cluster:
    """All tables, and the statements that work on them."""

    def __init__(self) -> None:
        self.tables: dict[tuple[str, str], Table] = {}
        self.views: set[tuple[str, str]] = set()

    def columns(self, text: str) -> list[str]:
        """The names of the columns that a statement gives."""
        return [name for name, _ in parse(text)["items"] or ()]

    def run(self, text: str, args: Sequence[Any]) -> tuple[Rows, int]:
        """Run a statement; its rows and how many it gave or changed."""
        statement = parse(text)
        check_arguments(statement, args)
        match statement.kind:
            case "SELECT" | "WITH":
                rows = self._select(statement.parts, args)
                return rows, len(rows)
            case "SHOW CREATE TABLE":
                return [[self._table(statement["table"]).definition()]], 1
            case "CREATE VIEW":
                self.views.add(statement["view"])
                return [], 1
            case "DROP VIEW":
                self.views.remove(statement["view"])
                return [], 1
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
        check_arguments(statement, args)
        given = [constant(node, args) for node in statement["values"]]
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
        found = Scope(table, args).rows(statement["where"])
        for row in found:
            table.live.pop(table.key_of(row), None)
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
            inner = Scope(None, args, set(names))
            paired = [{**row, **result} for row, result in zip(rows, results, strict=True)]
            order = ordering(inner, query["order"])
            at = sorted(range(len(results)), key=lambda i: order(paired[i]))
            results = [results[i] for i in at]
        limit = None if query["limit"] is None else constant(query["limit"], args)
        return results[:limit]

    def _item(self, scope: "Scope", node: Node, rows: list[Row]) -> list[Any]:
        if node.kind != "RANK":
            value = scope.compile(node)
            return [value(row) for row in rows]
        order = ordering(scope, node.value)
        keys = [order(row) for row in rows]
        ordered = sorted(keys)
        first = {}
        for position, key in enumerate(ordered, 1):
            first.setdefault(key, position)
        return [first[key] for key in keys]

    def _source(self, query: dict[str, Any], args: Sequence[Any]) -> tuple["Scope", list[Row]]:
        source = query["source"]
        if source is None:
            return Scope(None, args), [{}]
        if source[0] == "derived":
            rows = self._named(source[2], args)
            return Scope(None, args, _names(source[2])), rows
        if source[0] == "join":
            return self._joined(source, args)
        if source[0] == "information_schema":
            rows = list(self._columns() if source[1] == "columns" else self._relations())
            scope = Scope(None, args, INFORMATION[source[1]])
            wanted = scope.compile(query["where"])
            return scope, [row for row in rows if wanted(row)]
        scope = Scope(self._table(source), args)
        return scope, scope.rows(query["where"])

    def _columns(self) -> Iterator[Row]:
        for (schema, name), table in self.tables.items():
            for path, type_ in table.columns.items():
                yield {
                    **{"table_schema": schema, "table_name": name, "column_name": spelled(path)},
                    "column_details": {"name": path[0], "path": list(path[1:])},
                    "data_type": f"{type_['of']}_array" if "of" in type_ else type_["type"],
                    "character_maximum_length": type_.get("length"),
                }

    def _relations(self) -> Iterator[Row]:
        for kind, names in (("BASE TABLE", self.tables), ("VIEW", self.views)):
            for schema, name in names:
                yield {"table_schema": schema, "table_name": name, "table_type": kind}

    def _joined(self, source: Any, args: Sequence[Any]) -> tuple["Scope", list[Row]]:
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
        return Scope(None, args, known), joined


def _grouped(scope: Scope, query: dict[str, Any], rows: list[Row], names: list[str]) -> list[Row]:
    keys = [scope.compile(node) for node in query["group"]]
    counts = Counter(tuple(key(row) for key in keys) for row in rows)
    if not keys:
        counts[()] += 0
    results = []
    for group, count in counts.items():
        scopes = iter(group)
        values = [count if n.kind == "COUNT" else next(scopes) for _, n in query["items"]]
        results.append(dict(zip(names, values, strict=True)))
    return results


def _names(query: dict[str, Any]) -> set[str]:
    return {name for name, _ in query["items"]}

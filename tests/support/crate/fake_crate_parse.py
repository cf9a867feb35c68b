"""The fake CrateDB's SQL: what the store says, read into a tree; the rest is a syntax error."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

_TOKEN = re.compile(
    r"""\s*(?:(?P<quoted>"(?:[^"]|"")+")|(?P<string>'(?:[^']|'')*')
    |(?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)|(?P<word>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<numbered>\$\d+)|(?P<sign><>|<=|>=|::|[=<>(),.?*+/\[\]]))""",
    re.VERBOSE,
)


class Refused(Exception):
    """What the server answers in place of a result."""

    def __init__(self, message: str, code: int = 4000, status: int = 400) -> None:
        super().__init__(message)
        self.code, self.status = code, status


def syntax(what: str) -> Refused:
    return Refused(f"ParsingException[{what}]")


@dataclass(frozen=True)
class Node:
    """An expression: its kind, its name or value, its operands."""

    kind: str
    value: Any = None
    inner: tuple["Node", ...] = ()


@dataclass(frozen=True)
class Statement:
    """A statement: its kind and its parts by name."""

    kind: str
    parts: dict[str, Any] = field(default_factory=dict)
    parameters: int = 0

    def __getitem__(self, name: str) -> Any:
        return self.parts.get(name)


@lru_cache(maxsize=2000)
def parse(text: str) -> Statement:
    """Read one statement."""
    parser = _Parser(text)
    kind, parts = parser.statement()
    parser.end()
    return Statement(kind, parts, parser.parameters)


class _Parser:
    def __init__(self, text: str) -> None:
        self._tokens: list[tuple[str, str]] = []
        at, text = 0, text.rstrip()
        while at < len(text):
            found = _TOKEN.match(text, at)
            if not found or found.lastgroup is None:
                raise syntax(f"token recognition error at {at}")
            self._tokens.append((found.lastgroup, found[found.lastgroup]))
            at = found.end()
        self._at = 0
        self._queries: dict[str, dict[str, Any]] = {}
        self.parameters = 0

    def statement(self) -> tuple[str, dict[str, Any]]:
        for words, read in self._statements().items():
            if self._take(*words.split()):
                return words, read()
        raise syntax("no viable alternative")

    def end(self) -> None:
        if self._at != len(self._tokens):
            raise syntax(f"extraneous input {self._peek()[1]!r}")

    def _statements(self) -> dict[str, Callable[[], dict[str, Any]]]:
        return {
            "SELECT": self._select,
            "WITH": self._with,
            "SHOW CREATE TABLE": lambda: {"table": self._name()},
            "CREATE VIEW": self._view,
            "DROP VIEW": lambda: {"view": self._name()},
            "INSERT INTO": self._insert,
            "DELETE FROM": lambda: {"table": self._name(), "where": self._where()},
            "REFRESH TABLE": lambda: {"tables": self._list(self._name)},
            "CREATE TABLE": self._create,
            "DROP TABLE": lambda: {"lenient": self._take("IF", "EXISTS"), "table": self._name()},
            "ALTER TABLE": self._alter,
        }

    # Tokens

    def _peek(self, ahead: int = 0) -> tuple[str, str]:
        at = self._at + ahead
        return self._tokens[at] if at < len(self._tokens) else ("end", "<EOF>")

    def _take(self, *words: str) -> bool:
        """Step over these words or signs where they come next."""
        for ahead, word in enumerate(words):
            kind, text = self._peek(ahead)
            if kind not in ("word", "sign") or text.upper() != word:
                return False
        self._at += len(words)
        return True

    def _need(self, *words: str) -> None:
        if not self._take(*words):
            raise syntax(f"mismatched input {self._peek()[1]!r} expecting {' '.join(words)}")

    def _identifier(self) -> str:
        kind, text = self._peek()
        if kind not in ("quoted", "word"):
            raise syntax(f"mismatched input {text!r}")
        self._at += 1
        return text[1:-1].replace('""', '"') if kind == "quoted" else text.lower()

    def _literal(self) -> Any:
        kind, text = self._peek()
        self._at += 1
        if kind == "string":
            return text[1:-1].replace("''", "'")
        if kind == "number":
            return float(text) if re.search("[.eE]", text) else int(text)
        if kind == "word" and text.upper() in ("TRUE", "FALSE"):
            return text.upper() == "TRUE"
        raise syntax(f"mismatched input {text!r}")

    def _list(self, read: Callable[[], Any]) -> list[Any]:
        found = [read()]
        while self._take(","):
            found.append(read())
        return found

    def _name(self) -> tuple[str, str]:
        schema = self._identifier()
        return (schema, self._identifier()) if self._take(".") else ("doc", schema)

    def _path(self) -> tuple[str, ...]:
        path = [self._identifier()]
        while self._take("["):
            path.append(str(self._literal()))
            self._need("]")
        return tuple(path)

    # Tables

    def _create(self) -> dict[str, Any]:
        lenient = self._take("IF", "NOT", "EXISTS")
        table = self._name()
        self._need("(")
        columns: list[tuple[tuple[str, ...], dict[str, Any]]] = []
        keys: list[str] = []
        while True:
            if self._take("PRIMARY", "KEY", "("):
                keys += self._list(self._identifier)
                self._need(")")
            else:
                columns += self._column(())
            if not self._take(","):
                break
        self._need(")")
        keys += [path[0] for path, type_ in columns if type_.get("key")]
        if self._take("CLUSTERED", "INTO"):
            self._literal()
            self._need("SHARDS")
        return {
            **{"lenient": lenient, "table": table, "columns": columns, "keys": keys},
            "settings": self._settings() if self._take("WITH") else {},
        }

    def _view(self) -> dict[str, Any]:
        view = self._name()
        self._need("AS", "SELECT", "*", "FROM")
        self._name()
        return {"view": view}

    def _settings(self) -> dict[str, Any]:
        def setting() -> tuple[str, Any]:
            name = self._identifier()
            self._need("=")
            return name, self._literal()

        self._need("(")
        found = dict(self._list(setting))
        self._need(")")
        return found

    def _column(self, parents: tuple[str, ...]) -> list[tuple[tuple[str, ...], dict[str, Any]]]:
        path = (*parents, self._identifier())
        type_ = self._type()
        inner: list[tuple[tuple[str, ...], dict[str, Any]]] = []
        if type_["type"] == "object" and self._take("AS", "("):
            inner = [each for some in self._list(lambda: self._column(path)) for each in some]
            self._need(")")
        while True:
            if self._take("NOT", "NULL"):
                type_["required"] = True
            elif self._take("PRIMARY", "KEY"):
                type_["key"] = True
            elif self._take("INDEX", "OFF"):
                type_["index"] = False
            elif self._take("INDEX", "USING", "FULLTEXT", "WITH"):
                type_["analyzer"] = self._settings()["analyzer"]
            elif self._take("STORAGE", "WITH"):
                type_["columnstore"] = self._settings()["columnstore"]
            else:
                return [(path, type_), *inner]

    def _type(self) -> dict[str, Any]:
        if self._take("ARRAY", "("):
            inner = self._type()
            self._need(")")
            return {"type": "array", "of": inner["type"]}
        if self._take("OBJECT", "("):
            policy = self._identifier()
            self._need(")")
            return {"type": "object", "policy": policy}
        if self._take("FLOAT_VECTOR", "("):
            length = self._literal()
            self._need(")")
            return {"type": "float_vector", "length": length}
        for words in ("DOUBLE PRECISION", "TIMESTAMP WITH TIME ZONE", "TEXT", "BIGINT", "BOOLEAN"):
            if self._take(*words.split()):
                return {"type": words.lower()}
        raise syntax(f"mismatched input {self._peek()[1]!r}")

    def _alter(self) -> dict[str, Any]:
        table = self._name()
        if self._take("SET"):
            return {"table": table, "settings": self._settings()}

        def added() -> tuple[tuple[str, ...], dict[str, Any]]:
            self._need("ADD", "COLUMN")
            return self._path(), self._type()

        return {"table": table, "added": self._list(added)}

    def _insert(self) -> dict[str, Any]:
        table = self._name()
        self._need("(")
        columns = self._list(self._identifier)
        self._need(")", "VALUES", "(")
        values = self._list(self._primary)
        self._need(")")
        conflict, keys = "refuse", []
        if self._take("ON", "CONFLICT", "DO", "NOTHING"):
            conflict = "nothing"
        elif self._take("ON", "CONFLICT", "("):
            conflict, keys = "update", self._list(self._identifier)
            self._need(")", "DO", "UPDATE", "SET")
            for target, source in self._list(self._assignment):
                if target != source or target not in columns:
                    raise syntax(f"only what is inserted can be set, not {target!r}")
        return {
            **{"table": table, "columns": columns, "values": values},
            **{"conflict": conflict, "keys": keys},
        }

    def _assignment(self) -> tuple[str, str]:
        target = self._identifier()
        self._need("=", "EXCLUDED", ".")
        return target, self._identifier()

    # Queries

    def _select(self) -> dict[str, Any]:
        items = self._list(self._item)
        source = self._source() if self._take("FROM") else None
        where = self._where()
        group = self._list(self._expression) if self._take("GROUP", "BY") else []
        order = self._order() if self._take("ORDER", "BY") else []
        limit = self._primary() if self._take("LIMIT") else None
        return {
            **{"items": items, "source": source, "where": where},
            **{"group": group, "order": order, "limit": limit},
        }

    def _with(self) -> dict[str, Any]:
        while True:
            name = self._identifier()
            self._need("AS", "(", "SELECT")
            self._queries[name] = self._select()
            self._need(")")
            if not self._take(","):
                break
        self._need("SELECT")
        if self.parameters and any(text == "?" for _, text in self._tokens):
            raise syntax("the fake does not count the `?` of a query with WITH")
        return self._select()

    def _item(self) -> tuple[str, Node]:
        expression = self._expression()
        if self._take("AS"):
            return self._identifier(), expression
        return (expression.value[-1] if expression.kind == "column" else ""), expression

    def _source(self) -> Any:
        if self._peek()[1] != "(" and self._peek()[1] not in self._queries:
            return self._name()
        left = self._derived()
        if not self._take("FULL", "OUTER", "JOIN"):
            return ("derived", *left)
        right = self._derived()
        self._need("ON")
        return ("join", left, right, self._expression())

    def _derived(self) -> tuple[str, dict[str, Any]]:
        if not self._take("("):
            name = self._identifier()
            return name, self._queries[name]
        self._need("SELECT")
        query = self._select()
        self._need(")", "AS")
        return self._identifier(), query

    def _where(self) -> Node | None:
        return self._expression() if self._take("WHERE") else None

    def _order(self) -> list[tuple[Node, bool]]:
        def part() -> tuple[Node, bool]:
            return self._expression(), self._take("DESC")

        return self._list(part)

    # Expressions

    def _expression(self) -> Node:
        return self._chain("OR", lambda: self._chain("AND", self._negation))

    def _chain(self, word: str, read: Callable[[], Node]) -> Node:
        parts = [read()]
        while self._take(word):
            parts.append(read())
        return parts[0] if len(parts) == 1 else Node(word, None, tuple(parts))

    def _negation(self) -> Node:
        if self._take("NOT"):
            return Node("NOT", None, (self._negation(),))
        return self._predicate()

    def _predicate(self) -> Node:
        left = self._sum()
        if self._take("IS", "NOT", "NULL"):
            return Node("NOT NULL", None, (left,))
        if self._take("IS", "NULL"):
            return Node("NULL", None, (left,))
        if self._take("LIKE"):
            return Node("LIKE", None, (left, self._sum()))
        for sign in ("=", "<>", "<=", ">=", "<", ">"):
            if self._take(sign):
                if sign == "=" and self._take("ANY", "("):
                    right = self._expression()
                    self._need(")")
                    return Node("ANY", None, (left, right))
                return Node("COMPARE", sign, (left, self._sum()))
        return left

    def _sum(self) -> Node:
        left = self._quotient()
        while self._take("+"):
            left = Node("+", None, (left, self._quotient()))
        return left

    def _quotient(self) -> Node:
        left = self._primary()
        while self._take("/"):
            left = Node("/", None, (left, self._primary()))
        return left

    def _primary(self) -> Node:
        if self._take("?"):
            self.parameters += 1
            node = Node("?", self.parameters - 1)
            return Node("listed", self._type(), (node,)) if self._take("::") else node
        if self._peek()[0] == "numbered":
            number = int(self._peek()[1][1:])
            self._at += 1
            self.parameters = max(self.parameters, number)
            return Node("?", number - 1)
        if self._take("("):
            inner = self._expression()
            self._need(")")
            return inner
        if self._take("NULL"):
            return Node("literal", None)
        kind, text = self._peek()
        if kind in ("string", "number") or text.upper() in ("TRUE", "FALSE"):
            return Node("literal", self._literal())
        if kind == "word" and self._peek(1)[1] == "(":
            return self._call(text.upper())
        return self._column_of()

    def _column_of(self) -> Node:
        path = self._path()
        if self._take("."):
            return Node("column", (path[0], *self._path()), (Node("qualified"),))
        return Node("column", path)

    def _boosted(self) -> tuple[tuple[str, ...], float]:
        column = self._path()
        return column, self._literal() if self._peek()[0] == "number" else 1.0

    def _call(self, name: str) -> Node:
        self._at += 2
        if name == "MATCH":
            self._need("(")
            columns = tuple(self._list(self._boosted))
            self._need(")", ",")
            text = self._primary()
            self._need(")")
            return Node("MATCH", columns, (text,))
        if name in ("CAST", "TRY_CAST"):
            inner = self._expression()
            self._need("AS")
            type_ = self._type()["type"]
            self._need(")")
            return Node("CAST", (name, type_), (inner,))
        if name == "COUNT":
            self._need("*", ")")
            return Node("COUNT")
        arguments = [] if self._take(")") else self._list(self._expression)
        if arguments:
            self._need(")")
        if self._take("OVER", "(", "ORDER", "BY"):
            order = self._order()
            self._need(")")
            return Node("RANK", order)
        return Node("call", name, tuple(arguments))

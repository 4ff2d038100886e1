"""Reader of expressions such as `cope{max_positions=16}+rope`, in the grammar of pe-bench.

expression = sum { "/" sum }
sum        = operand { "+" operand }
operand    = id [ "{" options "}" ] [ "(" expression ")" ] | "(" expression ")"
options    = [ key "=" value { "," key "=" value } ]
value      = number | true | false | null | word | "text" | "[" values "]" | "{" options "}"
"""

from __future__ import annotations

import dataclasses
import json
import re

WORD = re.compile(r"\s*([A-Za-z0-9_-]+)")
VALUE = re.compile(r'\s*("(?:[^"\\]|\\.)*"|[A-Za-z0-9_.+-]+)')
CONSTANTS = {"true": True, "false": False, "null": None}


@dataclasses.dataclass
class Part:
    """One encoding of an expression, as written."""

    id: str
    settings: dict
    inner: list | None  # parts in brackets


def parse(text):
    """Returns the parts of an expression; raises ValueError with the place of the first error."""
    reader = Reader(text)
    parts = reader.expression()
    if reader.next():
        raise reader.error("`+`, `/` or the end")
    return parts


class Reader:
    def __init__(self, text):
        self.text, self.at = text, 0

    def error(self, expected):
        found = f"`{self.next()}`" if self.next() else "the end"
        return ValueError(
            f"{self.text!r}, character {self.at + 1}: found {found}, expected {expected}"
        )

    def next(self):
        rest = self.text[self.at :]
        self.at += len(rest) - len(rest.lstrip())
        return self.text[self.at : self.at + 1]

    def take(self, char):
        found = self.next() == char
        self.at += found
        return found

    def match(self, pattern, expected):
        found = pattern.match(self.text, self.at)
        if not found:
            raise self.error(expected)
        self.at = found.end()
        return found[1]

    def expect(self, char):
        if not self.take(char):
            raise self.error(f"`{char}`")

    def expression(self):
        sums = [self.sum()]
        while self.take("/"):
            sums.append(self.sum())
        return sums[0] if len(sums) == 1 else [Part("layers", {"pattern": sums}, None)]

    def sum(self):
        parts = self.operand()
        while self.take("+"):
            parts += self.operand()
        return parts

    def operand(self):
        if self.take("("):
            return self.bracketed()
        id = self.match(WORD, "the id of an encoding")
        settings = self.options() if self.take("{") else {}
        inner = self.bracketed() if self.take("(") else None
        return [Part(id, settings, inner)]

    def bracketed(self):
        parts = self.expression()
        self.expect(")")
        return parts

    def options(self):
        options = {}
        while not self.take("}"):
            if options:
                self.expect(",")
                if self.take("}"):
                    break
            key = self.match(WORD, "the name of a setting")
            self.expect("=")
            if key in options:
                raise ValueError(f"{self.text!r}: {key!r} is set twice")
            options[key] = self.value()
        return options

    def value(self):
        if self.take("{"):
            return self.options()
        if self.take("["):
            items = []
            while not self.take("]"):
                if items:
                    self.expect(",")
                items.append(self.value())
            return items
        token = self.match(VALUE, "a value")
        if token.startswith('"'):
            return json.loads(token)
        if token in CONSTANTS:
            return CONSTANTS[token]
        for number in (int, float):
            try:
                return number(token)
            except ValueError:
                pass
        return token

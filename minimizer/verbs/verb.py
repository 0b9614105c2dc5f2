"""What makes a verb: a name, a line that says what it does, its arguments, and the act itself."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from minimizer.console import Console
from minimizer.options import Unusable

Act = Callable[[argparse.Namespace, Console], int]


class _Layout(argparse.RawDescriptionHelpFormatter):
    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=32, width=100)


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, as everything else here does."""

    def __init__(self, **options: Any) -> None:
        super().__init__(formatter_class=_Layout, **options)

    def error(self, message: str) -> NoReturn:
        raise Unusable(f"{message}; see {self.prog} --help")


def no_arguments(parser: argparse.ArgumentParser) -> None:
    """For verbs that take none."""


@dataclass(frozen=True)
class Verb:
    """One verb. `arguments` adds to a parser, `act` does the work and returns the exit status.

    `act` raises Unusable for what a person can get wrong. `example` is a whole command; `more` is said below
    the options; `usage` stands for the list of all options.
    """

    name: str
    summary: str
    act: Act
    example: str
    arguments: Callable[[argparse.ArgumentParser], None] = no_arguments
    more: str = ""
    usage: str | None = None

    def fill(self, parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
        """The parser with this verb's description and arguments."""
        parser.description = f"{self.summary[0].upper()}{self.summary[1:]}."
        parser.epilog = "\n\n".join(part for part in (self.more, f"example: {self.example}") if part)
        self.arguments(parser)
        parser.add_argument("--quiet", action="store_true", help="print the result only")
        return parser

    def parser(self) -> argparse.ArgumentParser:
        """The verb's own command line."""
        return self.fill(Parser(prog=f"aoti-minimize {self.name}", usage=self.usage))


def takes_stored(parser: argparse.ArgumentParser) -> None:
    """The argument of verbs that look at what an earlier run left."""
    parser.add_argument("stored", type=Path, metavar="RUN|CASE", help="a run folder, or a case.json")

"""Print a completion script for a shell."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence

from minimizer.console import Console
from minimizer.options import NONE, Unusable
from minimizer.verbs.verb import Parser, Verb

SHELLS = ("bash", "zsh", "fish")
_PATHS = ("DIR", "FILE", "CASE", "PATH")
"""Words in a metavar that say that an argument is a path."""

_TARGETS = {
    "bash": "_shtab_aoti_minimize_pos_0_COMPGEN=_shtab_compgen_files",
    "fish": "complete -c aoti-minimize -ka '(__fish_complete_path (commandline -ct))'"
    " -n '_shtab_aoti_minimize_using; and test $_shtab_aoti_minimize_npos -eq 0'",
}
"""Where a verb may stand, a target may: shtab offers either choices or files."""


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS, help="whose syntax to use")


def completion_verb(verbs: Sequence[Verb], options: Callable[[argparse.ArgumentParser], None]) -> Verb:
    """The verb that completes itself, the other verbs, and the `options` of the main job."""

    def act(given: argparse.Namespace, console: Console) -> int:
        try:
            import shtab
        except ImportError:
            raise Unusable("completion needs the package 'shtab'; install it") from None
        top = Parser(prog="aoti-minimize")
        options(top)
        names = top.add_subparsers(dest="verb")
        for verb in (*verbs, this):
            verb.fill(names.add_parser(verb.name, help=verb.summary))
        for parser in (top, *names.choices.values()):
            for action in parser._actions:
                if any(word in str(action.metavar) for word in _PATHS):
                    action.complete = shtab.FILE  # type: ignore[attr-defined]
        print(shtab.complete(top, shell=given.shell))
        print(_TARGETS.get(given.shell, ""))
        return NONE

    this = Verb(
        "completion",
        "print a completion script for a shell",
        act,
        'eval "$(aoti-minimize completion bash)"',
        _arguments,
    )
    return this

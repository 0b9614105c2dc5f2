"""Print a completion script for a shell."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any

from minimizer.console import Console
from minimizer.options import NONE
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


class _Completed(Parser):
    """Tells shtab which arguments are paths; parsers of verbs that are added to it do so too."""

    def add_argument(self, *names: Any, **options: Any) -> argparse.Action:
        from shtab import FILE

        action = super().add_argument(*names, **options)
        if any(word in str(action.metavar) for word in _PATHS):
            action.complete = FILE  # type: ignore[attr-defined]  # where shtab looks for it
        return action


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS, help="whose syntax to use")


def completion_verb(verbs: Sequence[Verb], options: Callable[[argparse.ArgumentParser], None]) -> Verb:
    """The verb that completes itself, the other verbs, and the `options` of the main job."""

    def act(given: argparse.Namespace, console: Console) -> int:
        import shtab

        top = _Completed(prog="aoti-minimize")
        options(top)
        names = top.add_subparsers(dest="verb")
        for verb in (*verbs, this):
            verb.fill(names.add_parser(verb.name, help=verb.summary))
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

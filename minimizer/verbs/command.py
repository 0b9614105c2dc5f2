"""Arguments → a verb → an exit status; nothing else."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Sequence

from minimizer.console import Console, one_line
from minimizer.options import INTERRUPTED, UNUSABLE, Unusable
from minimizer.verbs.minimize import MINIMIZE
from minimizer.verbs.table import VERBS, verbs_listed
from minimizer.verbs.verb import Parser


def parser() -> argparse.ArgumentParser:
    """The command line of the main job; its help names the verbs."""
    top = MINIMIZE.fill(Parser(prog="aoti-minimize", usage="aoti-minimize [VERB] TARGET [options]"))
    top.epilog = f"{verbs_listed()}\n\n{top.epilog}"
    return top


def run(argv: Sequence[str]) -> int:
    """Run the command; the exit status."""
    try:
        verb = VERBS.get(argv[0]) if argv else None
        given = verb.parser().parse_args(argv[1:]) if verb else parser().parse_args(argv)
        given.command = f"aoti-minimize {shlex.join(argv)}"
        return (verb or MINIMIZE).act(given, Console(quiet=given.quiet))
    except (Unusable, OSError) as problem:  # OSError: a full disk, or whatever else the system refuses
        print(f"aoti-minimize: {one_line(str(problem))}", file=sys.stderr)
        return UNUSABLE
    except KeyboardInterrupt:
        return INTERRUPTED

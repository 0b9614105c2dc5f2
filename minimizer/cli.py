"""The console script: what must hold before anything else is even imported."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from minimizer.console import open_streams


def main(argv: Sequence[str]) -> int:
    """Run the command; the exit status."""
    try:
        os.getcwd()
    except OSError as problem:
        said = f"the current folder is gone ({problem.strerror}); change to one that exists"
        print(f"aoti-minimize: {said}", file=sys.stderr)
        return 2
    # Libraries ask for the current folder while they are imported.
    from minimizer.verbs.command import run

    return run(argv)


def entry() -> None:
    """The console script."""
    open_streams()
    raise SystemExit(main(sys.argv[1:]))


if __name__ == "__main__":
    entry()

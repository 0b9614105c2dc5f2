#!/usr/bin/env python3
"""Measures the tool: ``scripts/bench.py NAME ...`` runs the benchmark of that name, ``--help`` lists them.

Each benchmark is a module beside this file, ``bench_NAME.py``, with a line of docstring, `arguments(parser)`
and `main(given)`, which returns the exit status.
"""

import argparse
import importlib
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def benchmarks():
    """The modules beside this one, by the name of their benchmark."""
    names = sorted(path.stem.removeprefix("bench_") for path in HERE.glob("bench_*.py"))
    return {name: importlib.import_module(f"bench_{name}") for name in names}


def main(argv):
    parser = argparse.ArgumentParser(prog="scripts/bench.py", description=__doc__.splitlines()[0])
    verbs = parser.add_subparsers(dest="name", required=True, metavar="NAME")
    found = benchmarks()
    for name, module in found.items():
        line = module.__doc__.splitlines()[0]
        one = verbs.add_parser(name, help=line, description=module.__doc__)
        module.arguments(one)
    given = parser.parse_args(argv)
    return found[given.name].main(given)


if __name__ == "__main__":
    sys.path[:0] = [str(HERE), str(HERE.parent)]
    raise SystemExit(main(sys.argv[1:]))

"""Arguments → a run → an exit status; nothing else."""

from __future__ import annotations

import argparse
import ast
import shlex
import shutil
import signal
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from minimizer import __version__
from minimizer.console import Console, one_line, open_streams
from minimizer.folder import FolderError, RunFolder
from minimizer.handing import keep_best
from minimizer.options import INTERRUPTED, UNUSABLE, Options, Unusable
from minimizer.oracle.requests import PRELOAD
from minimizer.run import Run
from minimizer.sandbox import Sandbox
from minimizer.verbs import VERBS

POLITELY = (signal.SIGTERM, signal.SIGHUP)
"""Signals that ask for an end, as Ctrl-C does."""

EPILOG = """\
exit status: 0 nothing failed, 1 a failure was found and its repro written, 2 the command or target
is unusable, 3 misuse, 130 interrupted (the best so far is kept; go on with --resume)

example: aoti-minimize model.py --budget 600 --out model-repro

other verbs: aoti-minimize doctor       does everything work here?
             aoti-minimize replay DIR   judge the stored case of a run again
             aoti-minimize passes       list the reduction passes
"""


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, as everything else here does."""

    def error(self, message: str) -> NoReturn:
        raise Unusable(f"{message}; see {self.prog} --help")


def parser() -> argparse.ArgumentParser:
    """The command line."""
    top = _Parser(
        prog="aoti-minimize",
        description="Find an input on which an AOTInductor-compiled model fails; reduce it to a repro.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("target", help="a Python file with get_model() and get_example_inputs()")
    top.add_argument("--out", type=Path, metavar="DIR", help="run folder (default: TARGET-repro)")
    top.add_argument(
        "--budget",
        type=_positive,
        default=300.0,
        metavar="SECONDS",
        help="time for everything (default: 300)",
    )
    top.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the input search (default: 0)")
    top.add_argument(
        "--most-inputs", type=_count, default=2000, metavar="N", help="inputs tried at most (default: 2000)"
    )
    top.add_argument("--resume", action="store_true", help="go on with an interrupted run in the same folder")
    top.add_argument("--model", default="", metavar="NAME", help="function or attribute with the model")
    top.add_argument("--inputs", default="", metavar="NAME", help="function or attribute with example inputs")
    top.add_argument(
        "--check-inputs",
        default="",
        metavar="NAME|FILE",
        help="judge these inputs first: a function of the model file, or a .pt or .safetensors file",
    )
    top.add_argument(
        "--config", action="append", default=[], metavar="KEY=VALUE", help="an Inductor option (repeatable)"
    )
    top.add_argument("--quiet", action="store_true", help="print the result only")
    top.add_argument("--version", action="version", version=f"aoti-minimize {__version__}")
    return top


def _positive(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds") from None
    if not value > 0:
        raise argparse.ArgumentTypeError("must be more than 0 seconds")
    return value


def _count(text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None
    if value < 1:
        raise argparse.ArgumentTypeError("must be 1 or more")
    return value


def main(argv: Sequence[str]) -> int:
    """Run the command; the exit status."""
    try:
        if argv and argv[0] in VERBS:  # a file of that name is ./doctor
            return VERBS[argv[0]](argv[1:], Console())
        return _run(parser().parse_args(argv), argv)
    except (Unusable, FolderError) as problem:
        print(f"aoti-minimize: {one_line(str(problem))}", file=sys.stderr)
        return UNUSABLE
    except KeyboardInterrupt:
        return INTERRUPTED


def _run(arguments: argparse.Namespace, argv: Sequence[str]) -> int:
    target = Path(arguments.target)
    if not target.exists():
        raise Unusable(f"{target} does not exist; give the path of a model file")
    if target.is_dir():
        raise Unusable(f"{target} is a folder; give the path of a model file in it")
    if target.suffix != ".py":
        raise Unusable(
            f"{target.name} is not a .py file; give a model file with get_model() and get_example_inputs()"
        )
    if shutil.which("g++") is None and shutil.which("clang++") is None:
        raise Unusable("no C++ compiler on PATH; AOTInductor needs one: install g++")
    out = arguments.out or Path(f"{target.stem}-repro")
    options = Options(
        target=target,
        out=out,
        budget=arguments.budget,
        seed=arguments.seed,
        most_inputs=arguments.most_inputs,
        resume=arguments.resume,
        model=arguments.model,
        inputs=arguments.inputs,
        check_inputs=arguments.check_inputs,
        config=tuple(_setting(text) for text in arguments.config),
        command=f"aoti-minimize {shlex.join(argv)}",
    )
    console = Console(quiet=arguments.quiet)
    folder = RunFolder(out, target, resume=options.resume)
    with Sandbox(PRELOAD) as sandbox:
        sandbox.warm()
        run = Run(options, console, folder, sandbox)

        def interrupt(number: int, frame: object) -> None:
            # `timeout` and service managers send SIGTERM twice; only a second Ctrl-C is meant as one.
            for politely in POLITELY:
                signal.signal(politely, signal.SIG_IGN)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            run.interrupted = True
            raise KeyboardInterrupt

        for number in (signal.SIGINT, *POLITELY):
            signal.signal(number, interrupt)
        try:
            return run.go()
        except (Unusable, FolderError):
            raise
        except Exception as problem:
            raise Unusable(_fault(problem, folder)) from problem
        except KeyboardInterrupt:
            keep_best(run)
            return INTERRUPTED


def _fault(problem: Exception, folder: RunFolder) -> str:
    """A fault of our own, or of the machine, in one line; its traceback goes to the run folder."""
    first = next(iter(str(problem).splitlines()), "")
    said = f"internal error: {type(problem).__name__}: {first}"
    try:
        log = folder.write("internal_error.txt", traceback.format_exc())
    except OSError as full:
        return f"{said}; {folder.path} cannot be written any more: {full.strerror}"
    return f"{said}; its traceback is in {log}, what was found before it in {folder.path}"


def _setting(text: str) -> tuple[str, object]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise Unusable(f"--config {text!r} is not KEY=VALUE")
    try:
        return key, ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return key, value


def entry() -> None:
    """The console script."""
    open_streams()
    raise SystemExit(main(sys.argv[1:]))


if __name__ == "__main__":
    entry()

"""The main job: from a target to a repro and its report. It is what happens when no verb is named."""

from __future__ import annotations

import argparse
import ast
import shutil
import signal
import sys
import traceback
from pathlib import Path

from minimizer import __version__, packaged
from minimizer.console import Console
from minimizer.folder import RunFolder
from minimizer.handing import keep_best
from minimizer.handover.record import summary_text
from minimizer.options import INTERRUPTED, Options, Unusable
from minimizer.oracle.requests import PRELOAD
from minimizer.reduce.passes import select
from minimizer.run import Run
from minimizer.sandbox import Sandbox
from minimizer.sandbox.asan import asan_environment
from minimizer.targets.recognise import CASE, PACKAGE, recognise
from minimizer.variant import LAYOUTS, PATHS, Wanted
from minimizer.verbs.verb import Verb
from strategies.dtypes import wanted
from strategies.settings import LEVELS

POLITELY = (signal.SIGTERM, signal.SIGHUP)
"""Signals that ask for an end, as Ctrl-C does."""

STATUSES = (
    "exit status: 0 nothing failed, 1 failure found, 2 unusable, 3 misuse, 130 interrupted: see --resume"
)


def takes_target(parser: argparse.ArgumentParser) -> None:
    """The target and the options of a run."""
    parser.add_argument(
        "target",
        metavar="TARGET",
        help="a model file, exported .pt2, minifier script or stored case",
    )
    takes_options(parser)


def takes_options(parser: argparse.ArgumentParser) -> None:
    """The options of a run."""
    add = parser.add_argument
    add("--out", type=Path, metavar="DIR", help="run folder (default: TARGET-repro)")
    add("--budget", type=_positive, default=300.0, metavar="SECONDS", help="for everything (default: 300)")
    add("--seed", type=int, default=0, metavar="N", help="seed of the input search (default: 0)")
    add("--most-inputs", type=count, default=2000, metavar="N", help="inputs per artifact (default: 2000)")
    add("--resume", action="store_true", help="go on with an interrupted run in the same folder")
    add("--model", default="", metavar="NAME", help="function or attribute with the model")
    add("--inputs", default="", metavar="NAME", help="function or attribute with example inputs")
    add(
        "--check-inputs",
        default="",
        metavar="NAME|FILE",
        help="judge these inputs first: a function, a .pt or .safetensors",
    )
    add(
        "--out-of-contract",
        action="store_true",
        help="also say what calls outside the contract come to",
    )
    add("--config", action="append", default=[], metavar="KEY=VALUE", help="an Inductor option (repeatable)")
    add("--sanitize", action="store_true", help="build with AddressSanitizer, without vector code")
    add("--passes", type=names, default=(), metavar="NAME,...", help="reduce with these passes only")
    add("--skip-passes", type=names, default=(), metavar="NAME,...", help="reduce without these passes")
    add(
        "--layouts",
        choices=tuple(LAYOUTS),
        default="common",
        help="other strides to export with, once nothing else fails (default: common)",
    )
    add(
        "--dtypes",
        type=_dtypes,
        default=(),
        metavar="default|wide|NAMES",
        help="other dtypes to export with: wide, or names such as float16,int8",
    )
    add("--settings", choices=LEVELS, default="default", help="other Inductor options to compile with")
    add("--path", choices=(*PATHS, "both"), default="aoti", help="judge AOTInductor, torch.compile or both")
    add("--devices", action="store_true", help="try all combinations of devices to compile, load and feed on")
    parser.set_defaults(fuzz_only=False)
    add("--json", action="store_true", help="print summary.json to stdout, everything else to stderr")
    add("--version", action="version", version=f"aoti-minimize {__version__}", help=argparse.SUPPRESS)


def _positive(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds") from None
    if not value > 0:
        raise argparse.ArgumentTypeError("must be more than 0 seconds")
    return value


def _dtypes(text: str) -> tuple[str, ...]:
    try:
        return wanted(text)
    except ValueError as problem:
        raise argparse.ArgumentTypeError(str(problem)) from None


def count(text: str) -> int:
    """A number of 1 or more, as an argument."""
    try:
        value = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None
    if value < 1:
        raise argparse.ArgumentTypeError("must be 1 or more")
    return value


def names(text: str) -> tuple[str, ...]:
    """Names given as ``NAME,NAME``."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def setting(text: str) -> tuple[str, object]:
    """An Inductor option given as ``KEY=VALUE``. Raises Unusable."""
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise Unusable(f"--config {text!r} is not KEY=VALUE")
    try:
        return key, ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return key, value


def _file_or_name(text: str) -> str:
    """A file by its whole path, since workers run in folders of their own; any other name as it is."""
    return str(Path(text).resolve()) if text and not text.isidentifier() and Path(text).exists() else text


def need_compiler() -> None:
    """Raise Unusable where there is no C++ compiler."""
    if shutil.which("g++") is None and shutil.which("clang++") is None:
        raise Unusable("no C++ compiler on PATH; AOTInductor needs one: install g++")


SCALAR = (("cpp.simdlen", 1),)
"""AddressSanitizer does not see what vector instructions access."""


def _sanitized() -> tuple[tuple[str, str], ...]:
    try:
        return asan_environment()
    except RuntimeError as problem:
        raise Unusable(f"--sanitize is not possible here: {problem}") from None


def _act(given: argparse.Namespace, console: Console) -> int:
    target = Path(given.target)
    door = recognise(target)
    need_compiler()
    try:
        passes = select(given.passes, given.skip_passes)
    except ValueError as problem:
        raise Unusable(str(problem)) from None
    name = f"{target.stem.removesuffix('-repro')}-reduced" if door.kind == CASE else f"{target.stem}-repro"
    out = given.out or Path(name)
    options = Options(
        target=target,
        out=out,
        budget=given.budget,
        seed=given.seed,
        most_inputs=given.most_inputs,
        resume=given.resume,
        model=given.model,
        inputs=given.inputs,
        check_inputs=_file_or_name(given.check_inputs) or ("failing_inputs" if door.kind == CASE else ""),
        out_of_contract=given.out_of_contract,
        config=tuple(setting(text) for text in given.config) + (SCALAR if given.sanitize else ()),
        environment=_sanitized() if given.sanitize else (),
        passes=tuple(p.name for p in passes),
        devices=given.devices,
        wanted=Wanted(given.layouts, given.dtypes, given.settings, given.path),
        fuzz_only=given.fuzz_only,
        command=given.command,
    )
    if given.json:
        console = Console(quiet=given.quiet, stream=sys.stderr)
    package = packaged.describe_only(options) if door.kind == PACKAGE else None
    folder = RunFolder(out, target, resume=options.resume)
    with Sandbox(PRELOAD) as sandbox:
        sandbox.warm()
        if package is not None:
            status, record = packaged.check_inputs(options, package, console, folder, sandbox)
        else:
            run = Run(options, console, folder, sandbox)
            status, record = _guarded(run), run.record
    if given.json:
        print(summary_text(record), end="")
    return status


def _guarded(run: Run) -> int:
    """The run's status; an interruption keeps the best so far. Raises Unusable."""

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
    except Unusable:
        raise
    except Exception as problem:
        raise Unusable(_fault(problem, run.folder)) from problem
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


MINIMIZE = Verb(
    "minimize",
    "find an input on which an AOTInductor-compiled model fails; reduce it to a repro",
    _act,
    "aoti-minimize model.py --budget 600 --out model-repro",
    takes_target,
    more=STATUSES,
)

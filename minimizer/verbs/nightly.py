"""A night over a corpus: replay what is recorded, search models and generated programs, say what is new."""

from __future__ import annotations

import argparse
import importlib.util
import os
import signal
from pathlib import Path

from minimizer.buckets import KNOWN_FILE, KnownFileError, read_known
from minimizer.console import Console
from minimizer.corpus import CorpusError, recordings
from minimizer.nightly.durations import seconds
from minimizer.nightly.hands import Hands, LocalHands, NoCluster, RayHands
from minimizer.nightly.history import NightError, difference, read_night, read_past
from minimizer.nightly.ledger import FILE
from minimizer.nightly.night import Night, Plan
from minimizer.nightly.outputs import NEW, Context, headline, summarise, write_all
from minimizer.options import FAILURE, INTERRUPTED, NONE, Unusable
from minimizer.verbs.minimize import POLITELY, count, need_compiler
from minimizer.verbs.verb import Verb

GENERATION_NEEDS = ("numpy", "expecttest")
"""What PyTorch's operator database imports and torch itself does not bring."""

MORE = """\
corpus/models/*.py are searched, corpus/failures/* replayed; corpus/known.toml says what is known.
Give each night a folder of its own beside the earlier ones: they tell it what is new.

aoti-minimize nightly diff A B     what changed from one night to another

exit status: 0 nothing new, 1 a new failure, 2 the command or the corpus is unusable,
130 interrupted (go on with --resume)"""


def _length(text: str) -> float:
    try:
        return seconds(text)
    except ValueError as problem:
        raise argparse.ArgumentTypeError(str(problem)) from None


def _arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    said = "the folder of the corpus (./diff for one of that name); or: diff NIGHT NIGHT"
    add("corpus", nargs="+", metavar="CORPUS", help=said)
    add("--out", type=Path, metavar="DIR", help="the night's folder (needed, except with diff)")
    add("--budget", type=_length, default=28800.0, metavar="TIME", help="8h, 90m or 3600 (default: 8h)")
    add("--seed", type=int, default=0, metavar="N", help="seed of all searches (default: 0)")
    add("--workers", type=count, metavar="N", help="units of work at once (default: one for each core)")
    add("--no-programs", action="store_true", help="generate no programs")
    add("--ray", default="", metavar="ADDRESS", help="work on a Ray cluster (auto: the one of this machine)")
    add("--resume", action="store_true", help="go on with a night that was cut short")


def _act(given: argparse.Namespace, console: Console) -> int:
    if given.corpus[0] == "diff":
        return _diff(given.corpus[1:], console)
    if len(given.corpus) != 1:
        raise Unusable("nightly takes one corpus; see aoti-minimize nightly --help")
    corpus = Path(given.corpus[0])
    try:
        _check(corpus, given)
        return _night(corpus, given, console)
    except (CorpusError, KnownFileError, NoCluster) as problem:
        raise Unusable(str(problem)) from problem


def _check(corpus: Path, given: argparse.Namespace) -> None:
    """Raise Unusable, or one of the errors that are turned into it, for what a person can get wrong."""
    if not corpus.is_dir():
        raise Unusable(f"{corpus} is not a folder; give the folder of a corpus (models/, failures/)")
    models = list((corpus / "models").glob("*.py"))
    if not models and not recordings(corpus) and given.no_programs:
        raise Unusable(f"{corpus} holds neither models/*.py nor failures/*; there is nothing to do")
    read_known(corpus / KNOWN_FILE)
    if given.out is None:
        raise Unusable("a night needs a folder: --out DIR")
    missing = [name for name in GENERATION_NEEDS if importlib.util.find_spec(name) is None]
    if missing and not given.no_programs:
        raise Unusable(
            f"generated programs need {' and '.join(missing)}: pip install 'aoti-minimize[nightly]'; "
            "or leave them out with --no-programs"
        )
    need_compiler()
    out = given.out
    if out.exists() and not out.is_dir():
        raise Unusable(f"{out} is a file; choose another folder with --out")
    begun = (out / FILE).exists()
    if given.resume and not begun:
        raise Unusable(f"there is no night in {out} to resume; run without --resume")
    if not given.resume and out.is_dir() and any(out.iterdir()):
        raise Unusable(f"{out} is not empty; choose another folder with --out, or go on with --resume")


def _night(corpus: Path, given: argparse.Namespace, console: Console) -> int:
    out = given.out.resolve()
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise Unusable(f"{out} cannot be made: {problem.strerror}; choose another with --out") from problem
    past = read_past(out)
    hands: Hands
    if given.ray:
        hands = RayHands(given.ray, out / "units")
    else:
        hands = LocalHands(given.workers or len(os.sched_getaffinity(0)), out / "units")
    plan = Plan(corpus.resolve(), out, given.budget, given.seed, not given.no_programs)
    night = Night(plan, hands, past, console)
    status = NONE
    for number in (signal.SIGINT, *POLITELY):
        signal.signal(number, _interrupt)
    try:
        night.go()
    except KeyboardInterrupt:
        status = INTERRUPTED
    finally:
        hands.stop()
        context = Context(out.name, night.recorded, night.known, past, night.spent)
        summary = summarise(night.state, context)
        write_all(out, summary, past)
    if status == INTERRUPTED:
        console.say("interrupted", f"go on with: {given.command} --resume", always=True)
        return status
    console.say("night", f"{headline(summary)}: {out / 'night.html'}", always=True)
    return FAILURE if summary["counts"].get(NEW) else NONE


def _interrupt(number: int, frame: object) -> None:
    for politely in (signal.SIGINT, *POLITELY):
        signal.signal(politely, signal.SIG_IGN)
    raise KeyboardInterrupt


def _diff(nights: list[str], console: Console) -> int:
    if len(nights) != 2:
        raise Unusable("nightly diff takes two nights: aoti-minimize nightly diff A B")
    try:
        a, b = (read_night(Path(night)) for night in nights)
    except NightError as problem:
        raise Unusable(str(problem)) from problem
    for title, lines in difference(a, b).items():
        console.say(str(len(lines)), title, always=True)
        for line in lines:
            console.say("", line, always=True)
    return NONE


NIGHTLY = Verb(
    "nightly",
    "replay, search and report over a corpus, for a fixed time",
    _act,
    "aoti-minimize nightly corpus --budget 8h --out nights/2026-12-01",
    _arguments,
    more=MORE,
)

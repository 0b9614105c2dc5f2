"""The recorded failures of a corpus: add what a run found, list, show, prune."""

from __future__ import annotations

import argparse
from pathlib import Path

from minimizer import corpus
from minimizer.console import Console
from minimizer.options import NONE, Unusable
from minimizer.verbs.verb import Verb

MORE = """\
aoti-minimize corpus add RUN        record the failure of a run folder
aoti-minimize corpus list           one line for each recorded failure
aoti-minimize corpus show NAME      its status, and its repro
aoti-minimize corpus prune          remove recordings of a bug that another one records already

exit status: 0, or 2 when something is wrong with the command, the run or the corpus"""


def _arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("what", choices=("add", "list", "show", "prune"), help="what to do")
    add("which", nargs="?", default="", metavar="RUN|NAME", help="a run folder (add), a recording (show)")
    add("--corpus", type=Path, default=Path("corpus"), metavar="DIR", help="the corpus (default: corpus)")
    add("--name", default="", metavar="NAME", help="name of the recording (add)")
    add("--judgement", default="", metavar="TEXT", help="why it is a bug, in a sentence (add)")
    add("--issue", default="", metavar="URL", help="its public issue (add)")
    add("--fixed", action="store_true", help="remove what is fixed on every version it was judged on (prune)")
    add("--dry-run", action="store_true", help="say what would be removed (prune)")


def _act(given: argparse.Namespace, console: Console) -> int:
    needs = given.what in ("add", "show")
    if needs != bool(given.which):
        raise Unusable(
            f"corpus {given.what} takes {'a run folder' if given.what == 'add' else 'a name'}"
            if needs
            else f"corpus {given.what} takes no name; see aoti-minimize corpus --help"
        )
    if given.what != "add" and not given.corpus.is_dir():
        raise Unusable(f"{given.corpus} is not a folder; give that of a corpus with --corpus")
    try:
        {"add": _add, "list": _list, "show": _show, "prune": _prune}[given.what](given, console)
    except corpus.CorpusError as problem:
        raise Unusable(str(problem)) from problem
    except OSError as problem:
        raise Unusable(f"{given.corpus} cannot be changed: {problem.strerror}") from problem
    return NONE


def _add(given: argparse.Namespace, console: Console) -> None:
    recording = corpus.add(
        given.corpus, Path(given.which), name=given.name, judgement=given.judgement, issue=given.issue
    )
    console.say("recorded", str(recording.folder), always=True)


def _list(given: argparse.Namespace, console: Console) -> None:
    for recording in corpus.recordings(given.corpus):
        status = recording.status
        fared = ", ".join(f"{v} {f.get('outcome', '?')}" for v, f in status.get("torch", {}).items())
        calls = ", ".join(status.get("calls", ()))
        print(f"{recording.name:<36} {status.get('kind', '?')} of {calls}: {fared}")


def _show(given: argparse.Namespace, console: Console) -> None:
    recording = corpus.named(given.corpus, given.which)
    for key, value in recording.status.items():
        text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
        if value and key != "torch":
            console.say(key, text, always=True)
    for version, fared in recording.status.get("torch", {}).items():
        told = ", ".join(f"{key} {value}" for key, value in fared.items())
        console.say(f"torch {version}", told, always=True)
    repro = recording.folder / "repro.py"
    if repro.exists():
        print(f"\n{repro.read_text(encoding='utf-8', errors='replace')}")


def _prune(given: argparse.Namespace, console: Console) -> None:
    known = corpus.recordings(given.corpus)
    going = corpus.surplus(known)
    if given.fixed:
        going += [r for r in known if corpus.fixed_everywhere(r) and r not in going]
    for recording in going:
        console.say("would go" if given.dry_run else "removed", recording.name, always=True)
        if not given.dry_run:
            corpus.remove(recording)
    if not going:
        console.say("result", "there is nothing to remove", always=True)


CORPUS = Verb(
    "corpus",
    "add, list, show and prune the recorded failures of a corpus",
    _act,
    "aoti-minimize corpus add model-repro --judgement 'eager is right: ...'",
    _arguments,
    more=MORE,
)

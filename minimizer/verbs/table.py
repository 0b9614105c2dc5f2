"""All verbs beside the main job, in the order in which they are listed."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping

from minimizer.verbs.bisect import BISECT
from minimizer.verbs.bundle import BUNDLE
from minimizer.verbs.completion import completion_verb
from minimizer.verbs.corpus import CORPUS
from minimizer.verbs.doctor import DOCTOR
from minimizer.verbs.explain import EXPLAIN
from minimizer.verbs.minimize import takes_options
from minimizer.verbs.nightly import NIGHTLY
from minimizer.verbs.parts import FUZZ, REDUCE
from minimizer.verbs.passes import PASSES_VERB
from minimizer.verbs.replay import REPLAY
from minimizer.verbs.report import REPORT
from minimizer.verbs.verb import Verb

_PLAIN = (FUZZ, REDUCE, REPLAY, EXPLAIN, REPORT, BUNDLE, BISECT, NIGHTLY, CORPUS, DOCTOR, PASSES_VERB)

VERBS: Mapping[str, Verb] = {verb.name: verb for verb in (*_PLAIN, completion_verb(_PLAIN, takes_options))}


def verbs_listed() -> str:
    """The names of all verbs, for the help text."""
    return textwrap.fill(f"verbs, each with --help: {', '.join(VERBS)}; a file of such a name is ./NAME", 99)

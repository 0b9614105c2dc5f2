"""All verbs beside the main job, in the order in which they are listed."""

from __future__ import annotations

from collections.abc import Mapping

from minimizer.verbs.completion import completion_verb
from minimizer.verbs.doctor import DOCTOR
from minimizer.verbs.explain import EXPLAIN
from minimizer.verbs.minimize import takes_options
from minimizer.verbs.passes import PASSES_VERB
from minimizer.verbs.replay import REPLAY
from minimizer.verbs.verb import Verb

_PLAIN = (REPLAY, EXPLAIN, DOCTOR, PASSES_VERB)

VERBS: Mapping[str, Verb] = {verb.name: verb for verb in (*_PLAIN, completion_verb(_PLAIN, takes_options))}


def verbs_listed() -> str:
    """One line for each verb, for the help text."""
    return "\n".join(f"  {verb.name:<11} {verb.summary}" for verb in VERBS.values())

"""The list of passes, in the order in which they pay.

A pass is a name, a line for people and a generator function (see `minimizer.reduce.proposals`). Coarse
passes look at the calls only and are not run again for a change elsewhere; all others run until the case
itself stands still. Cosmetic passes make nothing shorter, and compile anew for each candidate: they are left
out where a judgement costs a whole package.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from minimizer.case import Case
from minimizer.reduce import argument_passes, call_passes, hoist, setting_passes
from minimizer.reduce import graph_passes as graph
from minimizer.reduce import input_passes as inputs
from minimizer.reduce import plain_passes as plain
from minimizer.reduce.cut import Observations
from minimizer.reduce.proposals import Proposals


@dataclass(frozen=True)
class Pass:
    """One way of making a case smaller."""

    name: str
    summary: str
    run: Callable[[Case, Observations], Proposals]
    coarse: bool = False
    cosmetic: bool = False

    def concern(self, case: Case) -> str:
        """What the pass looks at: as long as this stays the same, running it again finds nothing new."""
        return " ".join(n.name for n in case.program.nodes) if self.coarse else case.key


PASSES: tuple[Pass, ...] = (
    Pass("fewer-calls", "fewer calls before the failing one, with the same inputs", call_passes.fewer_calls),
    Pass("slice-outputs", "return fewer values, compute what they need", graph.fewer_outputs, coarse=True),
    Pass("window", "shortest failing stretch of calls, by bisection", graph.window, coarse=True),
    Pass("leap", "read earlier values of the same shape, by bisection", graph.leap, coarse=True),
    Pass("modules", "keep the calls of as few modules as possible", graph.modules, coarse=True),
    Pass("subset", "keep the few calls that matter, far apart as they may be", graph.subset, coarse=True),
    Pass("cut-one", "drop each call by itself", graph.cut_one),
    Pass("bypass", "read a call's operand in place of its result", graph.bypass),
    Pass("functional", "new values in place of writes to old ones", plain.functional),
    Pass("hoist", "a branch or body in place of its higher-order operator", hoist.hoist),
    Pass("outputs-plain", "return one value, or a plain tuple", graph.plain_outputs),
    Pass("inputs-flat", "pass the inputs one by one", inputs.flat_inputs),
    Pass("state-as-input", "parameters and buffers as inputs", plain.state_as_input),
    Pass("merge-inputs", "one input in place of two that look alike", inputs.merge_inputs),
    Pass("constants", "a number in place of an input", plain.constants),
    Pass("settings", "settings back to their defaults", setting_passes.default_settings),
    Pass("static-dims", "fewer dynamic sizes; the last one stays", inputs.static_dims),
    Pass("plain-dims", "a size of its own in place of a multiple of one", inputs.plain_dims),
    Pass(
        "plain-operators",
        "negation, addition or sum in place of others",
        plain.plain_operators,
        cosmetic=True,
    ),
    Pass("drop-arguments", "fewer arguments, plainer constants", argument_passes.plain_arguments),
    Pass("values", "zeros, ones or ordinary numbers as input", inputs.plain_values),
    Pass("sizes", "smaller sizes", inputs.smaller_sizes),
    Pass("strides", "contiguous inputs", inputs.plain_strides),
    Pass("static-sizes", "smaller static sizes", plain.static_sizes, cosmetic=True),
    Pass("dtypes", "float32 and int64 in place of other dtypes", plain.plain_dtypes, cosmetic=True),
    Pass("elements", "single elements zero or one", inputs.plain_elements),
    Pass("earlier", "smaller and plainer inputs of the calls before", call_passes.plain_earlier),
)


class UnknownPass(ValueError):
    """A name that no pass has; the message lists those that come near."""


def select(only: Sequence[str] = (), skip: Sequence[str] = ()) -> tuple[Pass, ...]:
    """The passes named in `only` (all when empty) without those in `skip`, in their usual order.

    Raises UnknownPass; and ValueError when none is left.

    >>> [p.name for p in select(["sizes", "window"], skip=["window"])]
    ['sizes']
    """
    names = [p.name for p in PASSES]
    for name in (*only, *skip):
        if name not in names:
            near = get_close_matches(name, names, cutoff=0.4)
            perhaps = f"do you mean {' or '.join(near)}?" if near else "aoti-minimize passes lists them"
            raise UnknownPass(f"there is no pass {name!r}; {perhaps}")
    chosen = tuple(p for p in PASSES if (not only or p.name in only) and p.name not in skip)
    if not chosen:
        raise ValueError("no pass is left; name one that is not skipped")
    return chosen

"""Output of Inductor's intermediate value printer, levels 1 to 3, and of NaN assertions.

Level 3 prints a line before and after each launch: the kernel of the last *before* without *after* is where
the process died. Level 2 prints values: the first kernel with NaN after it and none before it made them.
Level 1 saves tensors and prints their paths. A process that ends with SIGSEGV loses what is buffered, so
its stdout must be unbuffered (``python -u``) for the last line to mean anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from minimizer.explain.family import SCRIPT, Explanation, Family, pairs


@dataclass(frozen=True)
class Launch:
    """One line of the printer. `when` is ``before`` or ``after``; `buffer` and `bad` from level 2 on down.

    `bad` is ``NaN`` or ``INF`` where the printed statistics show one.
    """

    when: str
    kernel: str
    buffer: str = ""
    path: str = ""
    bad: str = ""


@dataclass(frozen=True)
class Trail:
    """What a whole log of launches comes to.

    `open` is the kernel that was launched and did not return; `launches` how many did; `bad` the first launch
    after which a buffer was not finite; `bad_inputs` the buffers of that kernel that were so before it.
    """

    launches: int
    open: str = ""
    last: str = ""
    bad: Launch | None = None
    bad_inputs: tuple[str, ...] = ()
    saved: tuple[str, ...] = ()


_THREE = re.compile(r"^\[ (?P<when>before|after)_launch: (?P<kernel>[^\n]{1,300}?) \]", re.M)
_TWO = re.compile(
    r"^\[  (?P<when>before|after)_launch - (?P<kernel>[^\n]{1,300}) - (?P<buffer>[^ \n]{1,200})  \]:"
    r"|^\[  aoti_model_inputs - (?P<input>[^ \n]{1,200})  \]:",
    re.M,
)
_STATISTIC = re.compile(r"^(?:Mean|Min|Max) value: (?P<value>-?(?:nan|inf))", re.M)
_ONE = re.compile(
    r"Saved tensor to (?P<path>[^\n]{0,500}?(?P<when>before|after)_launch_"
    r"(?P<kernel>(?:cpp|triton)_\w{1,300}?_\d+(?=_[A-Za-z])|[^\n]{1,300})_"
    r"(?P<buffer>[A-Za-z]\w{0,200}?)_(?:cpu|cuda|xpu|mps)\w{0,9}\.pt)"
)
INPUTS = "the model's inputs"


def launches(text: str) -> Iterator[tuple[int, Launch]]:
    """Every line of the printer in a text, in order for each level."""
    for match in _THREE.finditer(text):
        yield match.start(), Launch(match["when"], match["kernel"])
    heads = list(_TWO.finditer(text))
    for head, after in zip(heads, [*heads[1:], None]):
        body = text[head.end() : after.start() if after else head.end() + 100_000]
        values = [m["value"] for m in _STATISTIC.finditer(body)]
        bad = "NaN" if any("nan" in v for v in values) else "INF" if values else ""
        if head["input"]:
            yield head.start(), Launch("after", INPUTS, head["input"], bad=bad)
        else:
            yield head.start(), Launch(head["when"], head["kernel"], head["buffer"], bad=bad)
    for match in _ONE.finditer(text):
        yield match.start(), Launch(match["when"], match["kernel"], match["buffer"], match["path"])


class Trailing:
    """Folds launches into a `Trail`, one at a time, in constant memory."""

    def __init__(self) -> None:
        self._launches = 0
        self._open = self._last = ""
        self._bad: Launch | None = None
        self._before: tuple[str, set[str]] = ("", set())
        self._bad_inputs: tuple[str, ...] = ()
        self._saved: list[str] = []
        self._known_bad: set[str] = set()

    def take(self, launch: Launch) -> None:
        """The next launch of the log."""
        if launch.path:
            self._saved = [*self._saved[-7:], launch.path]
        if launch.kernel == INPUTS:
            self._note_bad(launch)
        elif launch.when == "before":
            if launch.kernel != self._open:
                self._before = (launch.kernel, set())
            self._open = launch.kernel
            # An output buffer holds garbage before the launch: only what an earlier kernel left counts.
            if launch.bad and launch.buffer in self._known_bad:
                self._before[1].add(launch.buffer)
        else:
            if self._open == launch.kernel:
                self._launches += 1
            self._last, self._open = launch.kernel, ""
            self._note_bad(launch)

    def _note_bad(self, launch: Launch) -> None:
        if not launch.bad:
            self._known_bad.discard(launch.buffer)
            return
        if self._bad is None:
            self._bad = launch
            self._bad_inputs = tuple(sorted(self._before[1])) if launch.kernel == self._before[0] else ()
        self._known_bad.add(launch.buffer)

    def trail(self) -> Trail:
        """What the launches so far come to."""
        return Trail(self._launches, self._open, self._last, self._bad, self._bad_inputs, tuple(self._saved))


def explain_trail(fact: Trail) -> Explanation | None:
    """A log of launches in words; None where there was no launch."""
    if fact.open:
        saved = [path for path in fact.saved if fact.open in path]
        return Explanation(
            "last kernel launched",
            f"{fact.open} was launched and did not return",
            f"The printer wrote its name before the launch and not after. {fact.launches} launches before "
            "it returned.",
            where=pairs(kernel=fact.open, returned_before=fact.last, saved_inputs=", ".join(saved)),
            cause="this kernel, if stdout was unbuffered (python -u) and launches are synchronous; its "
            "inputs may be bad "
            "already",
            next=(
                "AOT_INDUCTOR_DEBUG_INTERMEDIATE_VALUE_PRINTER=2 "
                f"AOT_INDUCTOR_FILTERED_KERNELS_TO_PRINT={fact.open} "
                "python -u your_script.py   # compile again; its inputs",
                "aoti-minimize explain THIS_LOG --package YOUR_PACKAGE.pt2   # what it was made from",
                f"CUDA_LAUNCH_BLOCKING=1 {SCRIPT}   # on a GPU: without it the last line is not the last "
                "kernel",
            ),
        )
    if fact.bad is None:
        return _all_returned(fact) if fact.launches else None
    kernel, buffer = fact.bad.kernel, fact.bad.buffer
    if kernel == INPUTS:
        return Explanation(
            f"first {fact.bad.bad}",
            f"input {buffer} holds {fact.bad.bad}",
            "The model was given it; no kernel made it.",
            where=pairs(input=buffer),
            cause="bad inputs",
            fixes=("check inputs before the call: torch.isfinite(x).all()",),
        )
    came = (
        f"its inputs {', '.join(fact.bad_inputs)} held some already"
        if fact.bad_inputs
        else "no input of it held any"
    )
    return Explanation(
        f"first {fact.bad.bad}",
        f"{buffer} holds {fact.bad.bad} after {kernel}",
        f"It is the first buffer of the log that is not finite; {came}.",
        where=pairs(kernel=kernel, buffer=buffer),
        cause="this kernel makes it from finite inputs: a logarithm, root, division or overflow in it, "
        "legal where eager "
        "gives the same"
        if not fact.bad_inputs
        else "an earlier kernel or constant that the printer does not show",
        next=(
            "aoti-minimize explain THIS_LOG --package YOUR_PACKAGE.pt2   # what it was made from",
            "aoti-minimize model.py   # does eager give NaN there too?",
        ),
    )


def _all_returned(fact: Trail) -> Explanation:
    return Explanation(
        "printer",
        f"all {fact.launches} launches returned",
        f"No kernel died, and no value that was printed is NaN or infinite. The last was {fact.last}.",
        where=pairs(kernel=fact.last),
        cause="after the last kernel, or in wrong values, which only a comparison with eager shows",
        next=("aoti-minimize model.py   # compares with eager, finds the first wrong kernel",),
    )


@dataclass(frozen=True)
class NotFinite:
    """A NaN assertion that failed: ``NaN`` or ``INF``, in which tensor."""

    what: str
    tensor: str


_ASSERTED = re.compile(r"At least one (?P<what>NaN|INF) in (?P<tensor>\w{1,200})")


def not_finite(text: str) -> Iterator[tuple[int, NotFinite]]:
    """Failed NaN assertions."""
    for match in _ASSERTED.finditer(text):
        yield match.start(), NotFinite(match["what"], match["tensor"])


def explain_not_finite(fact: NotFinite) -> Explanation:
    """A NaN assertion in words."""
    given = fact.tensor.startswith(("arg", "primals"))
    return Explanation(
        f"{fact.what} assertion",
        f"{fact.what} in {fact.tensor}",
        f"A model compiled with nan_asserts found {fact.what} in {'an input' if given else 'a buffer'}.",
        where=pairs(tensor=fact.tensor),
        cause="bad inputs"
        if given
        else "the kernel that wrote this buffer; on the CPU only inputs are checked",
        next=(
            "AOT_INDUCTOR_DEBUG_INTERMEDIATE_VALUE_PRINTER=2 python -u your_script.py > log.txt   # "
            "compile again",
            "aoti-minimize explain log.txt   # the first kernel with NaN",
        ),
    )


FAMILIES = (Family("NaN assertion", 15, ("At least one ",), not_finite, explain_not_finite),)
WORDS = ("_launch",)
"""What every line of the printer contains, model inputs aside."""

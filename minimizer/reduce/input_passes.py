"""Passes over what goes in: fewer inputs, fewer and smaller sizes, plain strides, plain elements.

They come after the calls, because a value that looks arbitrary often stops to matter once the calls that were
picky about it are gone. Dynamic sizes go one at a time and the last one always stays: people file bugs of
dynamic programs, and a program whose last dynamic size was fixed is usually another program.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from minimizer.case import Case, Literal, Scalar, Value, contiguous_stride, with_values
from minimizer.program import Ref, Symbol, rename
from minimizer.reduce.cut import Observations, finish, rereading
from minimizer.reduce.dims import (
    concrete_sizes,
    contiguous,
    evaluate_all,
    is_contiguous,
    own_symbol,
    resized,
)
from minimizer.reduce.graph_passes import alike
from minimizer.reduce.proposals import Proposals, fewest, one_by_one
from minimizer.reduce.size import element_cost, input_symbols, value_cost
from minimizer.symbolic import free_symbols, is_symbol, linear
from strategies.values import Fill

FEW_ELEMENTS = 64
FEW_PARTNERS = 3


def flat_inputs(case: Case, observed: Observations) -> Proposals:
    """Pass the inputs one by one, positionally."""
    if not case.program.is_flat:
        yield replace(case, program=replace(case.program, args=None, kwargs=()))


def merge_inputs(case: Case, observed: Observations) -> Proposals:
    """Let an earlier input of the same kind stand for a later one."""
    yield from one_by_one(case, lambda current: (one for _, _, one in merged_inputs(current, observed)))


def merged_inputs(case: Case, observed: Observations) -> Iterator[tuple[str, str, Case | None]]:
    """Each way to do with one input in place of two: (the one gone, the one read instead, candidate)."""
    inputs = case.program.inputs
    for place in reversed(range(len(inputs))):
        later = inputs[place]
        similar = [i for i in inputs[:place] if alike(i.meta, later.meta)]
        for earlier in similar[:FEW_PARTNERS]:
            merged = finish(case, rereading(case.program, {later.name: Ref(earlier.name)}), observed)
            yield later.name, earlier.name, merged
            other = case.value_of(later.name)
            if merged is not None and other != case.value_of(earlier.name):
                yield earlier.name, later.name, _revalued(merged, {earlier.name: other})


def _revalued(case: Case, new: dict[str, Value]) -> Case:
    pairs = zip(case.program.inputs, case.values, strict=True)
    return with_values(case, tuple(new.get(i.name, value) for i, value in pairs))


def static_dims(case: Case, observed: Observations) -> Proposals:
    """Fix dynamic sizes at what they are, or let two equal ones be one; the last one stays dynamic."""
    current = case
    for name in input_symbols(case.program):
        alive = input_symbols(current.program)
        if name not in alive or len(alive) < 2:
            continue
        fixed = without_symbol(current, name, observed)
        if fixed is not None and (yield fixed):
            current = fixed
            continue
        for other in alive:
            united = _united(current, name, other, observed)
            if united is not None and (yield united):
                current = united
                break


def without_symbol(case: Case, name: str, observed: Observations) -> Case | None:
    """The case with a dynamic size fixed at its present value; None when that is not known."""
    size = concrete_sizes(case, observed).get(name)
    if size is None:
        return None
    return finish(case, rename(case.program, {}, {name: size}), observed)


def _united(case: Case, name: str, other: str, observed: Observations) -> Case | None:
    sizes = concrete_sizes(case, observed)
    known = {s.name: s for s in case.program.symbols}
    if name == other or not {name, other} <= known.keys() or sizes.get(name) != sizes.get(other):
        return None
    one, two = known[name], known[other]
    highs = [s.high for s in (one, two) if s.high is not None]
    joint = Symbol(other, max(one.low, two.low), min(highs, default=None), two.hint)
    program = rename(case.program, {}, {name: other})
    others = tuple(s for s in program.symbols if s.name != other)
    return finish(case, replace(program, symbols=(*others, joint)), observed)


def plain_dims(case: Case, observed: Observations) -> Proposals:
    """Write ``d0`` where a dim is ``4*s0`` and nothing else speaks of ``s0``."""
    current = case
    for expr in dict.fromkeys(size for i in case.program.inputs for size in i.meta.shape):
        program = current.program
        form = linear(expr) if isinstance(expr, str) and not is_symbol(expr) else None
        speaking = {
            size for i in program.inputs for size in i.meta.shape if form and form[0] in free_symbols(size)
        }
        if speaking != {expr}:
            continue
        known = {s.name: s for s in program.symbols}
        sizes = concrete_sizes(current, observed)
        changed, symbol = own_symbol(program, str(expr), known, sizes)
        changed = replace(changed, symbols=(*changed.symbols, symbol))
        candidate = finish(current, changed, observed)
        if candidate is not None and (yield candidate):
            current = candidate


def smaller_sizes(case: Case, observed: Observations) -> Proposals:
    """Make each dynamic size as small as its range and the failure allow, then the example's size."""
    current = case
    for symbol in case.program.symbols:
        size = concrete_sizes(current, {}).get(symbol.name)
        if size is None:
            continue
        small = [s for s in sorted({symbol.low, 0, 1, 2, 3}) if symbol.low <= s < size]
        for s in small:
            candidate = at_size(current, symbol.name, s)
            if candidate is not None and (yield candidate):
                current = candidate
                break
        else:
            low, high = max(small, default=size), size
            while high - low > 1:
                middle = (low + high) // 2
                candidate = at_size(current, symbol.name, middle)
                if candidate is not None and (yield candidate):
                    current, high = candidate, middle
                else:
                    low = middle
    for symbol in current.program.symbols:
        for hint in (max(symbol.low, 2), 3, 4):
            if hint < symbol.hint and (symbol.high is None or hint <= symbol.high):
                candidate = _with_hint(current, symbol.name, hint)
                if (yield candidate):
                    current = candidate
                    break


def _with_hint(case: Case, name: str, hint: int) -> Case:
    symbols = tuple(replace(s, hint=hint) if s.name == name else s for s in case.program.symbols)
    return replace(case, program=replace(case.program, symbols=symbols))


def at_size(case: Case, name: str, size: int) -> Case | None:
    """The case with one dynamic size changed in every input that has it; values keep their leading elements.

    None when some shape cannot be computed or some value has too few elements.
    """
    sizes = concrete_sizes(case, {}) | {name: size}
    values: list[Value] = []
    for i, value in zip(case.program.inputs, case.values, strict=True):
        new: Value | None = value
        if name in i.meta.symbols:
            shape = evaluate_all(i.meta.shape, sizes)
            stride = evaluate_all(i.meta.stride, sizes)
            plain = value.stride is None or is_contiguous(i.meta)
            new = None if shape is None else resized(value, shape, None if plain else stride)
        if new is None:
            return None
        values.append(new)
    return with_values(case, tuple(values))


def plain_strides(case: Case, observed: Observations) -> Proposals:
    """Make inputs contiguous: all at once, else one by one."""
    odd = [
        i.name
        for i, value in zip(case.program.inputs, case.values, strict=True)
        if not is_contiguous(i.meta)
        or value.offset
        or value.stride not in (None, contiguous_stride(value.shape))
    ]
    if odd and (yield _contiguous(case, odd)):
        return
    current = case
    for name in odd if len(odd) > 1 else ():
        candidate = _contiguous(current, [name])
        if (yield candidate):
            current = candidate


def _contiguous(case: Case, names: Sequence[str]) -> Case:
    inputs = tuple(
        replace(i, meta=replace(i.meta, stride=contiguous(i.meta.shape))) if i.name in names else i
        for i in case.program.inputs
    )
    plain = {name: replace(case.value_of(name), stride=None, offset=0) for name in names}
    return _revalued(replace(case, program=replace(case.program, inputs=inputs)), plain)


def plain_values(case: Case, observed: Observations) -> Proposals:
    """Plainer elements: all zeros, all ones, all ordinary numbers; else input by input."""
    names = [i.name for i in case.program.inputs]
    current = case
    if len(names) > 1:
        for k in range(3):
            plainer = {name: _filled(case.value_of(name), k) for name in names}
            if (yield _revalued(case, plainer)):
                current = _revalued(case, plainer)
                break
    for name in names:
        for k in range(4):
            value = current.value_of(name)
            new = _filled(value, k)
            if value_cost(new) < value_cost(value):
                candidate = _revalued(current, {name: new})
                if (yield candidate):
                    current = candidate
                    break


def _filled(value: Value, k: int) -> Value:
    """The k-th plainest way to fill a value, or the value as it is where that is plainer already."""
    kinds: tuple[str, ...]
    if value.bound is not None:
        kinds = ("zeros", "ones", "index_ramp", "index_last")
    elif value.dtype.startswith(("float", "bfloat", "complex")):
        kinds = ("zeros", "ones", "normal", "ramp")
    elif value.dtype == "bool":
        kinds = ("zeros", "ones", "alternating")
    else:
        kinds = ("zeros", "ones", "ramp")
    new = replace(value, data=Fill(kinds[min(k, len(kinds) - 1)]), take=None)
    return new if value_cost(new) < value_cost(value) else value


def plain_elements(case: Case, observed: Observations) -> Proposals:
    """Of a few given elements, as many as possible zero, and of the others as many as possible one."""
    current = case
    for name in [i.name for i in case.program.inputs]:
        for plain in (0, 1):
            value = current.value_of(name)
            if not isinstance(value.data, Literal) or len(value.data.elements) > FEW_ELEMENTS:
                continue
            elements = value.data.elements
            odd = [k for k, e in enumerate(elements) if element_cost(e) > plain]
            kept: Sequence[int] = odd
            if odd and not (yield _with_elements(current, name, (), odd, plain)):
                kept = yield from fewest(odd, partial(_with_elements, current, name, odd=odd, plain=plain))
            elif odd:
                kept = ()
            current = _with_elements(current, name, kept, odd, plain)


def _with_elements(case: Case, name: str, kept: Sequence[int], odd: Sequence[int], plain: int) -> Case:
    """The case in which the elements at `odd` places become `plain`, but for those that are `kept`."""
    value = case.value_of(name)
    assert isinstance(value.data, Literal)
    gone = set(odd) - set(kept)
    elements: list[Scalar] = [type(e)(plain) if k in gone else e for k, e in enumerate(value.data.elements)]
    return _revalued(case, {name: replace(value, data=Literal(tuple(elements)))})

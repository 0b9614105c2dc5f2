"""Candidates judged while reducing, by the length of the program and the number of calls that are needed.

Nothing is compiled: the judge looks whether the needed calls are there, in order. Growth should be that of
the logarithm of the length: twice the calls, a few candidates more.
"""

from minimizer.case import Case, Value
from minimizer.program import Input, Node, Program, Ref, Symbol, TensorMeta
from minimizer.reduce.dims import Observed
from minimizer.reduce.search import reduce
from strategies.values import Fill

META, SIZE = TensorMeta("float32", ("n", 8), (8, 1)), Symbol("n", 2, 64, 4)
VALUE = Value("float32", (17, 8), Fill("normal"))


def arguments(parser):
    parser.add_argument("lengths", nargs="*", type=int, default=[50, 200, 500, 1000, 2000])


def chain(length, needed):
    """A chain of calls with the needed ones spread over it, their names, and what eager saw."""
    places = [round((k + 0.4) * length / needed) for k in range(needed)]
    nodes, last = [], "x"
    for k in range(length):
        name = f"needed{places.index(k)}" if k in places else f"idle{k}"
        nodes.append(Node(f"v{k}", f"some.{name}.default", (Ref(last),), meta=META))
        last = f"v{k}"
    program = Program((Input("x", META),), tuple(nodes), Ref(last), symbols=(SIZE,))
    seen = {name: Observed(META, VALUE) for name in ["x", *(n.name for n in nodes)]}
    return Case(program, (VALUE,)), [f"some.needed{k}.default" for k in range(needed)], seen


def judged(length, needed):
    """Candidates judged, and whether just the needed calls are left."""
    case, wanted, seen = chain(length, needed)

    def in_order(candidate):
        calls = iter(n.target for n in candidate.program.nodes)
        return all(any(call == target for call in calls) for target in wanted)

    found = reduce(case, seen, in_order)
    return found.judged, [n.target for n in found.case.program.nodes] == wanted


def main(given):
    print(f"{'calls':>6} {'one needed':>12} {'two':>6} {'three':>6}")
    exact = True
    for length in given.lengths:
        counts = [judged(length, needed) for needed in (1, 2, 3)]
        exact = exact and all(just for _, just in counts)
        print(f"{length:>6} {counts[0][0]:>12} {counts[1][0]:>6} {counts[2][0]:>6}", flush=True)
    print("just the needed calls were left" if exact else "more than the needed calls was left")
    return 0 if exact else 1

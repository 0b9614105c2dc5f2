"""What pruning keeps: everything that is read, written to something alive, or carries a size."""

from minimizer.liveness import alias_bases, prune
from minimizer.program import CHECK, Graph, Input, Node, Program, Ref, State, Sym, Symbol, TensorMeta

M = TensorMeta("float32", (4,), (1,))
X, Y = Input("x", M), Input("y", M)
W = State("w", "buffer", M, "w")


def call(name, operator, *args, mutates=(), meta=M):
    return Node(name, f"aten.{operator}.default", args, meta=meta, mutates=mutates)


def kept(nodes, output, **more):
    return [n.name for n in prune(Program((X, Y), tuple(nodes), output, state=(W,), **more)).nodes]


def write(name, target, *args):
    return call(name, "add_", target, *args, mutates=(0,))


def test_dead_calls_inputs_state_and_bodies_go():
    body = Program((X,), (), (Ref("x"),))
    program = Program(
        (X, Y),
        (
            call("a", "relu", Ref("x")),
            call("dead", "neg", Ref("y")),
            call("deader", "add", Ref("dead"), Ref("w")),
        ),
        Ref("a"),
        state=(W,),
        graphs=(("body", body),),
    )
    pruned = prune(program)
    assert [n.name for n in pruned.nodes] == ["a"]
    assert (pruned.inputs, pruned.state, pruned.graphs) == ((X,), (), ())
    used = Program(
        (X,), (Node("c", "higher_order.cond", (Ref("x"), Graph("body"))),), Ref("c"), graphs=(("body", body),)
    )
    assert prune(used) == used


def test_a_write_to_what_is_returned_stays():
    assert kept([call("a", "clone", Ref("x")), write("b", Ref("a"), 1)], Ref("a")) == ["a", "b"]


def test_a_write_after_the_last_read_goes():
    nodes = [call("a", "clone", Ref("x")), call("r", "relu", Ref("a")), write("b", Ref("a"), 1)]
    assert kept(nodes, Ref("r")) == ["a", "r"]


def test_a_write_before_a_read_stays():
    nodes = [call("a", "clone", Ref("x")), write("b", Ref("a"), 1), call("r", "relu", Ref("a"))]
    assert kept(nodes, Ref("r")) == ["a", "b", "r"]


def test_a_chain_of_writes_stays_whole():
    nodes = [
        call("a", "clone", Ref("x")),
        write("b", Ref("a"), 1),
        write("c", Ref("b"), 2),
        write("d", Ref("a"), 3),
        call("r", "relu", Ref("b")),
    ]
    assert kept(nodes, Ref("r")) == ["a", "b", "c", "d", "r"]


def test_a_write_through_a_view_of_a_view_stays():
    nodes = [
        call("a", "clone", Ref("x")),
        call("v", "view", Ref("a"), [2, 2]),
        call("s", "select", Ref("v"), 0, 1),
        write("b", Ref("s"), 1),
    ]
    assert kept(nodes, Ref("a")) == ["a", "v", "s", "b"]


def test_a_write_to_a_base_is_seen_by_a_view_taken_before():
    nodes = [call("a", "clone", Ref("x")), call("v", "view", Ref("a"), [2, 2]), write("b", Ref("a"), 1)]
    assert kept(nodes, Ref("v")) == ["a", "v", "b"]


def test_what_is_written_is_kept_as_well():
    nodes = [call("a", "clone", Ref("x")), call("n", "neg", Ref("y")), write("b", Ref("a"), Ref("n"))]
    assert kept(nodes, Ref("a")) == ["a", "n", "b"]


def test_writes_to_the_caller_s_tensors_stay():
    assert kept([write("b", Ref("w"), 1)], ()) == ["b"]
    assert kept([call("v", "view", Ref("y"), [2, 2]), write("b", Ref("v"), 1)], ()) == ["v", "b"]


def test_a_write_to_a_copy_of_an_input_goes():
    assert kept([call("a", "clone", Ref("x")), write("b", Ref("a"), 1)], Ref("y")) == []


def test_a_write_to_a_keyword_argument_is_a_write():
    nodes = [
        call("a", "clone", Ref("x")),
        Node("b", "lib.fill.default", (Ref("y"),), (("out", Ref("a")),), meta=None, mutates=(1,)),
    ]
    assert kept(nodes, Ref("a")) == ["a", "b"]


def test_items_share_memory_with_what_they_come_from():
    nodes = [
        call("parts", "split", Ref("x"), 2, meta=(M, M)),
        Node("p", "operator.getitem", (Ref("parts"), 0), meta=M),
        write("q", Ref("p"), 1),
    ]
    program = Program((X,), tuple(nodes), Ref("q"))
    assert alias_bases(program) == {"parts": "x", "p": "x", "q": "x"}


def test_checks_live_as_long_as_what_they_bound():
    size = TensorMeta("int64", ("u0", 1), (1, 1))
    nodes = (
        call("n", "nonzero", Ref("x"), meta=size),
        Node("check", CHECK, (Sym("u0 > 2"),)),
        call("r", "relu", Ref("y")),
    )
    assert [n.name for n in prune(Program((X, Y), nodes, Ref("n"))).nodes] == ["n", "check"]
    assert [n.name for n in prune(Program((X, Y), nodes, Ref("r"))).nodes] == ["r"]


def test_a_dead_input_stays_when_only_it_carries_a_needed_size():
    sized = TensorMeta("float32", ("s0",), (1,))
    program = Program(
        (Input("a", sized), X, Input("b", sized)),
        (call("v", "expand", Ref("x"), [Sym("s0"), 4]),),
        Ref("v"),
        symbols=(Symbol("s0", 2, 64, 8),),
    )
    pruned = prune(program)
    assert [i.name for i in pruned.inputs] == ["a", "x"]
    assert pruned.symbols == program.symbols


def test_symbols_that_nothing_carries_go():
    sized = Input("a", TensorMeta("float32", ("s0",), (1,)))
    program = Program((sized, X), (call("r", "relu", Ref("x")),), Ref("r"), symbols=(Symbol("s0", 2, 64, 8),))
    assert prune(program).symbols == ()


def test_dropping_an_input_flattens_the_arguments():
    nested = Program((X, Y), (call("r", "relu", Ref("x")),), Ref("r"), args=((Ref("x"), Ref("y")),))
    assert prune(nested).is_flat
    both = Program((X, Y), (call("r", "add", Ref("x"), Ref("y")),), Ref("r"), args=((Ref("x"), Ref("y")),))
    assert prune(both).args == both.args

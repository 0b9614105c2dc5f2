"""Long lines against the formatter itself."""

from __future__ import annotations

import difflib
import importlib.util
import random
import subprocess
import sys

import pytest

from minimizer.layout import WIDTH, wrap

STATEMENTS = [
    "x = torch.randn(1000, 2000, 3000, generator=torch.Generator().manual_seed(0)).to(torch.float16)",
    "x = torch.randn(5, generator=torch.Generator().manual_seed(0)).mul(1000000000).to(torch.int8)",
    "x = torch.zeros(3000000000, 40000000000, dtype=torch.float16).as_strided((3, 4, 5, 6), (1, 2, 3))",
    "x = torch.as_strided(torch.arange(1000000, dtype=torch.float16), (30000, 40000), (10000, 200000))",
    "x = torch.as_strided(torch.arange(1000000, dtype=torch.float16), (30000, 40000), (10000, 2000000), 3)",
    f"x = torch.tensor([{', '.join(str(k * 1.5) for k in range(15))}])",
    f"x = torch.tensor([{', '.join(str(k * 1.5) for k in range(16))}])",
    f"x = torch.tensor([{', '.join(str(k * 1.5) for k in range(30))}], dtype=torch.float16)",
    "x = (torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0]), torch.zeros(33333333))",
    "return (torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0]), torch.zeros(3333333))",
    "return aaaaaaaaaaaaaaaaaaaaaaaaaa + bbbbbbbbbbbbbbbbbbbbbbbbbbbb * torch.zeros(33333333) + cccccccc",
    "x = torch.arange(300000000, dtype=torch.float16).reshape(30000, 300000, 40000).transpose(0, 1)",
    "x = torch.arange(300000000, dtype=torch.float16).reshape(30000, 300000, 40000).transpose(0, 1) / 3",
    "x = (torch.arange(300000000, dtype=torch.float16) % 7 - 3).reshape(30000, 300000, 400000000)",
    "x = (torch.arange(300000000, dtype=torch.float16) % 7 - 3).reshape(30000, 300000, 400000000).t()",
    "torch.cond(aaaaaaaaaaaaaaaaaaaaaaaaa, true_graph, false_graph, (aaaaaaaaaaaaaa, bbbbbbbbbbbbbbb, ccc))",
    "z = aaaaaaaaaaaaaaaaaaaa.view(aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa, bbbbbbbbbbbbbbbbbbbbbbbbbb, cccccc)",
    "p = torch.export.export(Model(), inputs, dynamic_shapes={'x': {0: Dim('n', max=64)}, 'y': {0: n}})",
    "xxxxxxxxxxxxxxxx = torch.randn(1000, 2000, generator=torch.Generator().manual_seed(0)) * 3000000000",
    "return 3000000000000000 * torch.randn(1000, 2000, generator=torch.Generator().manual_seed(0))",
    "return (torch.arange(17, dtype=torch.float32) * 0.25 - torch.arange(17) / 3000000000000000000000,)",
    "self.register_buffer('weight_that_is', torch.randn(10, generator=torch.Generator().manual_seed(0)))",
    "x = torch.nn.Parameter(torch.randn(9, generator=torch.Generator().manual_seed(0)), requires_grad=False)",
    "foo(x=torch.arange(17, dtype=torch.float32) * 0.25 - torch.arange(17) / 3000000000000000000000, y=333)",
    "x = {'aaaaaaaaaaaaaaaaaaaaaaaaaaaa': torch.arange(17, dtype=torch.float32), 'b': torch.zeros(10000)}",
    "return foo(torch.arange(300000000, dtype=torch.float16).reshape(30000, 300000, 40000).transpose(0, 1))",
    "return aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.shape[0] == aaaaaaaaaaaaaaaaaaaaaaaaaaa.shape[1]",
]


def expression(random, depth):
    """A random expression of the kinds that programs and values are printed with."""
    kind = random.choice("nncccmltai") if depth else "n"
    inner = [expression(random, depth - 1) for _ in range(random.randint(1, 4))] if depth else []
    match kind:
        case "n":
            return random.choice(["x", "scale", "self.weight", "torch.float32", "17", "-0.5", "x.shape[0]"])
        case "c":
            options = random.choice(
                ["", ", dtype=torch.int8", ", generator=torch.Generator().manual_seed(3)"]
            )
            return f"torch.{random.choice(['full', 'relu', 'as_strided'])}({', '.join(inner)}{options})"
        case "m":
            return f"torch.ones({', '.join(inner)}).{random.choice(['view', 'to'])}({inner[0]})"
        case "l":
            return f"[{', '.join(inner)}]"
        case "t":
            return f"({', '.join(inner)}{',' if len(inner) == 1 else ''})"
        case "a":
            return f"torch.relu({inner[0]}) + {random.choice(['1', 'scale'])}"
        case _:
            return f"helper(value={inner[0]}, other={inner[-1]})"


@pytest.mark.skipif(importlib.util.find_spec("ruff") is None, reason="ruff is not installed")
def test_broken_as_ruff_format_breaks():
    source = random.Random(0)
    lines = [line.replace("'", '"') for line in STATEMENTS]
    while len(lines) < 250:
        line = source.choice(["y = ", "return ", ""]) + expression(source, 3)
        if WIDTH - 8 < len(line) < 200:
            lines.append(line)
    flat = "def f():\n" + "\n".join("    " + line for line in lines) + "\n"
    ours = "def f():\n" + "\n".join(part for line in lines for part in wrap(line, "    ")) + "\n"
    command = [sys.executable, "-m", "ruff", "format", "--isolated", "-"]
    theirs = subprocess.run(command, input=flat, capture_output=True, text=True, check=True).stdout
    wanted, got = theirs.splitlines(), ours.splitlines()
    diff = list(difflib.unified_diff(wanted, got, "ruff", "ours", lineterm="", n=4))
    assert not diff, "\n".join(diff)


def test_what_cannot_be_broken_stays_whole():
    line = f"x = {'a' * 100}"
    assert wrap(line, "    ") == ["    " + line]
    assert wrap("not python at all " + "a" * 100, "") == ["not python at all " + "a" * 100]


def test_header_of_a_function():
    names = ", ".join(f"argument_{k}" for k in range(9))
    assert wrap(f"def forward(self, {names}):", "    ") == [
        "    def forward(",
        "        self,",
        *(f"        argument_{k}," for k in range(9)),
        "    ):",
    ]

"""Random programs: a few ops (random_rows.py), whose operands are parameters or earlier results.

random_check.py runs them.
"""

import pathlib
import re

import random_rows_combining  # noqa: F401
import random_rows_control  # noqa: F401
from random_program import Program
from random_rows import OPS
from random_rows_elements import binary, integer_binary, integer_unary, unary


def random_program(seed, only=""):
  p = Program(seed)
  names = [name for name in sorted(OPS) if re.search(only, name)]
  # Every op in turn, then ops that may use its result: mostly ops that are not elementwise.
  OPS[names[seed % len(names)]](p)
  simple = (unary, binary, integer_unary, integer_binary)
  structural = [n for n in names if OPS[n].func not in simple] or names
  for _ in range(int(p.rng.integers(1, 5))):
    OPS[p.pick(*(structural if p.rng.integers(5) else names))](p)
  if not p.values:
    OPS["stablehlo.add"](p)
  kept = [p.values[int(i)] for i in p.rng.permutation(len(p.values))[:4]]
  results = []
  for value in dict.fromkeys(kept):
    kind = int(p.rng.integers(3))
    results.append((value, p.spec(value.shape, even=True) if kind == 0 else None, kind == 1))
  return p, results


# Rows that no program here contains, with the reason.
WITHOUT = {
    "refused by name": "collective_reduce",
    "no values that could be cut": "infeed outfeed recv send return",
    "refused by name: sizes that are known only at run time, quantisation": (
        "set_dimension_size uniform_dequantize uniform_quantize"),
    "taken apart by passes: test_sugar.py": "async_done async_start",
}


def expected_rows():
  """The names in the op list, without rows that cannot be reached."""
  text = (pathlib.Path(__file__).resolve().parents[3] / "sim/ir/op_list.h").read_text()
  names = set(re.findall(r'^  X\(\w+, "([\w.-]+)", -?\d', text, re.M))
  skipped = {f"stablehlo.{n}" for group in WITHOUT.values() for n in group.split()}
  return {n for n in names if n not in skipped and not n.startswith(("sdy.", "minipod."))}


KINDS = """
elementwise;rotated;bitcast pieces;broadcast from;broadcast new;concatenated;beside concatenated;sliced;
beside sliced;padded;beside padded;reversed;beside reversed;transposed;reshaped;counted;beside counted;
dot batch;dot contracting;dot lhs free;dot rhs free;convolution batch;convolution batch groups;
convolution feature groups;convolution input features;convolution output features;convolution spatial;
convolution window;matrix batch;matrix;fft batch;fft transformed;top_k batch;top_k searched;reduced;kept;
window;beside window;sorted;sort batch;norm feature;norm batch;random;random state;gather batching;
gather dropped;gather whole;gather window;gather index batch;gather index batching;gather index vector;
scatter batching;scatter dropped;scatter whole;scatter window;scatter index batch;
scatter index batching;scatter index vector;dynamic slice window;dynamic slice whole;update window;
update whole;carried;returned;collective;beside collective;in uneven parts
"""

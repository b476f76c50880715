"""Runs the cases of fixtures/operands on minipod, through PJRT, and on JAX's CPU backend.

The expected results in the files are XLA's, unless the files say why not.
"""

import pathlib
import re
import textwrap

import jax
import numpy as np
import pytest
from jaxlib import xla_client as xc

from differential import EMITTERS

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "fixtures" / "operands"
# Lines that are not StableHLO.
MARKS = ("differs ", "alone ", "refused ", "replicas ")


def cases_of(title, text):
  name, lines = None, []
  for line in text.splitlines():
    if not line or line.startswith("#"):
      continue
    if line.startswith("case "):
      if name is not None:
        yield name, lines
      name, lines = f"{title}: {line[5:]}", []
    else:
      lines.append(line.split(" # ")[0].rstrip())
  yield name, lines


def read_cases():
  """(file and name, lines) of all cases."""
  for path in sorted(FOLDER.glob("*.txt")):
    yield from cases_of(path.stem, path.read_text())


def is_marked(lines, *marks):
  return any(line.startswith(marks) for line in lines)


def declaration(line):
  """"%name : type = value" in parts."""
  name, rest = line.split(" : ", 1)
  return name, *rest.split(" = ", 1)


def program(lines):
  """The case's program: it returns computed and expected values in turn."""
  body, types, results = [], [], []
  for line in lines:
    if line.startswith("operand "):
      name, kind, value = declaration(line[8:])
      body.append(f"{name}_given = stablehlo.constant {value} : {kind}")
      body.append(f"{name} = stablehlo.optimization_barrier {name}_given : {kind}")
    elif line.startswith("expect "):
      name, kind, value = declaration(line[7:])
      expected = f"%expected_{len(results)}"
      body.append(f"{expected} = stablehlo.constant {value} : {kind}")
      types += [kind, kind]
      results += [name, expected]
    elif not line.startswith(MARKS):
      body.append(line)
  kinds = ", ".join(types)
  return "\n".join([f"module {{ func.func public @main() -> ({kinds}) {{", *body,
                    f"return {', '.join(results)} : {kinds} }} }}"])


def same(left, right):
  """Whether the bits are the same; all NaNs count as equal."""
  if left.dtype.kind in "iub" or left.tobytes() == right.tobytes():
    return left.tobytes() == right.tobytes()
  wide = np.complex128 if left.dtype.kind == "c" else np.float64
  left, right = left.astype(wide), right.astype(wide)
  numbers = ~np.isnan(right)
  return (np.array_equal(left, right, equal_nan=True) and
          np.array_equal(np.signbit(left.real[numbers]), np.signbit(right.real[numbers])))


CASES = [case for case in read_cases() if not is_marked(case[1], "replicas ", "refused ")]


def test_the_documented_format():
  """The README shows one of the cases."""
  shown = re.search(r"\n\n((?:    .*\n)+)", (FOLDER / "README.md").read_text()).group(1)
  [(name, lines)] = cases_of("README", textwrap.dedent(shown))
  assert name == "README: a name" and len(lines) == 3
  test_operands(lines, "minipod")


@pytest.mark.parametrize("platform", ["minipod", "cpu"])
@pytest.mark.parametrize("lines", [c[1] for c in CASES], ids=[c[0] for c in CASES])
def test_operands(lines, platform):
  # JAX's client does not even send programs that StableHLO's verifier refuses.
  if is_marked(lines, "alone " if platform == "cpu" else "alone StableHLO"):
    return
  device = jax.devices(platform)[0]
  options = xc.CompileOptions()
  if platform == "cpu":  # with users' settings: conftest.py chooses settings that compile quickly
    options.env_option_overrides = list(EMITTERS.items())
  executable = device.client.compile_and_load(program(lines), xc.DeviceList((device,)), options)
  arrays = executable.execute_sharded([]).disassemble_into_single_device_arrays()
  values = [np.asarray(a[0]) for a in arrays]
  assert values
  agrees = all(same(found, wanted) for found, wanted in zip(values[::2], values[1::2]))
  # The file must not excuse a deviation that no longer exists.
  assert agrees != (platform == "cpu" and is_marked(lines, "differs ")), values

"""Composites with regions: they are computed by their decomposition, except chlo.scan, which has forms of its own.

TorchTPU writes cumulative reductions, and what is made of them, as chlo.scan.  The same composite under another name is
its decomposition, so results are compared with those.
"""

import os
import pathlib
import re
import subprocess

import jax
from jaxlib import xla_client as xc
import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
OPT = pathlib.Path(os.environ.get("MINIPOD_BUILD", ROOT / "build")) / "minipod-opt"
ZERO = {"bool": "false", "int32": "0", "complex64": "(0.0, 0.0)"}


def compile(text):
  device = jax.devices()[0]
  return device.client.compile_and_load(text, xc.DeviceList((device,)), xc.CompileOptions())


def run(text, *args):
  device = jax.devices()[0]
  found = compile(text).execute_sharded([jax.device_put(a, device) for a in args])
  return [np.asarray(a[0]) for a in found.disassemble_into_single_device_arrays()]


def tensor(shape, dtype):
  name = {"float32": "f32", "float64": "f64", "int32": "i32", "bool": "i1", "complex64": "complex<f32>",
          "bfloat16": "bf16"}[str(np.dtype(dtype))]
  return "tensor<" + "".join(f"{n}x" for n in shape) + name + ">"


PROGRAM = """
module {
  func.func public @main(PARAMETERS) -> (TYPES) {
    INITS
    %out:COUNT = "stablehlo.composite"(OPERANDS) <{
      composite_attributes = {ATTRIBUTES}, decomposition = @impl, name = "NAME", version = 1 : i32}> ({
    ^bb0(STEP_PARAMETERS):
      STEP
      stablehlo.return RETURNED, RETURNED : ELEMENTS, ELEMENTS
    }) : (TYPES) -> (TYPES)
    return RESULTS : TYPES
  }
  func.func private @impl(ARRAYS, STARTS) -> (TYPES) {
    %zero = stablehlo.constant dense<0> : tensor<i64>
    %one = stablehlo.constant dense<1> : tensor<i64>
    %count = stablehlo.constant dense<LENGTH> : tensor<i64>
    %last = stablehlo.constant dense<LAST> : tensor<i64>
    EMPTY
    %w:LOOP_COUNT = stablehlo.while(%k = %zero, LOOP_VALUES) : tensor<i64>, ELEMENTS, WHOLES
    cond {
      %more = stablehlo.compare LT, %k, %count : (tensor<i64>, tensor<i64>) -> tensor<i1>
      stablehlo.return %more : tensor<i1>
    } do {
      %back = stablehlo.subtract %last, %k : tensor<i64>
      SLICES
      STEP
      UPDATES
      %next = stablehlo.add %k, %one : tensor<i64>
      stablehlo.return %next, RETURNED, UPDATED : tensor<i64>, ELEMENTS, WHOLES
    }
    return LOOP_RESULTS : TYPES
  }
}"""


class Scan:
  """A scan of arrays of one shape and `types` (a dtype for each), whose carries are its outputs.

  `step` is the text of the region: it reads %x0, %x1, ... and %c0, %c1, ... and defines %r0, %r1, ... of the types !t0,
  !t1, ...; !p is the type of booleans.
  """

  def __init__(self, shape, dim, types, inits, step, reverse=False, associative=True):
    self.shape, self.dim, self.types, self.inits, self.step = shape, dim, types, inits, step
    self.reverse, self.associative = reverse, associative

  def attributes(self, changes):
    halves = f"array<i64: {len(self.types)}, {len(self.types)}>"
    said = {"dimension": f"{self.dim} : i64", "is_associative": str(self.associative).lower(),
            "is_reverse": str(self.reverse).lower(), "operandSegmentSizes": halves, "resultSegmentSizes": halves,
            "scan_dim_size": f"{self.shape[self.dim]} : i64", **changes}
    return ", ".join(f"{name} = {value}" for name, value in said.items())

  def text(self, name="chlo.scan", init_arguments=False, **changes):
    shape, dim, numbers = self.shape, self.dim, range(len(self.types))
    rest, part = shape[:dim] + shape[dim + 1:], shape[:dim] + (1,) + shape[dim + 1:]
    element, whole, thin = [[tensor(s, t) for t in self.types] for s in (rest, shape, part)]
    each = lambda form, end=", ": end.join(
        form.format(i=i, e=element[i], w=whole[i], t=thin[i], zero=ZERO.get(self.types[i], "0.0"), init=self.inits[i])
        for i in numbers)
    at = ", ".join(("%back" if self.reverse else "%k") if d == dim else "%zero" for d in range(len(shape)))
    places = ", ".join("tensor<i64>" for _ in shape)
    sizes = ", ".join(map(str, part))
    step = self.step.replace("!p", tensor(rest, "bool"))
    for i in numbers:
      step = step.replace(f"!t{i}", element[i])
    words = {
        "STEP_PARAMETERS": each("%x{i}: {e}") + ", " + each("%c{i}: {e}"),
        "PARAMETERS": each("%a{i}: {w}") + (", " + each("%i{i}: {e}") if init_arguments else ""),
        "INITS": "" if init_arguments else each("%i{i} = stablehlo.constant dense<{init}> : {e}", "\n"),
        "OPERANDS": each("%a{i}") + ", " + each("%i{i}"),
        "ATTRIBUTES": self.attributes(changes),
        "NAME": name,
        "RETURNED": each("%r{i}"),
        "LOOP_RESULTS": ", ".join([f"%w#{1 + len(numbers) + i}" for i in numbers] + [f"%w#{1 + i}" for i in numbers]),
        "RESULTS": ", ".join(f"%out#{i}" for i in range(2 * len(numbers))),
        "ARRAYS": each("%a{i}: {w}"),
        "STARTS": each("%i{i}: {e}"),
        "LENGTH": str(shape[dim]),
        "LAST": str(shape[dim] - 1),
        "EMPTY": each("%e{i} = stablehlo.constant dense<{zero}> : {w}", "\n"),
        "LOOP_COUNT": str(1 + 2 * len(numbers)),
        "COUNT": str(2 * len(numbers)),
        "LOOP_VALUES": each("%c{i} = %i{i}") + ", " + each("%o{i} = %e{i}"),
        "SLICES": each("%s{i} = stablehlo.dynamic_slice %a{i}, AT, sizes = [SIZES] : ({w}, PLACES) -> {t}\n"
                       "%x{i} = stablehlo.reshape %s{i} : ({t}) -> {e}", "\n"),
        "UPDATES": each("%y{i} = stablehlo.reshape %r{i} : ({e}) -> {t}\n"
                        "%z{i} = stablehlo.dynamic_update_slice %o{i}, %y{i}, AT : ({w}, {t}, PLACES) -> {w}", "\n"),
        "UPDATED": each("%z{i}"),
        "ELEMENTS": each("{e}"),
        "WHOLES": each("{w}"),
        "TYPES": each("{w}") + ", " + each("{e}"),
        "STEP": step,
        "SIZES": sizes,
        "PLACES": places,
        "AT": at,
    }
    text = PROGRAM
    for word, put in words.items():
      text = re.sub(rf"\b{word}\b", lambda _: put, text)
    return text


def reduction(op, shape, dim, dtype="float32", init="0.0", **options):
  return Scan(shape, dim, [dtype], [init], f"%r0 = stablehlo.{op} %x0, %c0 : !t0", **options)


def values(shape, dtype, seed=0):
  rng = np.random.default_rng(seed)
  if dtype == "bool":
    return rng.random(shape) < 0.7
  if dtype == "int32":
    return rng.integers(-5, 6, shape).astype(np.int32)
  x = rng.standard_normal(shape)
  if dtype == "complex64":
    x = x + 1j * rng.standard_normal(shape)
  return x.astype(dtype)


REDUCTIONS = [("add", "float32", "0.0", np.cumsum), ("multiply", "float32", "1.0", np.cumprod),
              ("maximum", "float32", "-3.40282347E+38", np.maximum.accumulate),
              ("minimum", "int32", "2147483647", np.minimum.accumulate), ("add", "int32", "0", np.cumsum),
              ("and", "bool", "true", np.logical_and.accumulate), ("or", "bool", "false", np.logical_or.accumulate),
              ("add", "complex64", "(0.0, 0.0)", np.cumsum), ("multiply", "complex64", "(1.0, 0.0)", np.cumprod)]


@pytest.mark.parametrize("op, dtype, init, wanted", REDUCTIONS, ids=lambda p: getattr(p, "__name__", p))
@pytest.mark.parametrize("shape, dim, reverse", [((9,), 0, False), ((3, 7), 1, False), ((4, 5, 3), 1, True),
                                                 ((1, 1), 0, False)])
def test_reductions(op, dtype, init, wanted, shape, dim, reverse):
  scan = reduction(op, shape, dim, dtype, init, reverse=reverse)
  x = values(shape, dtype)
  out, carry = run(scan.text(), x)
  turned = np.flip(x, dim) if reverse else x
  expected = wanted(turned, axis=dim)
  last = np.take(expected, -1, dim)
  np.testing.assert_allclose(out, np.flip(expected, dim) if reverse else expected, rtol=1e-5)
  np.testing.assert_allclose(carry, last, rtol=1e-5)
  for a, b in zip((out, carry), run(scan.text("another.scan"), x)):
    np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


MAX_WITH_INDEX = """%r0 = stablehlo.maximum %c0, %x0 : !t0
  %gt = stablehlo.compare GT, %c0, %x0 : (!t0, !t0) -> !p
  %eq = stablehlo.compare EQ, %c0, %x0 : (!t0, !t0) -> !p
  %more = stablehlo.maximum %c1, %x1 : !t1
  %tie = stablehlo.select %eq, %more, %x1 : !p, !t1
  %r1 = stablehlo.select %gt, %c1, %tie : !p, !t1"""
LOG_SUM_EXP = """%m = stablehlo.maximum %x0, %c0 : !t0
  %a = stablehlo.subtract %x0, %m : !t0
  %b = stablehlo.subtract %c0, %m : !t0
  %ea = stablehlo.exponential %a : !t0
  %eb = stablehlo.exponential %b : !t0
  %s = stablehlo.add %ea, %eb : !t0
  %l = stablehlo.log %s : !t0
  %f = stablehlo.add %m, %l : !t0
  %finite = stablehlo.is_finite %m : (!t0) -> !p
  %r0 = stablehlo.select %finite, %f, %m : !p, !t0"""


@pytest.mark.parametrize("shape, dim", [((6,), 0), ((40, 30), 1), ((40, 30), 0), ((2, 5, 3), 1), ((5, 1, 33), 2)])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("types, inits, step", [(("float32", "int32"), ("-3.40282347E+38", "0"), MAX_WITH_INDEX),
                                                (("float32",), ("0xFF800000",), LOG_SUM_EXP),
                                                (("float32",), ("0.5",), "%r0 = stablehlo.subtract %x0, %c0 : !t0")],
                         ids=["max", "logsumexp", "difference"])
def test_other_scans_are_their_decomposition(shape, dim, reverse, types, inits, step):
  """They may be a loop over transposed arrays, with the same bits."""
  scan = Scan(shape, dim, types, inits, step, reverse=reverse, associative="subtract %x0, %c0" not in step)
  args = [values(shape, t, i) for i, t in enumerate(types)]
  for a, b in zip(run(scan.text(), *args), run(scan.text("another.scan"), *args)):
    np.testing.assert_array_equal(a, b)


def test_starts_that_are_not_neutral():
  """A start may be any value, or one that is known only when the program runs."""
  x = values((3, 8), "float32")
  scan = reduction("add", (3, 8), 1, init="2.5")
  np.testing.assert_allclose(run(scan.text(), x)[0], 2.5 + np.cumsum(x, 1), rtol=1e-5, atol=1e-5)
  start = np.array([1, 2, 3], np.float32)
  out, carry = run(scan.text(init_arguments=True), x, start)
  np.testing.assert_allclose(out, start[:, None] + np.cumsum(x, 1), rtol=1e-5, atol=1e-5)
  np.testing.assert_array_equal(carry, out[:, -1])
  flat = reduction("maximum", (8,), 0, init="-1.0")
  out, _ = run(flat.text(init_arguments=True), x[0], np.float32(0.1))
  np.testing.assert_array_equal(out, np.maximum(0.1, np.maximum.accumulate(x[0])).astype(np.float32))


@pytest.mark.parametrize("changes", [{"dimension": "2 : i64"}, {"dimension": "-1 : i64"}, {"scan_dim_size": "7 : i64"},
                                     {"operandSegmentSizes": "array<i64: 2, 0>"}, {"is_reverse": '"yes"'},
                                     {"resultSegmentSizes": "array<i64: 9, -7>"}, {"is_associative": "7 : i64"}],
                         ids=str)
def test_attributes_that_do_not_fit(changes):
  """Then only the decomposition says what is meant."""
  x = values((3, 8), "float32")
  scan = reduction("add", (3, 8), 1)
  np.testing.assert_allclose(run(scan.text(**changes), x)[0], np.cumsum(x, 1), rtol=1e-5, atol=1e-5)


def test_forms():
  """A reduction has no loop, and a loop along the innermost dimension is over transposed arrays."""
  def prepared(scan):
    opt = subprocess.run([OPT, "--prepare", "-"], input=scan.text(), capture_output=True, text=True, timeout=60)
    assert opt.returncode == 0, opt.stderr
    return opt.stdout

  sums = prepared(reduction("add", (64, 512), 1))
  assert "reduce_window" in sums and "while" not in sums
  difference = "%r0 = stablehlo.subtract %x0, %c0 : !t0"
  loop = prepared(Scan((64, 512), 1, ["float32"], ["0.0"], difference))
  assert "while" in loop and loop.count("stablehlo.transpose") == 2
  loop = prepared(Scan((512, 64), 0, ["float32"], ["0.0"], difference))
  assert "while" in loop and "stablehlo.transpose" not in loop

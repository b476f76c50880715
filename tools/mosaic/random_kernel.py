"""Random kernels with shapes that JAX lowers for TPUs.

A kernel has a grid, a table of scalars that chooses blocks, operands and results of several types in blocks, an operand
and a result in HBM, scratch memory, and a body of random expressions.  All blocks have the same last two dimensions.  All
numbers are whole and at most LIMIT, so every way to compute them gives the same bits.  A kernel sets a result's block when
it first sees it, then adds to it.
"""

import dataclasses
import random

import jax
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
import jax.numpy as jnp
import numpy as np

LIMIT = 61
TYPES = (np.float32, np.float32, jnp.bfloat16, np.int32, np.int8)
SCALARS = np.array([3, 0, 2, 1, 5, 4], np.int32)
UNARY = {"negate": lambda x: -x, "abs": jnp.abs, "sign": jnp.sign, "double": lambda x: x * 2,
         "half": lambda x: jnp.floor(x * .5), "square": lambda x: x * x}
BINARY = {"add": jnp.add, "subtract": jnp.subtract, "multiply": jnp.multiply, "max": jnp.maximum, "min": jnp.minimum,
          "select": lambda x, y: jnp.where(x > y, x, y - 1)}
REDUCTIONS = {"sum": jnp.sum, "max": jnp.max, "min": jnp.min}


@dataclasses.dataclass
class Array:
  """An operand or result in blocks: the counts of blocks, and what chooses each of them."""
  dtype: object
  counts: tuple  # of blocks: along an outer dimension, rows, columns
  choices: tuple  # for each of these (kind, factors, offset)


@dataclasses.dataclass
class Kernel:
  grid: tuple
  block: tuple  # rows and columns
  operands: list
  results: list
  known: list  # for each result: how many dimensions of the grid choose its block
  aliases: dict
  pages: int  # blocks of the operand in HBM
  stores_steps: bool  # whether each step also copies a block to a result in HBM
  body: list  # an expression and a condition for each result
  is_looped: bool  # whether results are computed in chunks of rows


def generate(seed: int) -> Kernel:
  rng = random.Random(seed)
  grid = tuple(rng.choice((1, 2, 2, 3)) for _ in range(rng.choice((1, 1, 2, 3))))
  block = rng.choice((32, 32, 64)), rng.choice((128, 128, 256))
  operands = [_make_operand(rng, grid) for _ in range(rng.choice((1, 2, 3)))]
  results, known, aliases = [], [], {}
  for number in range(rng.choice((1, 1, 2))):
    known.append(rng.randrange(len(grid) + 1))
    results.append(_make_result(rng, grid, known[-1]))
    if rng.random() < 0.3:  # an operand of the same blocks, in the same place
      aliases[len(operands)] = number
      operands.append(dataclasses.replace(results[-1]))
  pages = rng.choice((0, 1, 2, 4))
  body = [(_make_expression(rng, len(operands), pages, block, 3), rng.choice((None, None, 0, 1))) for _ in results]
  return Kernel(grid, block, operands, results, known, aliases, pages, rng.random() < 0.3, body, rng.random() < 0.3)


def _make_operand(rng, grid) -> Array:
  counts = tuple(rng.choice((1, 2, 3)) for _ in range(3))
  choices = tuple((rng.choice(("sum", "sum", "half", "scalar")), tuple(rng.choice((0, 1, 1, 2)) for _ in grid),
                   rng.choice((0, 0, 1))) for _ in counts)
  return Array(rng.choice(TYPES), counts, choices)


def _make_result(rng, grid, known) -> Array:
  """A result whose block is chosen by the first `known` dimensions of the grid, each block once."""
  places = list(range(known)) + [None] * (3 - known)
  rng.shuffle(places)
  counts = tuple(1 if place is None else grid[place] for place in places)
  choices = []
  for place in places:
    factors = tuple(int(axis == place) for axis in range(len(grid)))
    kind = rng.choice(("sum", "reverse")) if place is not None else "sum"
    choices.append((kind, factors, 0))
  return Array(rng.choice(TYPES), counts, tuple(choices))


def _make_expression(rng, operands, pages, block, depth):
  if depth == 0 or rng.random() < 0.15:
    leaf = rng.choice(("operand", "operand", "operand", "page", "step", "iota", "kept"))
    if leaf == "page" and pages == 0:
      leaf = "operand"
    return leaf, rng.randrange(operands) if leaf == "operand" else rng.randrange(4)
  inner = lambda: _make_expression(rng, operands, pages, block, depth - 1)
  kind = rng.choice(("unary", "binary", "binary", "binary", "roll", "reduce", "mask", "matmul", "transpose", "convert",
                     "shift"))
  if kind == "unary":
    return kind, rng.choice(sorted(UNARY)), inner()
  if kind == "binary":
    return kind, rng.choice(sorted(BINARY)), inner(), inner()
  if kind == "roll":
    axis = rng.choice((0, 1))
    return kind, rng.randrange(1, block[axis]), axis, inner()
  if kind == "reduce":
    return kind, rng.choice(sorted(REDUCTIONS)), rng.choice((0, 1)), inner()
  if kind == "mask":
    return kind, rng.choice((0, 1)), rng.randrange(1, 40), inner(), inner()
  if kind == "convert":
    return kind, rng.choice(("bfloat16", "int32", "int8")), inner()
  return kind, inner()


# ---- the kernel ----


def _clip(x):
  return jnp.clip(x, -LIMIT, LIMIT)


def _choose(choice, ids, scalars, count):
  kind, factors, offset = choice
  number = offset
  for factor, place in zip(factors, ids):
    number = number + factor * place
  if kind == "scalar":
    number = scalars[lax.rem(jnp.int32(number), jnp.int32(len(SCALARS)))]
  elif kind == "half":
    number = lax.div(jnp.int32(number), jnp.int32(2))
  elif kind == "reverse":
    return count - 1 - number
  return lax.rem(jnp.int32(number), jnp.int32(count))


class _Body:
  """Evaluates expressions in a step of the grid; all values have the shape of a block and type f32."""

  def __init__(self, kernel, ids, scalars, refs):
    self.kernel, self.ids, self.scalars, self.refs = kernel, ids, scalars, refs
    self.step = sum(factor * place for factor, place in zip(_strides(kernel.grid), ids)) + jnp.int32(0)

  def find(self, expression):
    kind, *rest = expression
    return getattr(self, "find_" + kind)(*rest)

  def find_operand(self, number):
    return self.refs["operands"][number][...].astype(jnp.float32)

  def find_page(self, number):
    rows, page = self.kernel.block[0], lax.rem(self.step + number, jnp.int32(self.kernel.pages))
    copy = pltpu.make_async_copy(self.refs["pages"].at[pl.ds(page * rows, rows)], self.refs["buffer"].at[number % 2],
                                 self.refs["sems"].at[number % 2])
    copy.start()
    pl.semaphore_signal(self.refs["regular"], number + 1)
    copy.wait()
    pl.semaphore_wait(self.refs["regular"], number + 1)
    return self.refs["buffer"][number % 2]

  def find_step(self, number):
    return jnp.full(self.kernel.block, lax.rem(self.step * (number + 1), jnp.int32(7)).astype(jnp.float32))

  def find_iota(self, number):
    iota = lax.broadcasted_iota(jnp.int32, self.kernel.block, number % 2)
    return (iota & 31).astype(jnp.float32)

  def find_kept(self, number):
    """What the last step has left in scratch memory."""
    return self.refs["kept"][...] + number

  def find_unary(self, name, x):
    return _clip(UNARY[name](self.find(x)))

  def find_binary(self, name, x, y):
    return _clip(BINARY[name](self.find(x), self.find(y)))

  def find_roll(self, shift, axis, x):
    return pltpu.roll(self.find(x), shift, axis)

  def find_reduce(self, name, axis, x):
    return _clip(REDUCTIONS[name](self.find(x), axis=axis, keepdims=True) + jnp.zeros(self.kernel.block, jnp.float32))

  def find_mask(self, axis, bound, x, y):
    iota = lax.broadcasted_iota(jnp.int32, self.kernel.block, axis)
    return jnp.where(iota < bound + self.step, self.find(x), self.find(y))

  def find_matmul(self, x):
    return _clip(jnp.dot(self.find(x), self.refs["weights"][...], preferred_element_type=jnp.float32))

  def find_transpose(self, x):
    x = self.find(x)
    return jnp.transpose(jnp.transpose(x) + 1)

  def find_convert(self, dtype, x):
    return self.find(x).astype(dtype).astype(jnp.float32)

  def find_shift(self, x):
    """An integer's shifts."""
    x = self.find(x).astype(jnp.int32)
    return _clip(((x << 1) + (x >> 1) ^ 3).astype(jnp.float32))


def _strides(grid):
  strides = [1] * len(grid)
  for axis in range(len(grid) - 2, -1, -1):
    strides[axis] = strides[axis + 1] * grid[axis + 1]
  return strides


def _run_step(kernel, scalars, refs):
  ids = [pl.program_id(axis) for axis in range(len(kernel.grid))]
  body = _Body(kernel, ids, scalars, refs)

  @pl.when(body.step == 0)
  def clear():
    refs["kept"][...] = jnp.zeros_like(refs["kept"])

  for number, (expression, parity) in enumerate(kernel.body):
    result, value = refs["results"][number], body.find(expression)
    inner = ids[kernel.known[number]:]
    is_first = sum(inner) == 0 if inner else None
    if is_first is None:
      _store(kernel, result, value)
    else:
      @pl.when(is_first)
      def set_block(result=result, value=value):
        _store(kernel, result, value)

      @pl.when(~is_first if parity is None else (~is_first) & ((body.step & 1) == parity))
      def add_block(result=result, value=value):
        _store(kernel, result, _clip(value + result[...].astype(jnp.float32)))
    refs["kept"][...] = value
  if kernel.stores_steps:
    rows = kernel.block[0]
    pltpu.async_copy(refs["kept"], refs["steps"].at[pl.ds(body.step * rows, rows)], refs["sems"].at[0]).wait()


def _store(kernel, result, value):
  if kernel.is_looped and result.dtype == jnp.float32:
    for row in range(0, kernel.block[0], 8):
      result[pl.ds(row, 8), :] = value[row:row + 8, :]
  else:
    result[...] = value.astype(result.dtype)


# ---- the call ----


def needs_tpu_interpreter(seed: int) -> bool:
  """Whether JAX's interpreter of TPUs has to compute the expected results.

  Pallas's own interpreter is several times as fast, but an operand that aliases a result sees the result's new values
  there.  It computes kernels without aliases, except for each eighth one.
  """
  return seed % 8 == 0 or bool(generate(seed).aliases)


def make(seed: int):
  """The function of a random kernel, and its arguments."""
  kernel = generate(seed)
  rows, columns = kernel.block
  shape = lambda array: (array.counts[0], rows * array.counts[1], columns * array.counts[2])
  rank = len(kernel.grid)

  def spec(array):
    return pl.BlockSpec((None, rows, columns), lambda *args: tuple(
        _choose(choice, args[:rank], args[rank], count) for choice, count in zip(array.choices, array.counts)))

  anywhere, steps = pl.BlockSpec(memory_space=pl.ANY), int(np.prod(kernel.grid))
  whole = pl.BlockSpec((columns, columns), lambda *args: (0, 0))

  def body(scalars, *refs):
    count = len(kernel.operands)
    operands, (weights, pages), rest = refs[:count], refs[count:count + 2], refs[count + 2:]
    results, rest = rest[:len(kernel.results)], rest[len(kernel.results):]
    if kernel.stores_steps:
      stored, *rest = rest
    kept, buffer, sems, regular = rest
    _run_step(kernel, scalars, {
        "operands": operands, "weights": weights, "pages": pages, "results": results, "kept": kept, "buffer": buffer,
        "sems": sems, "regular": regular, "steps": stored if kernel.stores_steps else None})

  out = [jax.ShapeDtypeStruct(shape(array), array.dtype) for array in kernel.results]
  outs = [spec(array) for array in kernel.results]
  if kernel.stores_steps:
    out.append(jax.ShapeDtypeStruct((steps * rows, columns), jnp.float32))
    outs.append(anywhere)
  grid_spec = pltpu.PrefetchScalarGridSpec(
      num_scalar_prefetch=1, grid=kernel.grid, in_specs=[spec(array) for array in kernel.operands] + [whole, anywhere],
      out_specs=outs, scratch_shapes=[
          pltpu.VMEM(kernel.block, jnp.float32), pltpu.VMEM((2, *kernel.block), jnp.float32),
          pltpu.SemaphoreType.DMA((2,)), pltpu.SemaphoreType.REGULAR])
  function = pl.pallas_call(body, grid_spec=grid_spec, out_shape=out,
                            input_output_aliases={operand + 1: result for operand, result in kernel.aliases.items()})
  rng = np.random.default_rng(seed)
  number = lambda shape, dtype, most: rng.integers(-most, most + 1, shape).astype(dtype)
  args = [SCALARS, *(number(shape(array), array.dtype, LIMIT) for array in kernel.operands),
          number((columns, columns), np.float32, 1), number((max(kernel.pages, 1) * rows, columns), np.float32, LIMIT)]
  return function, args

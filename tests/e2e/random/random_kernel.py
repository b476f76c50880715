"""Random Pallas kernels, as data, and their calls.

A kernel has a grid, scalars, operands and results in blocks, results that alias operands, and a body.  Scalars, or
arithmetic on the step, choose the blocks.  A kernel reads nothing undefined: it sets a result's block when the block
changes, unless it only adds to values of an operand that it has read in that step.  All numbers are whole and below
LIMIT, so every way to compute them gives the same bits.
"""

import dataclasses
import itertools
import random

import jax
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
import jax.numpy as jnp
import numpy as np

LIMIT = 61.0
SCALARS = np.array([2, 0, 1, 3], np.int32)


@dataclasses.dataclass
class Array:
  """An operand or result: its shape, its block's shape, and for each dimension the choice of the block."""
  shape: tuple
  block: tuple
  choices: tuple

  def count(self, axis):
    return -(-self.shape[axis] // (self.block[axis] or 1))

  def is_even(self):
    """JAX's interpreter gives a result that aliases an operand the operand's padding."""
    return all(total % (size or 1) == 0 for total, size in zip(self.shape, self.block))

  def find(self, ids, scalars):
    return tuple(choose(choice, ids, scalars, self.count(axis))
                 for axis, choice in enumerate(self.choices))

  def spec(self):
    rank = len(self.choices[0][1]) if self.choices else 0
    return pl.BlockSpec(self.block, lambda *args: self.find(args[:rank], args[rank]))


def choose(choice, ids, scalars, count):
  """A block's number: a sum of the step's coordinates, or the scalar at that position, modulo the count."""
  kind, factors, offset = choice
  number = offset
  for factor, place in zip(factors, ids):
    number = number + factor * place
  if kind == "scalar":
    number = scalars[number % len(SCALARS)]
  elif kind == "half":
    number = number // 2
  return number % count


@dataclasses.dataclass
class Kernel:
  grid: tuple
  operands: list
  results: list
  aliases: dict
  body: list
  moves_scalars: bool


def generate(seed: int) -> Kernel:
  rng = random.Random(seed)
  grid = tuple(rng.choice((1, 2, 3)) for _ in range(rng.choice((1, 1, 2, 3))))
  moves_scalars = rng.random() < 0.15
  operands = [make_array(rng, grid, moves_scalars or rng.random() < 0.3)
              for _ in range(rng.choice((1, 2, 3)))]
  results, aliases = [], {}
  for number in range(rng.choice((1, 1, 2))):
    free = [i for i, array in enumerate(operands) if i not in aliases and array.is_even()]
    if free and rng.random() < 0.6:
      source = rng.choice(free)
      aliases[source] = number
      results.append(make_aliased(rng, grid, operands[source], moves_scalars))
    else:
      results.append(make_alone(rng, grid))
  body = [make_statement(rng, operands, results) for _ in range(rng.choice((1, 2, 3)))]
  return Kernel(grid, operands, results, aliases, body, moves_scalars)


def make_choices(rng, grid, rank, by_scalars):
  kinds = ("sum", "sum", "half") + ("scalar",) * (3 * by_scalars)
  return tuple((rng.choice(kinds), tuple(rng.choice((0, 0, 1, 1, 2)) for _ in grid),
                rng.choice((0, 0, 1))) for _ in range(rank))


def make_array(rng, grid, by_scalars):
  rank = rng.choice((1, 2))
  block = tuple(rng.choice((1, 2, 3, None)) for _ in range(rank - 1)) + (rng.choice((2, 4)),)
  shape = tuple((size or 1) * rng.choice((1, 2, 3)) for size in block)
  if rng.random() < 0.2:  # the last block extends past the end
    shape = shape[:-1] + (shape[-1] + 1,)
  return Array(shape, block, make_choices(rng, grid, rank, by_scalars))


def make_aliased(rng, grid, operand, moves_scalars):
  """A result that aliases an operand, often with the operand's own blocks."""
  if rng.random() < 0.4 and not moves_scalars:
    return Array(operand.shape, operand.block, operand.choices)
  block = operand.block
  if rng.random() < 0.4:
    block = tuple(rng.choice([size for size in (1, 2, 3, 4, 6) if total % size == 0])
                  for total in operand.shape)
  return Array(operand.shape, block, make_choices(rng, grid, len(block), False))


def make_alone(rng, grid):
  """A result to whose block no step returns after leaving it, because TPUs do not allow that."""
  while True:
    result = make_array(rng, grid, False)
    blocks = [result.find(ids, SCALARS) for ids in itertools.product(*map(range, grid))]
    runs = [block for block, _ in itertools.groupby(blocks)]
    if len(runs) == len(set(runs)):
      return result


def make_statement(rng, operands, results):
  """("overwrite", operand, number) or (how, result, operand, number)."""
  operand, number = rng.randrange(len(operands)), rng.randrange(1, 7)
  if rng.random() < 0.25:
    return "overwrite", operand, number
  return rng.choice(("set", "add", "add", "loop", "part")), rng.randrange(len(results)), operand, number


# ---- the body ----


def call(kernel: Kernel, arrays, interpret):
  spec = pltpu.PrefetchScalarGridSpec(
      num_scalar_prefetch=1, grid=kernel.grid, in_specs=[array.spec() for array in kernel.operands],
      out_specs=[array.spec() for array in kernel.results],
      scratch_shapes=[pltpu.VMEM((4,), jnp.float32)])
  f = pl.pallas_call(
      lambda *refs: run(kernel, *refs), grid_spec=spec, interpret=interpret,
      out_shape=[jax.ShapeDtypeStruct(array.shape, jnp.float32) for array in kernel.results],
      input_output_aliases={1 + operand: result for operand, result in kernel.aliases.items()})
  return f(SCALARS, *arrays)


def run(kernel, scalars, *refs):
  operands, results = refs[:len(kernel.operands)], refs[len(kernel.operands):-1]
  scratch = refs[-1]
  step, ids = 0, []
  for axis, size in enumerate(kernel.grid):
    ids.append(pl.program_id(axis))
    step = step * size + ids[-1]

  @pl.when(step == 0)
  def begin():
    scratch[...] = jnp.zeros(4, jnp.float32)

  for array, ref in zip(kernel.results, results):
    begin_block(kernel, array, ref, step, ids, scalars)
  for how, *rest in kernel.body:
    STATEMENTS[how](scratch, operands, results, step, *rest)
  if kernel.moves_scalars:
    scalars[0] = (scalars[0] + 1) % 4


def begin_block(kernel, array, ref, step, ids, scalars):
  """Sets a result's block when it has just changed."""
  before, rest = [], step - 1
  for size in reversed(kernel.grid):
    before.insert(0, rest % size)
    rest = rest // size
  is_new = step == 0
  for now, then in zip(array.find(ids, scalars), array.find(before, scalars)):
    is_new = is_new | (now != then)

  @pl.when(is_new)
  def begin():
    ref[...] = jnp.full(ref.shape, step + 1, jnp.float32)


def take(ref, shape, number):
  """Numbers from a whole block, in another shape; elements of the block past the array's end count as 0."""
  block = jnp.where(jnp.isnan(ref[...]), 0, ref[...])
  weights = sum((jax.lax.broadcasted_iota(jnp.int32, block.shape, axis) * (axis + 1)
                 for axis in range(block.ndim)), start=jnp.full(block.shape, number, jnp.int32))
  places = sum((jax.lax.broadcasted_iota(jnp.int32, shape, axis) for axis in range(len(shape))),
               start=jnp.zeros(shape, jnp.int32))
  return (jnp.sum(block * weights) + places) % LIMIT


def overwrite(scratch, operands, results, step, operand, number):
  ref = operands[operand]
  ref[...] = (ref[...] * 2 + number) % LIMIT


def set_whole(scratch, operands, results, step, result, operand, number):
  results[result][...] = take(operands[operand], results[result].shape, number)


def add(scratch, operands, results, step, result, operand, number):
  ref = results[result]
  ref[...] = (ref[...] + take(operands[operand], ref.shape, number)) % LIMIT


def set_part(scratch, operands, results, step, result, operand, number):
  ref = results[result]
  if ref.shape:
    at = step % ref.shape[0]
    ref[pl.ds(at, 1)] = take(operands[operand], (1, *ref.shape[1:]), number)


def loop(scratch, operands, results, step, result, operand, number):
  """Sums in scratch memory what a loop, and a branch in it, read."""
  def body(i, total):
    @pl.when((i + step) % 2 == 0)
    def add_once():
      scratch[...] = (scratch[...] + take(operands[operand], (4,), number)) % LIMIT
    return total + i

  total = jax.lax.fori_loop(0, number, body, 0)
  ref = results[result]
  ref[...] = (ref[...] + jnp.sum(scratch[...]) + total) % LIMIT


STATEMENTS = {"overwrite": overwrite, "set": set_whole, "add": add, "part": set_part, "loop": loop}


def make_arrays(kernel: Kernel, seed: int):
  rng = np.random.default_rng(seed)
  return [rng.integers(0, LIMIT, array.shape).astype(np.float32) for array in kernel.operands]

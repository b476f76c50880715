"""Runs the grid of a Pallas kernel as a loop of the program, with the memories of a TPU.

JAX's interpreter reads each step's blocks from the arrays and writes all of them back.  On a TPU a block stays in VMEM
until the next block has another index:

- An operand's block is fetched when its index changes, and is never written back.  If the kernel overwrites it, later
  steps with the same block see the new values.
- A result's block is written back when its index changes, and after the last step.  Until then, an operand in the same
  memory does not see it.
- Scalars that the kernel writes keep their values in the following steps.  They choose blocks one step later, because a
  TPU fetches blocks one step ahead.

An operand and the result that aliases it share one array, even if their blocks differ.  If a kernel sees both whole, in
HBM, they are one memory.
"""

import functools
import math
import types

from minipod.jax import kernel_body
from minipod.jax import kernel_bounds
from minipod.jax import kernel_windows


def make_interpreter():
  """Makes a function with the arguments of `pallas_call`; looks up all names of JAX that it needs."""
  from jax._src import core
  from jax._src.pallas import core as pallas_core
  from jax._src.pallas import hlo_interpreter

  return functools.partial(_interpret, types.SimpleNamespace(
      discharge=hlo_interpreter.kernel_to_hlo_jaxpr, run=core.eval_jaxpr,
      make_outputs=hlo_interpreter._initialize_output_vals,
      make_uninitialized=hlo_interpreter.primitives.uninitialized_value,
      shape_of=pallas_core._get_block_shape, Squeezed=pallas_core.Squeezed,
      Element=pallas_core.Element, enter=pallas_core.grid_env, Axis=pallas_core.GridAxis,
      body=kernel_body.find_names(), bounds=kernel_bounds.find_names()))


def is_known_to_jax(params) -> bool:
  """Whether JAX's own interpreter computes the kernel correctly."""
  mapping = params["grid_mapping"]
  written = _find_written(params["jaxpr"])[:mapping.num_index_operands + mapping.num_inputs]
  return not (any(written) or params["input_output_aliases"])


def _find_written(jaxpr) -> list[bool]:
  """For each of its memories, whether the kernel writes to it."""
  memories, written = [*jaxpr.constvars, *jaxpr.invars], set()
  for effect in jaxpr.effects:
    if type(effect).__name__ in ("WriteEffect", "AccumEffect"):
      where = getattr(effect, "input_index", None)  # JAX 0.9; later versions have the variable itself
      written.add(effect.input if where is None else memories[where])
  return [memory in written for memory in jaxpr.invars]


class _Loop:
  """A step of the grid, on all memories: scalars, operands, results and scratch.

  `windows` are those of the operands, then those of the results.  If a result aliases an operand, both windows show the
  same array, so there are fewer arrays than windows.
  """

  def __init__(self, names, args, jaxpr, mapping, aliases, name):
    self.names, self.mapping, self.name = names, mapping, name
    self.sizes, args = _take_sizes(mapping, args)
    self.count, self.operands = mapping.num_index_operands, mapping.num_inputs
    self.memories = self._name_memories(jaxpr)
    variables = jaxpr.invars[self.count:]
    self.windows = [kernel_windows.Window(names, self._check_choice(block, memory), variable, memory)
                    for block, variable, memory
                    in zip(mapping.block_mappings, variables, self.memories[self.count:])]
    self._find_arrays(args, aliases)
    self._find_body(jaxpr)
    self.scalars = list(args[:self.count])

  def _name_memories(self, jaxpr) -> list[str]:
    """The names that errors use for the memories of the kernel."""
    mapping, names = self.mapping, jaxpr.debug_info.arg_names or ()
    kinds = ["scalars"] * self.count + ["operand"] * self.operands + ["result"] * mapping.num_outputs
    kinds += ["scratch memory"] * (len(jaxpr.invars) - len(kinds))
    names = [f" '{name}'" for name in names] if len(names) == len(kinds) else [""] * len(kinds)
    return [kind + name for kind, name in zip(kinds, names)]

  def _make_checker(self, kernel, memories, refs, step):
    names = {id(ref): memory for ref, memory in zip(refs, memories)}
    return kernel_bounds.Checker(self.names.bounds, kernel, names, step)

  def _check_choice(self, block, memory: str):
    """The block's description; it checks the scalars that choose the block."""
    closed, rank = block.index_map_jaxpr, len(self.mapping.grid)
    if not closed.jaxpr.eqns or not self.count:
      return block
    make = lambda args: self._make_checker(f"{self.name}: index map of {memory}", self.memories,
                                           args[rank:], args[:rank]).check_access
    return block.replace(index_map_jaxpr=kernel_body.trace_index_map(self.names.body, closed, make))

  def _find_arrays(self, args, aliases):
    outputs = self.names.make_outputs(self.mapping.block_mappings_output, args, aliases)
    self.array_of = list(range(len(self.windows)))  # of each window
    for source, result in aliases:
      if source >= self.count:
        self.array_of[self.operands + result] = source - self.count
    self.shown_by = [[window for window, of in zip(self.windows, self.array_of) if of == array]
                     for array in range(len(self.windows))]
    self.arrays = [kernel_windows.Array(windows) if windows else None for windows in self.shown_by]
    self.values = [array and array.pad(self.names, value)
                   for array, value in zip(self.arrays, [*args[self.count:], *outputs])]

  def _find_body(self, jaxpr):
    """The body, and which memories it changes."""
    jaxpr = self._join(jaxpr)
    self.body, self.consts, scratch = self.names.discharge(jaxpr, (), self.mapping)
    self.scratch = [self.names.make_uninitialized(aval.shape, aval.dtype) for aval in scratch]
    written = _find_written(jaxpr)
    self.written_scalars = [i for i in range(self.count) if written[i]]
    self.written = written[self.count:]
    changing = {of for window, of in enumerate(self.array_of)
                if window >= self.operands or self._is_written_whole(window)}
    self.changing = sorted(changing)
    self.held = [window for window in range(len(self.windows)) if self._is_held(window)]

  def _join(self, jaxpr):
    """Makes an operand and the result that aliases it one memory for the body, if the body sees both whole."""
    same = {}
    for result in range(self.operands, len(self.windows)):
      operand = self.array_of[result]
      if operand != result and self.windows[operand].is_whole and self.windows[result].is_whole:
        same[self.count + result] = self.count + operand
    make = lambda refs, step: self._make_checker(self.name, self.memories, refs, step).check_access
    return kernel_body.trace_anew(self.names.body, jaxpr, self.mapping, same, make)

  def _is_written_whole(self, window: int) -> bool:
    return self.windows[window].is_whole and self.written[window]

  def _is_held(self, window: int) -> bool:
    """Whether the results show that a block stays in VMEM while steps have the same block.

    They do if the kernel overwrites an operand's block, or if the array below it changes.  Otherwise a result that no
    other window shows can be written after each step.
    """
    if self.windows[window].is_whole:
      return False
    if window < self.operands and self.written[window]:
      return True
    of = self.array_of[window]
    return of in self.changing and len(self.shown_by[of]) > 1

  def run(self):
    """All arrays after the last step."""
    import jax

    steps = math.prod(self.sizes)
    scalars = [self.scalars[i] for i in self.written_scalars]
    state = (0, scalars, scalars, [self.values[i] for i in self.changing],
             [self._make_empty(window) for window in self.held], self.scratch)
    if isinstance(steps, int) and steps == 1:
      state = self.step(*state)
    else:
      state = jax.lax.while_loop(lambda state: state[0] < steps, lambda state: self.step(*state),
                                 (jax.numpy.int32(0), *state[1:]))
    number, _, _, changing, held, _ = state
    arrays = self._fill(self.values, self.changing, changing)
    for window, (start, part) in zip(self.held, held):
      self._write_back(arrays, window, number > 0, start, part)
    return arrays

  def _make_empty(self, window: int):
    """The memory that holds a block, and its contents before the first step."""
    import jax.numpy as jnp

    shown = self.windows[window]
    value = self.values[self.array_of[window]]
    start = jnp.zeros(value.ndim, jnp.int32)
    return start, shown.get(value, list(start))

  @staticmethod
  def _fill(everything, places, values):
    """A copy of the list, with other values in some places."""
    filled = list(everything)
    for place, value in zip(places, values):
      filled[place] = value
    return filled

  def step(self, number, choosing, written, changing, held, scratch):
    """The state after a step; the scalars `choosing` choose its blocks.

    They have the values from the start of the step before, because a TPU fetches blocks one step ahead.
    """
    scalars = self._fill(self.scalars, self.written_scalars, written)
    choosing = self._fill(self.scalars, self.written_scalars, choosing)
    arrays = self._fill(self.values, self.changing, changing)
    ids = self._find_ids(number)
    with self.names.enter(self._describe_ids(ids)):
      starts = [window.find(ids, choosing) for window in self.windows]
      for window, start in zip(self.windows, starts):
        self._check_window(window, start, ids)
      parts = self._take_parts(number, arrays, held, starts)
      found = self.names.run(self.body, self.consts, *scalars, *parts, *scratch)
    scalars, parts = found[:self.count], found[self.count:][:len(self.windows)]
    self._store(arrays, starts, parts)
    return (number + 1, written, [scalars[i] for i in self.written_scalars],
            [arrays[i] for i in self.changing],
            [(self._stack(starts[window]), parts[window]) for window in self.held],
            list(found[self.count + len(self.windows):]))

  @staticmethod
  def _stack(start):
    import jax.numpy as jnp

    return jnp.array(start, jnp.int32)

  def _check_window(self, window, start, ids):
    """Checks that a block begins inside its array; it may extend past the end."""
    step = [place for axis, place in enumerate(ids) if axis not in self.mapping.vmapped_dims]
    window.check(self._make_checker(self.name, (), (), step), start, self.mapping.grid)

  def _take_parts(self, number, arrays, held, starts):
    """The blocks of this step.  Results whose block changes are written back before any block is read."""
    is_first, is_new = number == 0, {}
    for window, (start, part) in zip(self.held, held):
      is_new[window] = is_first
      if is_first is not True:
        has_moved = (self._stack(starts[window]) != start).any()
        is_new[window] = is_first | has_moved
        self._write_back(arrays, window, has_moved & ~is_first, start, part)
    parts = [window.get(arrays[of], start)
             for window, of, start in zip(self.windows, self.array_of, starts)]
    for window, (_, part) in zip(self.held, held):
      parts[window] = self._choose(is_new[window], parts[window], part)
    return parts

  @staticmethod
  def _choose(is_first_one, one, other):
    import jax.numpy as jnp

    if is_first_one is True:
      return one
    return other if is_first_one is False else jnp.where(is_first_one, one, other)

  def _write_back(self, arrays, window, is_wanted, start, part):
    """Writes a result's block to its array; an operand's block is never written."""
    if window < self.operands or is_wanted is False:
      return
    shown, of, start = self.windows[window], self.array_of[window], list(start)
    part = self._choose(is_wanted, part, shown.get(arrays[of], start))
    arrays[of] = shown.put(arrays[of], start, part)

  def _store(self, arrays, starts, parts):
    """The new contents of arrays that the step sees whole, and of results that no other window shows."""
    for window, (shown, of) in enumerate(zip(self.windows, self.array_of)):
      if window in self.held or of not in self.changing:
        continue
      if self.written[window] if shown.is_whole else window >= self.operands:
        arrays[of] = shown.put(arrays[of], starts[window], parts[window])

  def _find_ids(self, number):
    """The coordinates of the step in the grid; the last axis varies fastest."""
    import jax
    import jax.numpy as jnp

    ids, number = [], jnp.asarray(number, jnp.int32)
    for size in reversed(self.sizes):
      size = jnp.asarray(size, jnp.int32)
      ids.append(jax.lax.rem(number, size))
      number = jax.lax.div(number, size)
    return tuple(reversed(ids))

  def _describe_ids(self, ids):
    if self.mapping.local_grid_env is not None:
      return self.mapping.local_grid_env(ids, self.sizes)
    return tuple(self.names.Axis(place, size) for axis, (place, size)
                 in enumerate(zip(ids, self.sizes)) if axis not in self.mapping.vmapped_dims)


def _interpret(names, *args, jaxpr, grid_mapping, input_output_aliases, name, **_):
  loop = _Loop(names, args, jaxpr, grid_mapping, input_output_aliases,
               name or jaxpr.debug_info.func_name)
  values = loop.run()
  return [loop.arrays[of].cut(values[of]) for of in loop.array_of[loop.operands:]]


def _take_sizes(mapping, args):
  """The grid's sizes, some of which the program computes, and the operands that follow these."""
  count = mapping.num_dynamic_grid_bounds
  computed = iter(args[:count])
  return tuple(size if isinstance(size, int) else next(computed)
               for size in mapping.grid), args[count:]

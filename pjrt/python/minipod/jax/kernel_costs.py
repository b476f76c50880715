"""Counts the work of a Pallas kernel, from its grid, its blocks and its body."""

import math

# Primitives that move or name elements.  They take no time in addition to those that compute.
_FREE = frozenset((
    "broadcast_in_dim", "get", "swap", "addupdate", "reshape", "squeeze", "expand_dims", "slice",
    "dynamic_slice", "program_id", "num_programs", "multiple_of", "stop_gradient", "copy",
    "masked_load", "masked_swap", "iota", "ref_bitcast", "dma_start", "dma_wait",
    "semaphore_signal", "semaphore_wait", "semaphore_read"))
_FUNCTIONS = frozenset((
    "exp", "exp2", "expm1", "log", "log1p", "logistic", "tanh", "sin", "cos", "tan", "sinh", "cosh",
    "asin", "acos", "atan", "atan2", "erf", "erf_inv", "erfc", "sqrt", "rsqrt", "cbrt", "pow",
    "div", "reciprocal", "rem"))


def name_of(params) -> str:
  return params.get("name") or params["jaxpr"].debug_info.func_name


def describe(params) -> dict:
  """The numbers that the time model needs: `cost_estimate`, if the user sets it, and `kernel`, which is counted here.
  """
  described = {"kernel": _count(params)}
  if estimate := params.get("cost_estimate"):
    described["cost_estimate"] = {
        "flops": int(estimate.flops), "transcendentals": int(estimate.transcendentals),
        "bytes_accessed": int(estimate.bytes_accessed)}
  return described


def _count(params) -> dict:
  """Bytes of the blocks that are fetched and written back, and the work of the body in all steps of the grid."""
  mapping = params["grid_mapping"]
  grid = _sizes(mapping)
  steps = math.prod(grid)
  work = _Work()
  work.add(params["jaxpr"], 1)
  blocks = [_bytes_of_blocks(block, grid) for block in mapping.block_mappings]
  return {"flops": work.flops * steps, "vector": work.vector * steps, "transcendentals": work.functions * steps,
          "bytes_accessed": sum(blocks)}


def _sizes(mapping) -> list[int]:
  """The grid.  If the program computes a size, it counts as if each block of an array were fetched once."""
  grid = [size if isinstance(size, int) else 0 for size in mapping.grid]
  if 0 in grid:
    known = math.prod(size for size in grid if size)
    most = max((math.prod(_counts(block)) for block in mapping.block_mappings), default=1)
    for i, size in enumerate(grid):
      if size == 0:
        grid[i] = max(1, -(-most // known))
        known *= grid[i]
  return grid


# ---- blocks ----


def _lengths(block) -> list[int]:
  """The block's size along each dimension of the array."""
  return [size if isinstance(size, int) else getattr(size, "block_size", None) or 1
          for size in block.block_shape]


def _counts(block) -> list[int]:
  return [-(-size // max(1, length))
          for size, length in zip(block.array_aval.shape, _lengths(block))]


def _bytes_of_blocks(block, grid) -> float:
  """Counts blocks that stay the same from step to step once."""
  array = block.array_aval
  item = getattr(array.dtype, "itemsize", 4)
  innermost = max(_used_dimensions(block, len(grid)), default=-1)
  while innermost >= 0 and grid[innermost] == 1:
    innermost -= 1
  moves = math.prod(grid[:innermost + 1])
  return item * min(math.prod(_lengths(block)), math.prod(array.shape)) * moves


def _used_dimensions(block, rank: int) -> set[int]:
  """The dimensions of the grid that choose the block."""
  jaxpr = getattr(block.index_map_jaxpr, "jaxpr", block.index_map_jaxpr)
  used = {variable: {i} for i, variable in enumerate(jaxpr.invars[:rank])}
  find = lambda atom: used.get(atom, set()) if _is_variable(atom) else set()
  for eqn in jaxpr.eqns:
    everything = set().union(*map(find, eqn.invars))
    for variable in eqn.outvars:
      used[variable] = everything
  return set().union(*map(find, jaxpr.outvars))


def _is_variable(atom) -> bool:
  return not hasattr(atom, "val")


# ---- the body ----


def walk(jaxpr):
  """All equations, those of inner jaxprs too."""
  for eqn in jaxpr.eqns:
    yield eqn
    for inner in inner_bodies(eqn):
      yield from walk(inner)


def inner_bodies(eqn) -> list:
  """The jaxprs among an equation's parameters."""
  found = []
  for value in eqn.params.values():
    for item in value if isinstance(value, (tuple, list)) else (value,):
      item = getattr(item, "jaxpr", item)
      if hasattr(item, "eqns"):
        found.append(item)
  return found


def is_remote(jaxpr) -> bool:
  """Whether the kernel communicates with other devices."""
  for eqn in walk(jaxpr):
    name = eqn.primitive.name
    if name == "get_barrier_semaphore":
      return True
    if name == "dma_start" and sum(map(_is_semaphore, eqn.invars)) > 1:  # one on each side
      return True
    if name == "semaphore_signal" and eqn.params["args_tree"].unflatten(eqn.invars)[3] is not None:
      return True
  return False


def _is_semaphore(atom) -> bool:
  return "sem" in str(getattr(getattr(atom.aval, "inner_aval", None), "dtype", ""))


class _Work:
  """Operations of matmuls, elements of other operations, elements of functions."""

  def __init__(self):
    self.flops = self.vector = self.functions = 0

  def add(self, jaxpr, times: int) -> None:
    for eqn in jaxpr.eqns:
      inner = inner_bodies(eqn)
      if eqn.primitive.name == "cond":
        self._add_largest(inner, times)
      elif inner:
        for body in inner:
          self.add(body, times * int(eqn.params.get("length", 1)))
      elif eqn.primitive.name == "dot_general":
        self.flops += times * _product(eqn)
      elif eqn.primitive.name not in _FREE:
        self._add_elements(eqn, times)

  def _add_largest(self, branches, times: int) -> None:
    each = []
    for branch in branches:
      each.append(_Work())
      each[-1].add(branch, times)
    largest = max(each, key=lambda work: (work.flops, work.vector + 4 * work.functions))
    self.flops += largest.flops
    self.vector += largest.vector
    self.functions += largest.functions

  def _add_elements(self, eqn, times: int) -> None:
    count = max((math.prod(getattr(atom.aval, "shape", ())) for atom in
                 (*eqn.invars, *eqn.outvars) if not hasattr(atom.aval, "inner_aval")), default=0)
    if count <= 1:  # runs on the scalar core
      return
    if eqn.primitive.name in _FUNCTIONS:
      self.functions += times * count
    else:
      self.vector += times * count


def _product(eqn) -> int:
  (contracted, _), _ = eqn.params["dimension_numbers"]
  inner = math.prod(eqn.invars[0].aval.shape[d] for d in contracted)
  return 2 * inner * math.prod(eqn.outvars[0].aval.shape)

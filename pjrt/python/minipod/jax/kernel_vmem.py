"""Counts the VMEM that a Pallas kernel needs on a TPU, and refuses kernels that need too much.

The count is a lower bound: blocks (twice if the next one is fetched meanwhile), scratch memory and
`run_scoped`.  Mosaic adds spilled registers.
"""

import dataclasses
import math
import os
import re

import jax
from minipod.jax import guard
from minipod.jax import kernel_costs

_MIB = 1 << 20
# By device_kind, in MiB: VMEM of a core (JAX's pltpu.get_tpu_info), and what libtpu gives a kernel that
# asks for nothing ("limit 16.00M" in its errors on v5e and v5p, "limit 32.00M" on v6e and 7x).
_CHIPS = {"TPU v2": (16, 16), "TPU v3": (16, 16), "TPU v4": (16, 16), "TPU v4 lite": (16, 16),
          "TPU v5 lite": (128, 16), "TPU v5e": (128, 16), "TPU v5": (64, 16), "TPU v5p": (64, 16),
          "TPU v6 lite": (128, 32), "TPU v6e": (128, 32), "TPU7x": (64, 32)}
_FLAG = re.compile(r"xla_tpu_scoped_vmem_limit_kib=(\d+)")
_LANES = 128


@dataclasses.dataclass
class _Part:
  """A memory of a kernel: its name, its shape, the bytes of a copy and the number of copies."""
  name: str
  shape: str
  size: int
  copies: int = 1


def check_for(params, device_kind: str) -> None:
  """Checks a kernel for the tensor cores of a TPU."""
  options = params.get("compiler_params")
  is_for_tensor_core = getattr(getattr(options, "kernel_type", None), "name", "TC") == "TC"
  if is_for_tensor_core and (options is None or hasattr(options, "vmem_limit_bytes")):
    check(params, kernel_costs.name_of(params), device_kind)


def check(params, name: str, device_kind: str) -> None:
  """Raises Mosaic's error if the kernel does not fit; warns if it fits only with a higher limit."""
  if device_kind not in _CHIPS:
    return
  capacity, usual = (size * _MIB for size in _CHIPS[device_kind])
  parts = _find_parts(params)
  needed = sum(part.size * part.copies for part in parts)
  asked = getattr(params.get("compiler_params"), "vmem_limit_bytes", None)
  limit = min(asked or capacity, capacity)
  where = params["jaxpr"].debug_info.func_src_info
  if needed > limit:
    raise jax.errors.JaxRuntimeError(_word_error(params, name, where, parts, needed, limit))
  if asked is None and needed > (_find_flag() or usual):
    guard.say_once(
        f"the kernel {name!r} ({where}) needs {_show(needed)} of VMEM; a {device_kind} gives a kernel"
        f" {_show(usual)} unless vmem_limit_bytes of pltpu.CompilerParams asks for more")


def _find_flag() -> int | None:
  """The limit that the user has set in libtpu's flags for all programs."""
  flags = " ".join(os.environ.get(name, "") for name in ("LIBTPU_INIT_ARGS", "XLA_FLAGS"))
  found = _FLAG.findall(flags)
  return int(found[-1]) * 1024 if found else None


def _word_error(params, name, where, parts, needed, limit) -> str:
  """libtpu's message, with the largest memories."""
  results = ", ".join(block.array_aval.str_short()
                      for block in params["grid_mapping"].block_mappings_output)
  largest = sorted(parts, key=lambda part: -part.size * part.copies)[:8]
  rows = [f"  {_show(part.size * part.copies)}: {part.name}, {part.shape}"
          + (f", {part.copies} buffers" if part.copies > 1 else "") for part in largest]
  return "\n".join([
      "RESOURCE_EXHAUSTED: Ran out of memory in memory space vmem while allocating on stack for"
      f" %{name} = ({results}) custom-call(...), custom_call_target=\"tpu_custom_call\"."
      f" Scoped allocation with size {_show(needed)} and limit {_show(limit)} exceeded scoped vmem"
      f" limit by {_show(needed - limit)}.", f"Kernel {name!r} ({where}) needs", *rows])


def _show(size: int) -> str:
  """Formats bytes as XLA does."""
  for unit, step in (("G", 1 << 30), ("M", _MIB), ("K", 1024)):
    if size >= step:
      return f"{size / step:.2f}{unit}"
  return f"{size}B"


# ---- counting ----


def _find_parts(params) -> list[_Part]:
  mapping, jaxpr = params["grid_mapping"], params["jaxpr"]
  names = jaxpr.debug_info.arg_names or ()
  names = list(names) if len(names) == len(jaxpr.invars) else [""] * len(jaxpr.invars)
  first = mapping.num_index_operands
  blocks = dict(enumerate(mapping.block_mappings, start=first))
  parts = []
  for place, variable in enumerate(jaxpr.invars):
    if place < first or not _is_in_vmem(variable.aval, place in blocks):
      continue
    part = _describe(variable.aval)
    if place in blocks:
      part.copies = _count_buffers(blocks[place], mapping.grid)
    kind = ("operand" if place < first + mapping.num_inputs else
            "result" if place in blocks else "scratch memory")
    part.name = f"{kind} {names[place]}".rstrip()
    parts.append(part)
  return parts + _find_scoped(jaxpr)


def _is_in_vmem(aval, is_block: bool) -> bool:
  space = str(getattr(aval, "memory_space", None)).lower()
  return "vmem" in space or (is_block and space in ("none", "default"))


def _describe(aval) -> _Part:
  """The bytes of a memory whose last dimension is padded to whole rows of lanes."""
  *outer, last = aval.shape or (1,)
  count = math.prod(outer) * -(-last // _LANES) * _LANES
  kind = str(aval.dtype)
  bits = int(found[1]) if (found := re.match(r"u?int([24])$|float(4)", kind)) and found[1] else (
      4 if found else 8 * getattr(aval.dtype, "itemsize", 4))
  return _Part("scoped memory", f"{kind}[{','.join(map(str, aval.shape))}]", count * bits // 8)


def _count_buffers(block, grid) -> int:
  """Two copies of a block that changes with the steps, or the number that the user has chosen."""
  asked = getattr(block.pipeline_mode, "buffer_count", None)
  if asked is not None:
    return asked
  used = kernel_costs.used_dimensions(block, len(grid))
  return 2 if any(grid[axis] != 1 for axis in used) else 1


def _find_scoped(jaxpr) -> list[_Part]:
  """The bytes that the bodies of `run_scoped` need at the same time; consecutive bodies reuse memory."""
  most = []
  for eqn in jaxpr.eqns:
    for body in kernel_costs.inner_bodies(eqn):
      found = _find_scoped(body)
      if eqn.primitive.name == "run_scoped":
        found += [_describe(variable.aval) for variable in body.invars
                  if _is_in_vmem(variable.aval, False)]
      most = max(most, found, key=lambda parts: sum(part.size for part in parts))
  return most

"""Checks that the indices in a Pallas kernel are inside its memories.

With an index out of bounds, a chip accesses other memory, or halts.  Operations on arrays move such an index back into
the array, so the error would not show.  A check is an operation of the program.  It fails the launch with an error that
names kernel, memory, step of the grid and line.
"""

import types

from minipod.jax import guard
from minipod.jax import kernel_masks

_TARGET = "minipod.check_index"  # sim/kernels/movement/index_check.c
# Verbs for the primitives that access memory, and which of their arguments is a mask.
_VERBS = {"get": "reads", "swap": "writes", "addupdate": "adds to", "masked_load": "reads",
          "masked_swap": "writes", "atomic_rmw": "updates", "atomic_cas": "updates",
          "dma_start": "copies", "semaphore_signal": "uses", "semaphore_wait": "uses",
          "semaphore_read": "uses"}
_MASKS = {"masked_load": 2, "masked_swap": 3, "atomic_rmw": 3}


def find_names():
  """All names of JAX that checks need; makes their primitive."""
  from jax._src import core
  from jax._src import effects
  from jax._src import state
  from jax._src.state import indexing
  from jax.interpreters import mlir

  class CheckEffect(effects.Effect):
    """Keeps a check although nothing uses its result."""

    __str__ = lambda self: "KernelCheck"

  for kind in (effects.lowerable_effects, effects.control_flow_allowed_effects):
    kind.add_type(CheckEffect)
  check, effect = core.Primitive("check_index"), CheckEffect()
  check.multiple_results = True
  check.def_effectful_abstract_eval(lambda *_, **__: ([], {effect}))
  mlir.register_lowering(check, lambda ctx, *args, **params: [])  # elsewhere in JAX's interpreter
  mlir.register_lowering(check, _lower, guard.PLATFORM)
  guard.teach("to export checks of kernels", _allow_exports)
  return types.SimpleNamespace(check=check, Ref=state.AbstractRef, type_of=core.typeof,
                               Indexer=indexing.NDIndexer)


def _allow_exports() -> None:
  from jax._src.export import _export

  _export._CUSTOM_CALL_TARGETS_GUARANTEED_STABLE.add(_TARGET)


def _lower(ctx, *args, count, text):
  from jax.extend.mlir import ir
  from jax.extend.mlir.dialects import stablehlo

  stablehlo.CustomCallOp([args[0].type], list(args), call_target_name=ir.StringAttr.get(_TARGET),
                         has_side_effect=ir.BoolAttr.get(True),
                         backend_config=ir.StringAttr.get(f"{count};{text}"))
  return []


class Checker:
  """Adds checks to the operations of a kernel."""

  def __init__(self, names, kernel: str, memories, step):
    """`memories` names the kernel's references by id; `step` are the coordinates in the grid."""
    self.names, self.kernel, self.memories, self.step = names, kernel, memories, step

  def check_access(self, eqn, args) -> None:
    """Adds the checks that must come before the equation."""
    name = eqn.primitive.name
    if name not in _VERBS:
      return
    accesses, mask = self._find_accesses(eqn, args)
    for ref, transforms in accesses:
      views = [view for view in transforms or () if isinstance(view, self.names.Indexer)]
      if not any(kernel_masks.may_stick_out(view) for view in views):
        continue
      if mask is not None:
        self._check_masked(_VERBS[name], ref, views, mask)
        continue
      for view in views:
        self._check_view(_VERBS[name], ref, view)

  def _find_accesses(self, eqn, args):
    """The references that an equation accesses, with their views, and its mask."""
    name, params = eqn.primitive.name, eqn.params
    if name in ("get", "swap", "addupdate"):
      first = 1 if name == "get" else 2
      return [(args[0], params["tree"].unflatten(args[first:]))], None
    items = list((params.get("args_tree") or params["tree"]).unflatten(args))
    accesses = []
    for item, after in zip(items, [*items[1:], None]):
      if hasattr(item, "transforms"):
        accesses.append((item.ref, item.transforms))
      elif self._is_ref(item):
        accesses.append((item, after if isinstance(after, (tuple, list)) else ()))
    place = _MASKS.get(name)
    return accesses, None if place is None else items[place]

  def _is_ref(self, item) -> bool:
    return hasattr(item, "aval") and isinstance(self.names.type_of(item), self.names.Ref)

  def _check_view(self, verb, ref, view):
    """Checks each index of a view that may be outside."""
    text = Text()
    shown, checks = [], []
    for index, size in zip(view.indices, view.shape):
      lows, last, form = _describe_index(index, size)
      if not kernel_masks.is_inside(index, size):
        numbers = [text.add_check(low, last) for low in lows]
      else:
        numbers = [str(low) for low in lows]
      shown.append(form.format(*numbers))
    described = f"{verb} {self._name(ref)} at [{', '.join(shown)}] of {_describe(view.shape)}"
    self.bind(text, described)

  def _check_masked(self, verb, ref, views, mask):
    """Checks that the mask selects no element outside."""
    import jax.numpy as jnp

    inside = None
    for view in views:
      places = kernel_masks.find_places(view)
      own = jnp.array(True)
      for place, size in zip(places, view.shape):
        own = own & (place < size)
      inside = own if inside is None else own & inside.at[places].get(mode="fill", fill_value=False)
      inside = jnp.broadcast_to(inside, view.get_indexer_shape())
    count = jnp.sum(jnp.where(mask, ~inside, False).astype(jnp.int32))
    text = Text()
    number = text.add_check(count, 0)
    self.bind(text, f"{verb} {number} elements that the mask selects beyond the end of"
                    f" {self._name(ref)} of {_describe(views[0].shape)}")

  def _name(self, ref) -> str:
    return self.memories.get(id(ref), "a memory")

  def bind(self, text, described: str) -> None:
    """Adds the check itself, if there is anything to check."""
    if not text.checks:
      return
    step = ", ".join(text.add_number(place) for place in self.step)
    text.bind(self.names.check, f"kernel '{self.kernel}' {described}, which is out of bounds, in"
                                f" step ({step}) of the grid")


class Text:
  """Operands of a check, and how its text refers to them."""

  def __init__(self):
    self.checks, self.numbers = [], []

  def add_check(self, index, last) -> str:
    """Checks that the index is from 0 to `last`."""
    self.checks.append((index, 0, last))
    return "{%d}" % (3 * (len(self.checks) - 1))

  def add_number(self, number) -> str:
    if isinstance(number, int):
      return str(number)
    self.numbers.append(number)
    return "{+%d}" % (len(self.numbers) - 1)

  def bind(self, primitive, text: str) -> None:
    import jax.numpy as jnp

    for place in range(len(self.numbers)):
      text = text.replace("{+%d}" % place, "{%d}" % (3 * len(self.checks) + place))
    operands = [jnp.asarray(number, jnp.int32)
                for number in [*sum(self.checks, ()), *self.numbers]]
    primitive.bind(*operands, count=len(self.checks), text=text)


def _describe_index(index, size: int):
  """The least and the greatest index, the limit of the least one, and how the message shows them."""
  import jax.numpy as jnp

  if hasattr(index, "stride"):
    last = size - ((index.size - 1) * index.stride + 1 if index.size else 0)
    stride = f", {index.stride}" if index.stride != 1 else ""
    return [index.start], last, "ds({}, %d%s)" % (index.size, stride)
  if not jnp.shape(index):
    return [index], size - 1, "{}"
  return [jnp.min(index), jnp.max(index)], size - 1, "{}...{}"


def _describe(shape) -> str:
  return f"{' x '.join(map(str, shape))} elements"

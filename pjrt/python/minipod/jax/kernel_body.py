"""Traces the body of a Pallas kernel again, with other memories and more operations.

Two of the kernel's references may be the same memory: an operand in HBM and the result that aliases
it.  `pl.program_id` is read only once, because the bodies of loops and branches cannot read it after the body has
become ordinary operations.  The kernel is traced without the caller's mesh, because its operations would otherwise
require shardings.
"""

import functools
import types

from minipod.jax import kernel_costs

_PLACES = ("program_id", "num_programs")
_CALLS = ("jit", "pjit", "closed_call", "core_call", "checkpoint", "remat2")


def find_names():
  """All names of JAX that tracing needs."""
  from jax._src import config
  from jax._src import core
  from jax._src import linear_util
  from jax._src import source_info_util
  from jax._src import state
  from jax._src.interpreters import partial_eval

  return types.SimpleNamespace(
      allow_aliases=functools.partial(config.mutable_array_checks, False), Literal=core.Literal,
      type_of=core.typeof, Shaped=core.ShapedArray, wrap=linear_util.wrap_init, Ref=state.AbstractRef,
      trace=partial_eval.trace_to_jaxpr_dynamic,
      at_line=source_info_util.user_context, name_stack=source_info_util.current_name_stack)


def trace_anew(names, jaxpr, mapping, same, checker):
  """The jaxpr with the same memories; `same` maps a reference to the reference that it is part of.

  `checker` gets the references and the step of the grid, and returns the object that checks accesses.
  """
  import jax

  has_mesh = not jax.sharding.get_abstract_mesh().empty

  def run(*refs):
    rank = len(mapping.grid) - len(mapping.vmapped_dims)
    places = {("program_id", axis): jax.experimental.pallas.program_id(axis)
              for axis in range(rank)}
    check = checker(refs, list(places.values()))
    _add_places(jaxpr, places)
    body = _Body(names, places, check, has_mesh, mapping.grid_names)
    return body.run(jaxpr, (), [refs[same.get(i, i)] for i in range(len(refs))])

  with mapping.trace_env(), names.allow_aliases(), without_mesh():
    traced, *_, consts = _trace(names, run, jaxpr)
  if consts:
    raise NotImplementedError("constants in the body of a kernel")
  return traced


def trace_index_map(names, closed, checker):
  """The same for a closed jaxpr that chooses blocks.  It has no grid; its first arguments are the step."""
  import jax

  inner, has_mesh = getattr(closed, "jaxpr", closed), not jax.sharding.get_abstract_mesh().empty

  def run(*args):
    return _Body(names, {}, checker(args), has_mesh).run(inner, closed.consts, args)

  with names.allow_aliases(), without_mesh():
    traced, *_, consts = _trace(names, run, inner)
  if type(traced) is not type(closed):
    return type(closed)(traced, consts)
  return traced.with_consts(consts) if consts else traced  # JAX 0.11


def without_mesh():
  """Runs a block without the caller's mesh, but keeps the mesh's kind of device."""
  import jax

  device = getattr(jax.sharding.get_abstract_mesh(), "abstract_device", None)
  mesh = jax.sharding.AbstractMesh((), (), abstract_device=device)
  return jax.sharding.use_abstract_mesh(mesh)


def _trace(names, run, jaxpr):
  """Traces what `run` does with the jaxpr's arguments, without shardings."""
  return names.trace(names.wrap(run, debug_info=jaxpr.debug_info),
                     [without_sharding(names, variable.aval) for variable in jaxpr.invars])


def without_sharding(names, aval):
  """The type without the mesh of its sharding, if it has one."""
  if isinstance(aval, names.Ref):
    return aval.update(inner_aval=without_sharding(names, aval.inner_aval))
  mesh = getattr(getattr(aval, "sharding", None), "mesh", None)
  if not isinstance(aval, names.Shaped) or mesh is None or mesh.empty:
    return aval
  with without_mesh():
    return names.Shaped(aval.shape, aval.dtype, weak_type=aval.weak_type)


def leave_mesh(names, params) -> dict:
  """The parameters of a kernel that was traced under a mesh, as if it had been traced without one."""
  mapping, check = params["grid_mapping"], lambda eqn, args: None
  blocks = tuple(block.replace(index_map_jaxpr=trace_index_map(
      names, block.index_map_jaxpr, lambda args: check)) for block in mapping.block_mappings)
  jaxpr = trace_anew(names, params["jaxpr"], mapping, {}, lambda refs, step: check)
  return {**params, "jaxpr": jaxpr, "grid_mapping": mapping.replace(block_mappings=blocks)}


def _add_places(jaxpr, found) -> None:
  """Adds the step of the grid and the grid's sizes, if the body reads them."""
  for eqn in kernel_costs.walk(jaxpr):
    if eqn.primitive.name in _PLACES:
      key = eqn.primitive.name, eqn.params["axis"]
      if key not in found:
        found[key] = eqn.primitive.bind(**eqn.params)


def _split_scan(params, args):
  """What all steps of a scan read, what they pass on, and what is cut into slices."""
  if "ft_in" in params:  # JAX 0.11
    return map(list, params["ft_in"].update(args).unpack())
  count, carried = params["num_consts"], params["num_carry"]
  return list(args[:count]), list(args[count:][:carried]), list(args[count + carried:])


class _Body:
  """Runs equations while they are traced."""

  def __init__(self, names, places, check, has_mesh, axes=()):
    self.names, self.places, self.check = names, places, check
    self.has_mesh, self.axes = has_mesh, tuple(axes or ())
    self.rules = {"cond": self._cond, "scan": self._scan, "while": self._while,
                  "run_scoped": self._run_scoped, **dict.fromkeys(_CALLS, self._call)}

  def run(self, jaxpr, consts, args):
    values = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*consts, *args]))
    read = lambda atom: atom.val if isinstance(atom, self.names.Literal) else values[atom]
    predicates = {}  # the numbers were booleans, which select branches
    for eqn in jaxpr.eqns:
      found = self._run_equation(eqn, [read(atom) for atom in eqn.invars], predicates)
      values.update(zip(eqn.outvars, found if eqn.primitive.multiple_results else [found]))
      if eqn.primitive.name == "convert_element_type":
        predicates[id(found)] = read(eqn.invars[0]), found
    return [read(atom) for atom in jaxpr.outvars]

  def _run_equation(self, eqn, args, predicates):
    stack = self.names.name_stack() + eqn.source_info.name_stack
    with (self.names.at_line(eqn.source_info.traceback, name_stack=stack), eqn.ctx.manager,
          without_mesh()):
      if self._is_place_by_name(eqn):
        return self.places["program_id", self.axes.index(eqn.params["axis_name"])]
      if eqn.primitive.name in _PLACES:
        return self.places[eqn.primitive.name, eqn.params["axis"]]
      self.check(eqn, args)
      rule = self.rules.get(eqn.primitive.name)
      if rule is None or not self._is_affected(eqn, args):
        return eqn.primitive.bind(*args, **eqn.primitive.get_bind_params(self._find_params(eqn)))
      if rule == self._cond and (known := predicates.get(id(args[0]))):
        args[0] = known[0]
      return rule(eqn, *args)

  def _find_params(self, eqn) -> dict:
    """The equation's parameters, without shardings on the caller's mesh."""
    import jax

    if not self.has_mesh:
      return eqn.params
    return {name: None if isinstance(value, jax.sharding.Sharding) else value
            for name, value in eqn.params.items()}

  def _is_place_by_name(self, eqn) -> bool:
    """Whether the equation reads the step of the grid along a named axis."""
    return eqn.primitive.name == "axis_index" and eqn.params["axis_name"] in self.axes

  def _is_affected(self, eqn, args) -> bool:
    """Whether an inner body has references, or reads the step of the grid."""
    if self.has_mesh or any(isinstance(self.names.type_of(arg), self.names.Ref) for arg in args):
      return True
    return any(inner.primitive.name in (*_PLACES, "axis_index", "run_scoped")
               for body in kernel_costs.inner_bodies(eqn) for inner in kernel_costs.walk(body))

  def _call(self, eqn, *args):
    inner = eqn.params.get("jaxpr") or eqn.params["call_jaxpr"]
    return self._run_inner(inner, args)

  def _run_inner(self, inner, args):
    return self.run(getattr(inner, "jaxpr", inner), getattr(inner, "consts", ()), args)

  def _cond(self, eqn, index, *args):
    import jax

    branches = [functools.partial(self._run_inner, branch, args)
                for branch in eqn.params["branches"]]
    if len(branches) == 2:
      return jax.lax.cond(index, *reversed(branches))
    return jax.lax.switch(index, branches)

  def _scan(self, eqn, *args):
    import jax

    params = eqn.params
    consts, carry, slices = _split_scan(params, args)

    def step(carry, slices):
      found = self._run_inner(params["jaxpr"], [*consts, *carry, *slices])
      return found[:len(carry)], found[len(carry):]

    carry, stacked = jax.lax.scan(step, carry, slices, length=params["length"],
                                  reverse=params["reverse"], unroll=params["unroll"])
    return [*carry, *stacked]

  def _while(self, eqn, *args):
    import jax

    params = eqn.params
    cond_count, body_count = params["cond_nconsts"], params["body_nconsts"]
    cond_args, body_args = args[:cond_count], args[cond_count:][:body_count]
    return jax.lax.while_loop(
        lambda carry: self._run_inner(params["cond_jaxpr"], [*cond_args, *carry])[0],
        lambda carry: self._run_inner(params["body_jaxpr"], [*body_args, *carry]),
        list(args[cond_count + body_count:]))

  def _run_scoped(self, eqn, *args):
    inner = eqn.params["jaxpr"]
    traced, *_, consts = self.names.trace(
        self.names.wrap(lambda *refs: self.run(inner, args, refs), debug_info=inner.debug_info),
        [variable.aval for variable in inner.invars])
    if consts and not traced.constvars:  # JAX 0.11 passes them before the arguments
      traced = traced.with_consts(consts)
    return eqn.primitive.bind(*consts, **{**eqn.params, "jaxpr": traced})

"""The body of a kernel of Pallas, traced anew with other memories, and with more operations.

Two of the kernel's references may be one: an operand in HBM and the result in its place.  And
`pl.program_id` is asked for once, because the bodies of loops and branches have none when the body
becomes ordinary operations.
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
      type_of=core.typeof, wrap=linear_util.wrap_init, Ref=state.AbstractRef,
      trace=partial_eval.trace_to_jaxpr_dynamic, close=core.ClosedJaxpr,
      at_line=source_info_util.user_context, name_stack=source_info_util.current_name_stack)


def trace_anew(names, jaxpr, mapping, same, checker):
  """The jaxpr with the same memories; `same` has the place of the one that another is part of.

  `checker` gets the references and the step of the grid, and returns what checks accesses.
  """
  import jax

  def run(*refs):
    rank = len(mapping.grid) - len(mapping.vmapped_dims)
    places = {("program_id", axis): jax.experimental.pallas.program_id(axis)
              for axis in range(rank)}
    check = checker(refs, list(places.values()))
    _add_places(jaxpr, places)
    body = _Body(names, places, check)
    return body.run(jaxpr, (), [refs[same.get(i, i)] for i in range(len(refs))])

  with mapping.trace_env(), names.allow_aliases():
    traced, *_, consts = names.trace(names.wrap(run, debug_info=jaxpr.debug_info),
                                     [variable.aval for variable in jaxpr.invars])
  if consts:
    raise NotImplementedError("constants in the body of a kernel")
  return traced


def trace_index_map(names, closed, checker):
  """The same for a closed jaxpr that chooses blocks, which has no grid but its first arguments."""
  inner = closed.jaxpr

  def run(*args):
    return _Body(names, {}, checker(args)).run(inner, closed.consts, args)

  with names.allow_aliases():
    traced, *_, consts = names.trace(names.wrap(run, debug_info=inner.debug_info),
                                     [variable.aval for variable in inner.invars])
  return names.close(traced, consts)


def _add_places(jaxpr, found) -> None:
  """Adds the step of the grid and the grid's sizes, as far as the body asks for them."""
  for eqn in kernel_costs.walk(jaxpr):
    if eqn.primitive.name in _PLACES:
      key = eqn.primitive.name, eqn.params["axis"]
      if key not in found:
        found[key] = eqn.primitive.bind(**eqn.params)


class _Body:
  """Runs equations, which are traced."""

  def __init__(self, names, places, check):
    self.names, self.places, self.check = names, places, check
    self.rules = {"cond": self._cond, "scan": self._scan, "while": self._while,
                  "run_scoped": self._run_scoped, **dict.fromkeys(_CALLS, self._call)}

  def run(self, jaxpr, consts, args):
    values = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*consts, *args]))
    read = lambda atom: atom.val if isinstance(atom, self.names.Literal) else values[atom]
    predicates = {}  # of numbers that were truth values, which branches are chosen by
    for eqn in jaxpr.eqns:
      found = self._run_equation(eqn, [read(atom) for atom in eqn.invars], predicates)
      values.update(zip(eqn.outvars, found if eqn.primitive.multiple_results else [found]))
      if eqn.primitive.name == "convert_element_type":
        predicates[id(found)] = read(eqn.invars[0]), found
    return [read(atom) for atom in jaxpr.outvars]

  def _run_equation(self, eqn, args, predicates):
    stack = self.names.name_stack() + eqn.source_info.name_stack
    with self.names.at_line(eqn.source_info.traceback, name_stack=stack), eqn.ctx.manager:
      if eqn.primitive.name in _PLACES:
        return self.places[eqn.primitive.name, eqn.params["axis"]]
      self.check(eqn, args)
      rule = self.rules.get(eqn.primitive.name)
      if rule is None or not self._is_affected(eqn, args):
        return eqn.primitive.bind(*args, **eqn.primitive.get_bind_params(eqn.params))
      if rule == self._cond and (known := predicates.get(id(args[0]))):
        args[0] = known[0]
      return rule(eqn, *args)

  def _is_affected(self, eqn, args) -> bool:
    """Whether there are references in an inner body, or it asks for the step of the grid."""
    if any(isinstance(self.names.type_of(arg), self.names.Ref) for arg in args):
      return True
    return any(inner.primitive.name in (*_PLACES, "run_scoped")
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
    count, carried = params["num_consts"], params["num_carry"]
    first = count + carried

    def step(carry, slices):
      found = self._run_inner(params["jaxpr"], [*args[:count], *carry, *slices])
      return found[:carried], found[carried:]

    carry, stacked = jax.lax.scan(step, list(args[count:first]), list(args[first:]),
                                  length=params["length"], reverse=params["reverse"],
                                  unroll=params["unroll"])
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
    return eqn.primitive.bind(*consts, **{**eqn.params, "jaxpr": traced})

"""The ranges of numbers that a Pallas kernel computes from the step of its grid.

An index that is certainly in bounds needs no check at run time.
"""

_UNKNOWN = (float("-inf"), float("inf"))


def find_ranges(jaxpr, args) -> list:
  """The least and the greatest number of each result, from those of the arguments."""
  ranges = dict(zip(jaxpr.invars, args))
  read = lambda atom: (atom.val, atom.val) if hasattr(atom, "val") else (
      ranges.get(atom, _UNKNOWN))
  for eqn in jaxpr.eqns:
    for variable, found in zip(eqn.outvars, _find(eqn, [read(atom) for atom in eqn.invars])):
      ranges[variable] = found
  return [read(atom) for atom in jaxpr.outvars]


def _find(eqn, args) -> list:
  if any(getattr(atom.aval, "shape", None) != () for atom in (*eqn.invars, *eqn.outvars)):
    return [_UNKNOWN] * len(eqn.outvars)
  name = eqn.primitive.name
  if name in ("jit", "pjit"):
    rule = _RULES.get(eqn.params.get("name"))
    if rule is None:
      inner = eqn.params["jaxpr"]
      return find_ranges(getattr(inner, "jaxpr", inner), args)
  else:
    rule = _RULES.get(name)
  return [rule(*args) if rule else _UNKNOWN] * len(eqn.outvars)


def _combine(operate):
  def combine(*args):
    if _UNKNOWN in args:
      return _UNKNOWN
    ends = [operate(*ends) for ends in ((one, other) for one in args[0] for other in args[1])]
    return min(ends), max(ends)
  return combine


def _divide(dividend, divisor):
  """For numbers that are not negative, for which all divisions round in the same way."""
  if dividend[0] < 0 or divisor[0] <= 0 or _UNKNOWN in (dividend, divisor):
    return _UNKNOWN
  return dividend[0] // divisor[1], dividend[1] // divisor[0]


def _take_remainder(dividend, divisor):
  if dividend[0] < 0 or divisor[0] <= 0 or divisor == _UNKNOWN:
    return _UNKNOWN
  return (0, min(dividend[1], divisor[1] - 1))


_RULES = {
    "add": _combine(lambda a, b: a + b), "sub": _combine(lambda a, b: a - b),
    "mul": _combine(lambda a, b: a * b),
    "max": lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
    "min": lambda a, b: (min(a[0], b[0]), min(a[1], b[1])),
    "div": _divide, "floor_divide": _divide, "rem": _take_remainder, "remainder": _take_remainder,
    "convert_element_type": lambda a: a, "multiple_of": lambda a: a}

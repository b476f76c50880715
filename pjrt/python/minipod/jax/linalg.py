"""Matrix decompositions: custom calls to the library's kernels, and to LAPACK for large matrices."""

import inspect

from minipod.jax import foreign
from minipod.jax import guard
from minipod.jax import rules

# The sizes from which LAPACK is faster than the library's own kernels, by 1.2 to 9 times.  (geqrf is hardly ever
# slower, and users who call LAPACK's handler themselves get the same bits.)
_LAPACK_FROM = {"cholesky": 32, "lu": 64, "geqrf": 0, "householder_product": 128, "svd": 32,
                "eigh": 64, "triangular_solve": 256}
_LAPACK_IF_COMPLEX = {"triangular_solve"}  # the library's own kernel for real numbers is faster


def install() -> None:
  """Makes the library decompose, with a guard for each kind of decomposition."""
  guard.teach("the rule for 'lu'", rules.take_rule, "tpu", "lu")
  for name, install_rule in (("eigh", _install_eigh), ("svd", _install_svd),
                             ("tridiagonal_solve", _install_tridiagonal_solve),
                             ("lu_pivots_to_permutation", _install_pivots_to_permutation)):
    guard.teach(f"the rule for '{name}'", install_rule)
  if foreign.has_lapack():
    for name, size in _LAPACK_FROM.items():
      guard.teach(f"LAPACK's '{name}'", _use_lapack, name, size)


def _use_lapack(name: str, size: int) -> None:
  """Gives matrices whose sides are at least `size` to LAPACK: by minipod's rule, or JAX's rule for CPUs."""
  from jax.interpreters import mlir

  table = rules.get_table()
  primitive = rules.find(name, "cpu")
  own = table.own(primitive)
  lapack_rule = _make_lapack_lu() if name == "lu" else table.rule_of_cpu(primitive).rule
  what = f"LAPACK's '{name}'"

  def rule(ctx, *operands, **params):
    matrix = ctx.avals_in[0]
    is_large = all(isinstance(side, int) and side >= size for side in matrix.shape[-2:])
    if is_large and (name not in _LAPACK_IF_COMPLEX or matrix.dtype.kind == "c"):
      with guard.use(what, anywhere=True):
        return lapack_rule(ctx, *operands, **params)
    return own.rule(ctx, *operands, **params)

  mlir.register_lowering(primitive, rule, guard.PLATFORM, own.inline)


def _make_lapack_lu():
  """JAX's rule for CPUs, without the check for arguments that LAPACK refuses: there are none.

  So no operation is between the factors and the solver that reads them.  Both use column-major layout.
  """
  from jax import core
  from jax._src.lax import linalg
  from jax.interpreters import mlir
  from jax.lax.linalg import lu_pivots_to_permutation
  from jaxlib import lapack
  import numpy as np

  make_call, prepare = linalg._linalg_ffi_lowering, lapack.prepare_lapack_call

  def lower(ctx, operand):
    aval, pivots_aval, permutation_aval = ctx.avals_out
    batch, rows = aval.shape[:-2], aval.shape[-2]
    info_aval = core.ShapedArray(batch, np.dtype(np.int32))
    call = make_call(prepare("getrf_ffi", aval.dtype), avals_out=[aval, pivots_aval, info_aval],
                     operand_output_aliases={0: 0})
    factors, pivots, _ = call(ctx, operand)

    def number(pivots):
      pivots -= 1  # LAPACK counts from 1
      return pivots, lu_pivots_to_permutation(pivots, rows)

    pivots, permutation = mlir.lower_fun(number, multiple_results=True)(
        ctx.replace(primitive=None, avals_in=[pivots_aval],
                    avals_out=[pivots_aval, permutation_aval]), pivots)
    return [factors, pivots, permutation]

  return lower


def _make_call():
  """Makes a function that adds a custom call with the results of the context."""
  from jax._src.interpreters import mlir as private
  from jax.interpreters import mlir

  make, type_of = private.custom_call, mlir.aval_to_ir_type
  wants_context = len(inspect.signature(type_of).parameters) > 1  # JAX 0.9 has no such parameter

  def call(ctx, target, operands):
    context = (ctx.module_context,) if wants_context else ()
    types = [type_of(*context, aval) for aval in ctx.avals_out]
    return make(target, result_types=types, operands=operands).results

  return call


def _install_eigh() -> None:
  from jax.lax.linalg import eigh_p

  call = _make_call()

  def eigh(ctx, operand, *, lower, sort_eigenvalues, subset_by_index, algorithm):
    del sort_eigenvalues, algorithm  # the library always sorts, and has one algorithm
    if subset_by_index not in (None, (0, ctx.avals_in[0].shape[-1])):
      raise NotImplementedError("minipod does not support eigh's 'subset_by_index'")
    return call(ctx, "minipod.eigh.lower" if lower else "minipod.eigh.upper", [operand])

  rules.set_rule(eigh_p, eigh)


def _install_svd() -> None:
  from jax.lax.linalg import svd_p

  call = _make_call()
  table = rules.get_table()

  def svd(ctx, operand, *, subset_by_index, **params):
    shape = ctx.avals_in[0].shape
    if subset_by_index not in (None, (0, min(shape[-2:]))):
      raise NotImplementedError("minipod does not support svd's 'subset_by_index'")
    if 0 in shape[-2:]:  # JAX does not compute it
      return table.jax_rule(svd_p).rule(ctx, operand, subset_by_index=subset_by_index, **params)
    return call(ctx, "minipod.svd", [operand])

  rules.set_rule(svd_p, svd)


def _install_tridiagonal_solve() -> None:
  from jax.lax.linalg import tridiagonal_solve_p

  call = _make_call()

  def tridiagonal_solve(ctx, *operands, perturb_singular=False):  # JAX 0.9 has no such parameter
    target = "minipod.tridiagonal_solve" + (".perturbed" if perturb_singular else "")
    return call(ctx, target, operands)

  rules.set_rule(tridiagonal_solve_p, tridiagonal_solve)


def _install_pivots_to_permutation() -> None:
  from jax.interpreters import mlir
  from jax.lax.linalg import lu_pivots_to_permutation_p as primitive

  call = _make_call()
  of_jax = mlir._lowerings[primitive].rule

  def pivots_to_permutation(ctx, pivots, *, permutation_size):
    # A stored program should not depend on a name that JAX does not know.
    is_fixed = all(isinstance(size, int) for size in ctx.avals_in[0].shape)
    if ctx.module_context.lowering_parameters.for_export or not is_fixed:
      return of_jax(ctx, pivots, permutation_size=permutation_size)
    return call(ctx, "minipod.pivots_to_permutation", [pivots])

  rules.set_rule(primitive, pivots_to_permutation)

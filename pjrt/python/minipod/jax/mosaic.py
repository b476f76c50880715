"""On described TPUs, lowers Pallas kernels as JAX does for TPUs: to calls of Mosaic modules, which the library runs.

On other pods, JAX's interpreters make operations of a kernel.
"""

import functools

import jax
from minipod.jax import guard
from minipod.jax import rules
from minipod.jax import start

TPU = "tpu"  # the name under which JAX has its rules for TPUs
_NEWEST_VERSION = 15  # of stable_mosaic that the library reads (sim/mosaic/ir/)


def is_chosen() -> bool:
  """Whether kernels are lowered to Mosaic modules."""
  return find_kind().startswith("TPU")


def find_kind() -> str:
  """The kind of the pod's devices; "" if the pod is not in use."""
  try:
    return jax.devices(guard.PLATFORM)[0].device_kind
  except RuntimeError:
    return ""


def choose(rule, otherwise):
  """A lowering rule: JAX's `rule`, which lowers for TPUs, or `otherwise`."""
  for_tpus = rules.as_platform(TPU, rule)

  def lower(ctx, *args, **params):
    if params.get("interpret") or not is_chosen():
      _tell_of_checks()
      return otherwise(ctx, *args, **params)
    _limit_version()
    return for_tpus(ctx, *args, **params)

  return lower


@functools.cache
def _limit_version() -> None:
  """Makes JAX write a version of stable_mosaic that the library reads, from JAX 0.11 on; JAX 0.10 has no newer one."""
  with guard.use("the newest kernels"):
    from jax._src import tpu_custom_call

    name = "ir_version_override"
    if hasattr(tpu_custom_call, name):
      setattr(tpu_custom_call, name, lambda: _NEWEST_VERSION)


def _tell_of_checks() -> None:
  """Says that a kernel is not checked, if the user has asked for it."""
  if start.chosen("kernels", "MINIPOD_KERNELS") == "check":
    guard.say_once("MINIPOD_KERNELS=check does not check kernels that JAX's interpreters run; on pods of TPUs, kernels"
                   " are Mosaic modules, which it checks")


def choose_platform(offered) -> str:
  """Of the platforms for which there is a branch, or an exported function, the one for this pod if none is minipod's."""
  return TPU if TPU in offered and is_chosen() else "cpu"

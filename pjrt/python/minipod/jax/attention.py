"""cuDNN's attention on described GPUs: `jax.nn.dot_product_attention(implementation="cudnn")`.

JAX's own rules make the calls, the library computes them (sim/passes/attention/), and the time model charges the
kernels that the GPU would run.
"""

import operator

from minipod.jax import guard
from minipod.jax import rules

# The version of cuDNN that JAX sees (9.12).  It has all features that JAX checks for.
_VERSION = 91200
_WHAT = "cuDNN's attention"
_EQUAL = "is_cuda_compute_capability_equal"

_undo = None


def allow() -> None:
  """Makes JAX lower cuDNN's attention by its rules for GPUs."""
  find_cudnn()
  for name in ("dot_product_attention_fwd", "dot_product_attention_bwd"):
    rules.take_rule("cuda", name)


def find_cudnn() -> None:
  """Makes JAX find cuDNN if the default devices are described GPUs, until `leave`.

  JAX checks for cuDNN when it traces a program, which may be before the first use of a device.
  """
  global _undo
  from jax._src.cudnn import fused_attention_stablehlo as fused

  if _undo is not None:
    return
  originals = {"check_cudnn_version": fused.check_cudnn_version,
               "check_compute_capability": fused.check_compute_capability}
  if (equal := getattr(fused, _EQUAL, None)) is not None:  # not in all versions
    originals[_EQUAL] = equal
  fused.check_cudnn_version = _make_version(fused.check_cudnn_version)
  fused.check_compute_capability = _make_comparison(fused.check_compute_capability, operator.ge)
  if equal is not None:
    setattr(fused, _EQUAL, _make_comparison(equal, operator.eq))

  def undo():
    for name, original in originals.items():
      setattr(fused, name, original)

  _undo = undo


def leave() -> None:
  """Restores JAX's functions.  If the user has chosen other platforms, they stay JAX's."""
  global _undo
  if _undo is not None:
    _undo()
    _undo = None


def _make_version(original):
  def check_cudnn_version():
    with guard.use(_WHAT):
      if _capability() is not None:
        return _VERSION
    return original()

  return check_cudnn_version


def _make_comparison(original, compare):
  def check(capability: str) -> bool:
    with guard.use(_WHAT):
      if (found := _capability()) is not None:
        return compare(_numbers(found), _numbers(capability))
    return original(capability)

  return check


def _capability() -> str | None:
  """The compute capability of the default devices, if they are described GPUs."""
  import jax

  device = jax.local_devices()[0]
  return getattr(device, "compute_capability", None) if device.platform == guard.PLATFORM else None


def _numbers(capability: str) -> tuple[int, ...]:
  return tuple(map(int, capability.split(".")))

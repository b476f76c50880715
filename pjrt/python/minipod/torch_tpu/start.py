"""What changes in TorchTPU if virtual times are kept: eager launches in order, and names in the time report."""

import functools
import os

from minipod.torch_tpu import guard

_has_begun = False


def begin() -> None:
  """May be repeated.  `torch_tpu` has been imported by this thread."""
  global _has_begun
  if _has_begun:
    return
  _has_begun = True
  guard.teach("to launch eager ops in order", launch_in_order)
  guard.teach("when the host waits", _tell_waits)
  if os.environ.get("MINIPOD_LABELS", "1") != "0":
    guard.teach("to name the modules of compiled programs", _name_compiled)
    guard.teach("to name the modules of eager ops", _label_eager)


def launch_in_order() -> None:
  """An eager op waits for its end (in real time), so that the pod's clock knows all launches so far."""
  from torch_tpu._internal import execution_mode

  modes = execution_mode.EagerMode
  if execution_mode.eager_mode == modes.DEFER_NEVER:
    execution_mode.eager_mode = modes.DEFER_NEVER_AND_LAUNCH_BLOCKING


def _tell_waits() -> None:
  """TorchTPU asks for the ready event of each result without waiting for it.

  Reads (`item`, `cpu`) are known to the library; `torch.accelerator.synchronize` is not.  A thread of TorchTPU's launches
  compiled functions after their calls have returned, so reports and virtual times wait for it.
  """
  import torch

  from minipod import foreign
  from minipod import virtual

  library = foreign.library()
  original = torch.accelerator.synchronize

  @functools.wraps(original)
  def synchronize(*args, **kwargs):
    original(*args, **kwargs)
    library.minipod_host_waits()

  def make_launches():
    try:
      original()
    except RuntimeError:  # of an earlier launch: whatever reads its results raises it, too
      pass

  torch.accelerator.synchronize = synchronize
  virtual.launch_first(make_launches)
  library.minipod_expect_waits()


def _name_compiled() -> None:
  from minipod.torch_tpu import compiled

  compiled.name_modules()


def _label_eager() -> None:
  from minipod.torch_tpu import compiled, labels

  compiled.leave_alone(labels.suspended)
  labels.begin()

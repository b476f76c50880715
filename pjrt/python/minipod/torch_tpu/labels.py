"""Labels the launches of eager ops with the nn.Module and the line of the script, for the time report.

TorchTPU compiles a program per ATen op and shape, which says nothing about the model.  So a dispatch mode sees each op
before TorchTPU does, and writes a label such as "blocks.0.up at train.py:12" or "blocks.0.up (backward) at train.py:12".
The launch comes from a thread of TorchTPU's own, so the op must wait for it (`start.py`).
"""

import contextlib
import sys
import threading

import torch
from torch.utils import _python_dispatch

from minipod import launch_labels
from minipod.torch_tpu import places

_TEXTS = 1 << 16  # composed labels
_NODES = 1 << 17  # nodes of the autograd graph whose labels are kept, at least

_mode = None


class _Labels:
  """Labels by their parts: the name of a module or optimizer, the phase, and the line."""

  def __init__(self):
    self._slot = launch_labels.slot()
    self._known = {}
    self._young, self._old = {}, {}  # labels of forward ops by the number of their autograd node
    self._thread = threading.get_ident()
    self._writes = {}  # by op

  def _compose(self, name, phase, line) -> str:
    words = f"{name} ({phase})" if phase else name
    return f"{words} at {line}" if line else words

  def _label(self, name, phase, line):
    """The parts of a label, and its address."""
    key = name, phase, line
    if (known := self._known.get(key)) is None:
      if len(self._known) >= _TEXTS:
        self._known.clear()
      known = self._known[key] = key, launch_labels.address(self._compose(*key))
    return known

  def _backward(self, node):
    """The label of a node's op, from that of its forward op."""
    number = node._sequence_nr()
    found = self._young.get(number) or self._old.get(number)
    name, _, line = found[0] if found else ("(gradients)", "", places.line_of(self._thread))
    return self._label(name, "backward", line)

  def _note(self, label) -> None:
    """Keeps the label for the backward pass; the op's node, if it has one, is the newest."""
    self._young.setdefault(torch.autograd._get_sequence_nr() - 1, label)
    if len(self._young) > _NODES:
      self._old, self._young = self._young, {}

  def of_op(self, frame) -> int:
    node = torch._C._current_autograd_node()
    name, phase, line = places.find(frame)
    if node is None or phase == "backward":
      label = self._label(name or "(no module)", phase, line or places.line_of(self._thread))
      if node is None and threading.get_ident() == self._thread:
        self._note(label)
    elif name and phase != "optimizer":
      label = self._label(name, "recomputed", line)
    else:
      label = self._backward(node)
    return label[1]

  def call(self, frame, func, args, kwargs):
    slot = self._slot
    slot.value = self.of_op(frame)
    try:
      return func(*args, **kwargs) if kwargs else func(*args)
    finally:
      # TorchTPU writes into views when something needs the whole array, which can be after the op.
      if (writes := self._writes.get(func)) is None:
        writes = self._writes[func] = func._schema.is_mutable or func.namespace == "fsdp"
      if not writes:
        slot.value = 0


class _Mode(_python_dispatch.TorchDispatchMode):
  supports_higher_order_operators = True

  def __init__(self):
    super().__init__()
    self._labels = _Labels()

  @classmethod
  def is_infra_mode(cls) -> bool:
    return True  # torch.compile goes on as without a mode

  @classmethod
  def ignore_compile_internals(cls) -> bool:
    return True

  def __torch_dispatch__(self, func, types, args=(), kwargs=None):
    return self._labels.call(sys._getframe(1), func, args, kwargs)


@contextlib.contextmanager
def suspended():
  """A block whose ops have no labels."""
  if _mode is None or _python_dispatch._get_current_dispatch_mode() is not _mode:
    yield
    return
  with _python_dispatch._pop_mode_temporarily():
    yield


def begin() -> None:
  """Labels the ops that this thread dispatches from now on, and those of their backward passes."""
  global _mode
  if _mode is None:
    _mode = _Mode()
    _mode.__enter__()


def end() -> None:
  global _mode
  if _mode is not None:
    _mode.__exit__(None, None, None)
    _mode = None

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
from minipod.torch_tpu import frames
from minipod.torch_tpu import places

_TEXTS = 1 << 16  # composed labels
_NODES = 1 << 17  # nodes of the autograd graph whose labels are kept, at least

_current_node, _newest_node = torch._C._current_autograd_node, torch.autograd._get_sequence_nr

_NO_MODULE = "(no module)"  # with a line, the label is the line alone

_mode = None


class _Labels:
  """Labels by their parts: the name of a module or optimizer, the phase, and the line."""

  def __init__(self):
    self._known = {}
    self._parts = {}  # by the label's address
    self._backwards = {}  # labels of backward ops by those of their forward ops
    self._young, self._old = {}, {}  # labels of forward ops by the number of their autograd node
    self._thread = threading.get_ident()

  def _compose(self, name, phase, line) -> str:
    if name == _NO_MODULE and line and not phase:
      return line
    words = f"{name} ({phase})" if phase else name
    return f"{words} at {line}" if line else words

  def _label(self, name, phase, line) -> int:
    """The label's address."""
    key = name, phase, line
    if (known := self._known.get(key)) is None:
      if len(self._known) >= _TEXTS:
        self._known.clear()
      known = self._known[key] = launch_labels.address(self._compose(*key))
      if self._parts.setdefault(known, key) != key:
        self._parts[known] = "(others)", "", ""  # too many texts: these have one label
    return known

  def _of_gradients(self, node) -> int:
    """The label of a node's op, from that of its forward op."""
    number = node._sequence_nr()
    forward = self._young.get(number) or self._old.get(number)
    if forward is None:
      return self._label("(gradients)", "backward", places.line_of(self._thread))
    if (known := self._backwards.get(forward)) is None:
      name, _, line = self._parts[forward]
      known = self._backwards[forward] = self._label(name, "backward", line)
    return known

  def _forget_old(self) -> None:
    self._old, self._young = self._young, {}

  def of_forward(self) -> int:
    """The label of an op outside of a backward pass."""
    if (label := frames.find()) is None:
      name, phase, line = places.find(sys._getframe(1))
      label = self._label(name or _NO_MODULE, phase, line or places.line_of(self._thread))
      if line:
        frames.keep(label)
    if threading.get_ident() == self._thread:
      # The op's node, if it has one, is the newest.
      self._young.setdefault(_newest_node() - 1, label)
      if len(self._young) > _NODES:
        self._forget_old()
    return label

  def of_backward(self, node) -> int:
    frame = sys._getframe(1).f_back
    name, phase, line = places.find(frame) if frame is not None else ("", "", "")
    if phase == "backward":
      return self._label(name or _NO_MODULE, phase, line or places.line_of(self._thread))
    if name and phase != "optimizer":
      return self._label(name, "recomputed", line)
    return self._of_gradients(node)


class _Mode(_python_dispatch.TorchDispatchMode):
  supports_higher_order_operators = True

  def __init__(self):
    super().__init__()
    self._labels = _Labels()
    self._slot = launch_labels.slot()
    self._keeps = {}  # by op

  @classmethod
  def is_infra_mode(cls) -> bool:
    return True  # torch.compile goes on as without a mode

  @classmethod
  def ignore_compile_internals(cls) -> bool:
    return True

  @classmethod
  def _should_skip_dynamo(cls) -> bool:
    return False  # PyTorch's wrapper takes several microseconds; _leave_alone() does the same

  def _keeps_label(self, func) -> bool:
    """TorchTPU writes into views when something needs the whole array, which can be after the op."""
    keeps = self._keeps[func] = func._schema.is_mutable or func.namespace == "fsdp"
    return keeps

  def __torch_dispatch__(self, func, types, args=(), kwargs=None):
    node = _current_node()
    self._slot.value = self._labels.of_forward() if node is None else self._labels.of_backward(node)
    try:
      return func(*args, **kwargs) if kwargs else func(*args)
    finally:
      if (keeps := self._keeps.get(func)) is None:
        keeps = self._keeps_label(func)
      if not keeps:
        self._slot.value = 0


def _leave_alone(code) -> None:
  """Dynamo compiles neither the code nor what it calls."""
  dynamo = torch._C._dynamo.eval_frame
  skip = dynamo._FrameAction.SKIP
  dynamo.set_code_exec_strategy(code, dynamo._FrameExecStrategy(skip, skip))


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
    _leave_alone(_Mode.__torch_dispatch__.__code__)
    frames.begin()
    _mode = _Mode()
    _mode.__enter__()


def end() -> None:
  global _mode
  if _mode is not None:
    _mode.__exit__(None, None, None)
    _mode = None

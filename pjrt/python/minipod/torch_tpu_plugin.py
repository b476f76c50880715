"""Runs PyTorch's TPU backend, TorchTPU (the package `torch_tpu`), on the described pod.

TorchTPU finds TPUs on the PCI bus, and loads the PJRT plugin that `TPU_LIBRARY_PATH` names, both while it is imported.
Before that import, `begin` sets the variable and arranges that the search finds the TPUs of the described pod; after
it, `end` removes what only the import needs, so that JAX in the same process does not take this library for libtpu.
`_minipod_start` calls both.  If the hook at the start of Python is off, the entry point `load` in the group
`torch.backends` does, provided that PyTorch loads it before TorchTPU's.

Nothing happens if no pod is described on a machine with a TPU or with libtpu, or if `TPU_LIBRARY_PATH` names another
library (but for one that logs the calls to this one, tools/pjrt_log).
"""

import ctypes
import importlib
import importlib.util
import math
import os
import pathlib
import sys
import types

import minipod
from minipod import foreign
from minipod import torch_tpu_ranks

_PATH = "TPU_LIBRARY_PATH"
_LOGGED = "PJRT_LOG_PLUGIN"  # the plugin behind that of tools/pjrt_log
_HARDWARE = "torch_tpu._internal.utils.hardware"
_LOADER = "torch_tpu._loader"
_DISTRIBUTED = "torch_tpu._internal.distributed.tpu_distributed"
_GOOGLE = "0x1ae0"  # the PCI vendor
# By device kind: the PCI device, by which TorchTPU finds names and shapes of hosts.
_PCI_DEVICES = {"TPU v4": "0x005e", "TPU v5": "0x0062", "TPU v5 lite": "0x0063", "TPU v6 lite": "0x006f",
                "TPU7x": "0x0076"}
_EXAMPLE = "set MINIPOD_TOPOLOGY to one of v4-megacore, v5e, v5p, v6e and 7x, such as v6e:2x2"
_has_begun = False
_undo = []  # functions that `end` calls
_tables = []  # TorchTPU's own, of devices and bytes per chip


class _Pod(ctypes.Structure):  # minipod_described_t, pjrt/package/pjrt_describe.h
  _fields_ = [("struct_size", ctypes.c_size_t),
              ("name", ctypes.c_char * 160),
              ("kind", ctypes.c_char * 160),
              ("is_tpu", ctypes.c_int32),
              ("num_hosts", ctypes.c_int32),
              ("num_chips", ctypes.c_int32),
              ("cores_per_chip", ctypes.c_int32),
              ("is_timed", ctypes.c_int32),
              ("memory", ctypes.c_uint64),
              ("shape", ctypes.c_int32 * 3)]


def load() -> None:
  """The entry point: PyTorch calls it at the end of `import torch`.

  Does nothing if the hook at the start of Python has already prepared TorchTPU, or will.
  """
  import _minipod_start

  if _has_begun or importlib.util.find_spec("torch_tpu") is None:
    return
  if "torch_tpu" not in sys.modules:
    _minipod_start.await_torch_tpu()
  elif os.environ.get("MINIPOD_TOPOLOGY"):
    _say("TorchTPU was loaded before minipod, so it does not see the described pod: MINIPOD_START_HOOK=0, or a missing"
         " minipod.pth, leaves the order to chance")


def begin() -> None:
  """Prepares the import of TorchTPU."""
  global _has_begun
  _has_begun = True
  library = os.environ.get(_PATH)
  is_logged = bool(library) and os.path.basename(os.environ.get(_LOGGED, "")) == minipod.LIBRARY_NAME
  if library and not is_logged and os.path.basename(library) != minipod.LIBRARY_NAME:
    return
  is_described = bool(os.environ.get("MINIPOD_TOPOLOGY") or os.environ.get("MINIPOD_DEVICES"))
  if not is_described and (_has_real_tpu() or _has_libtpu()):
    return
  try:
    pod = _describe() if is_described else None
    _use_library(library if is_logged else minipod.library_path())
  except (OSError, ValueError) as error:
    _say(f"no TPU for PyTorch: {error}")
    _avoid_a_crash()
    return
  try:
    if pod is None:
      raise ValueError(_EXAMPLE)
    _answer(pod, _pci_device(pod))
    _advise(pod)
  except ValueError as error:
    _say(f"no TPU for PyTorch: {error}")


def _advise(pod: "_Pod") -> None:
  """Says so where a chip has two devices, but one in PyTorch on TPUs."""
  if pod.kind == b"TPU v4" and pod.cores_per_chip > 1 and "RANK" not in os.environ:  # one line for a job
    wanted = os.environ.get("MINIPOD_TOPOLOGY", "")
    wanted = wanted.replace("v4:", "v4-megacore:", 1) if wanted.startswith("v4:") else "v4-megacore:2x2x1"
    _say(f"each chip of the pod '{pod.name.decode()}' is two devices, but one device of a TPU v4 in PyTorch: set"
         f" MINIPOD_TOPOLOGY='{wanted}'")


def change() -> None:
  """Answers for another pod of the environment, after TorchTPU was imported and before it has a client.

  Raises:
    ValueError: the description is wrong, or TorchTPU does not know its devices.
  """
  from torch_tpu import _loader
  from torch_tpu._internal.utils import hardware

  pod = _describe()
  _replace(hardware, pod, _pci_device(pod))
  _loader.load()
  if pod.is_timed:
    _keep_time(_loader)


def _pci_device(pod: "_Pod") -> str:
  """Raises ValueError: TorchTPU does not know such devices."""
  if found := _PCI_DEVICES.get(pod.kind.decode()):
    return found
  raise ValueError(f"the devices of the pod '{pod.name.decode()}' are of kind '{pod.kind.decode()}', which TorchTPU does"
                   f" not know: {_EXAMPLE}")


def end() -> None:
  """Removes what only the import of TorchTPU needs."""
  while _undo:
    _undo.pop()()


def _describe() -> _Pod:
  """The pod of the environment.

  Raises:
    ValueError: the description is wrong.
    OSError: the library is missing or cannot be loaded.
  """
  describe = foreign.library().minipod_describe
  describe.argtypes = [ctypes.POINTER(_Pod)]
  describe.restype = ctypes.c_char_p
  pod = _Pod(ctypes.sizeof(_Pod))
  if refusal := describe(pod):
    raise ValueError(refusal.decode(errors="replace").partition(": ")[2])
  return pod


def _answer(pod: _Pod, pci_device: str) -> None:
  """Makes TorchTPU's search find the TPUs of a host of this pod."""
  import _minipod_start

  def prepare(hardware) -> None:
    try:
      _replace(hardware, pod, pci_device)
      _prepare_ranks(pod)
    except (AttributeError, KeyError, ValueError) as error:
      _say(f"no TPU for PyTorch: this version of TorchTPU looks for TPUs in another way ({error!r})")

  _minipod_start.await_module(_HARDWARE, after=prepare)
  if pod.is_timed:
    _minipod_start.await_module(_LOADER, after=_keep_time)


def _keep_time(loader) -> None:
  from minipod.torch_tpu import start

  start.begin()


def _replace(hardware, pod: _Pod, pci_device: str) -> None:
  topologies = hardware._TOPOLOGY_BY_TPU_PCI_DEVICE_ID[pci_device]
  name = hardware._PCI_DEVICE_ID_TO_NAME[pci_device]
  version = hardware.TpuVersion(name)
  if not _tables:
    _tables.extend((hardware._DEVICES_PER_CHIP, hardware._HBM_BYTES_PER_CHIP))
  devices_per_chip, hbm_per_chip = _tables
  cores = pod.cores_per_chip
  # TorchTPU counts chips, but on v7 it counts their two halves.
  count = pod.num_chips // pod.num_hosts * devices_per_chip.get(version, 1)
  memory = hbm_per_chip[version]
  # A little of the real memory is not for programs.  TorchTPU gives all of it; but a description may change it.
  if not 0.9 * memory <= pod.memory * cores <= 1.1 * memory and pod.memory < 1 << 63:
    memory = pod.memory * cores
  hardware._scan_pci_tpus = lambda: (count, topologies)
  hardware.get_tpu_device_name = lambda: name
  hardware._DEVICES_PER_CHIP = {version: cores}
  hardware._HBM_BYTES_PER_CHIP = {version: memory}


def _prepare_ranks(pod: _Pod) -> None:
  sizes = [*pod.shape, *([pod.cores_per_chip] if pod.cores_per_chip > 1 else [])]
  count = math.prod(sizes)
  if count != pod.num_chips * pod.cores_per_chip:
    return  # TorchTPU knows no slices
  job = torch_tpu_ranks.Job(",".join(map(str, sizes)), count)
  job.choose_by_launcher()
  # TorchTPU has a finder of its own for this module, so a finder of ours would not see the import.
  job.attend(importlib.import_module(_DISTRIBUTED))
  if os.environ.get("MINIPOD_BOOTSTRAP") == "absent":
    from minipod.torch_tpu import only

    only.begin()


def _use_library(path: str) -> None:
  """Makes TorchTPU load this library."""
  if not os.environ.get(_PATH):
    os.environ[_PATH] = path
    _undo.append(lambda: os.environ.pop(_PATH, None))
  if _has_libtpu():
    return
  stand_in = types.ModuleType("libtpu", "Stands in for libtpu while TorchTPU is imported.")
  stand_in.__version__ = ""
  stand_in.get_library_path = lambda: path
  stand_in.configure_library_path = lambda: None
  sys.modules["libtpu"] = stand_in
  _undo.append(lambda: sys.modules.pop("libtpu", None))


def _avoid_a_crash() -> None:
  """Without any library, TorchTPU would abort the process: loads minipod's own, if there is one, for no device."""
  if _has_libtpu():
    return
  try:
    _use_library(minipod._own_library_path())
  except OSError:
    pass


def _has_libtpu() -> bool:
  return "libtpu" in sys.modules or importlib.util.find_spec("libtpu") is not None


def _has_real_tpu() -> bool:
  for vendor in pathlib.Path("/sys/bus/pci/devices").glob("*/vendor"):
    try:
      if vendor.read_text().strip() == _GOOGLE:
        return True
    except OSError:
      pass
  return False


def _say(text: str) -> None:
  print(f"minipod: {text}", file=sys.stderr)

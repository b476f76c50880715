"""Runs tests of PyTorch in a process that is a rank of a job (suites.py), without starting processes or threads.

What is patched in PyTorch's classes for tests (torch.testing._internal):

    all classes           as many ranks as the job has, whatever the class says; setUp and tearDown, which start and
                          end processes, are not called, as PyTorch does not call them in the processes
    threads               classes that run each rank as a thread (MultiThreadedTestCase) run it as a process
    all process groups    have the backends "cpu:gloo,tpu:tpu_dist": PyTorch's list for DTensor knows no tpu_dist alone, and
                          tests have tensors on the CPU.  The last barrier of DTensor's tests names no device
    torch.accelerator     has as many devices as ranks, and ignores set_device_index(RANK): a process of TorchTPU has device 0,
                          which is 1 device, so that tests would skip themselves
    instantiate_device_type_tests
                          the tests are made for the device alone, whatever devices the file names
    device_ids=[rank]     is left out for DistributedDataParallel: TorchTPU's processes have one device each
    fully_shard           moves parameters from the CPU by swap_tensors: TorchTPU refuses to set their `data`
    Module.to             swaps parameters (torch.__future__), which keeps shared parameters shared
    torch.tpu             lets tests call what TorchTPU keeps for PyTorch, such as current_stream; _sleep does nothing
    attention             is PyTorch's, in matmuls and softmax, as on the CPU, not TorchTPU's Mosaic kernel
    sources               ("cuda", "hpu", "xpu", "cpu"), a list of the devices that a test allows, has "tpu", too
    on the CPU            torch.accelerator says that the CPU is one, and tests that need accelerators run
"""

import ctypes
import faulthandler
import functools
import json
import os
import pathlib
import re
import resource
import signal
import sys
import tempfile
import traceback
import types
import unittest

import torch
import torch.distributed as dist
from torch.distributed.fsdp._fully_shard import _fsdp_init
from torch.distributed.tensor import DTensor
from torch.testing._internal import common_device_type
from torch.testing._internal import common_distributed
from torch.testing._internal import common_fsdp
from torch.testing._internal import common_utils
from torch.testing._internal.distributed._tensor import common_dtensor

BACKENDS = "cpu:gloo,tpu:tpu_dist"
_fsdp_init_move = _fsdp_init._move_states_to_device


def _always(value):
  return lambda *_, **__: value


def _as_devices(count):
  """The CPU as an accelerator of which each rank has one."""
  torch.cpu.device_count = _always(count)
  torch.accelerator.current_accelerator = _always(torch.device("cpu"))
  for name in ("skip_if_lt_x_gpu", "requires_world_size"):
    setattr(common_distributed, name, _always(lambda test: test))
  common_dtensor.skip_if_lt_x_gpu = common_distributed.skip_if_lt_x_gpu
  common_distributed.at_least_x_gpu = _always(True)
  common_dtensor.skip_unless_torch_gpu = lambda test: test


def _only_for(device):
  instantiate = common_device_type.instantiate_device_type_tests

  @functools.wraps(instantiate)
  def instantiate_for(generic, scope, **_):
    instantiate(generic, scope, only_for=("privateuse1" if device == "tpu" else device,))
  common_device_type.instantiate_device_type_tests = instantiate_for


def _destroy_group(*_):
  dist.barrier()
  dist.destroy_process_group()


def _without_devices(kind):
  init = kind.__init__

  @functools.wraps(init)
  def init_on_own_device(self, *args, device_ids=None, **kwargs):
    init(self, *args, **kwargs)
  kind.__init__ = init_on_own_device


def _move(params, buffers, device):
  """In place of _fsdp_init._move_states_to_device."""
  for tensor in (*params, *buffers):
    if tensor.device.type != "cpu" or isinstance(tensor, DTensor):
      _fsdp_init_move([tensor], [], device)
      continue
    with torch.no_grad():
      moved = tensor.to(device)
    if isinstance(tensor, torch.nn.Parameter):
      moved = torch.nn.Parameter(moved, tensor.requires_grad)
    torch.utils.swap_tensors(tensor, moved)


def _patch_for_tpu():
  from torch_tpu._internal.utils import annotations
  common_dtensor.DTensorTestBase.backend = BACKENDS
  common_dtensor.DTensorContinuousTestBase.backend_str = _always(BACKENDS)
  common_dtensor.DTensorTestBase.destroy_pg = _destroy_group
  _without_devices(torch.nn.parallel.DistributedDataParallel)
  _fsdp_init._move_states_to_device = _move
  torch.__future__.set_swap_module_params_on_conversion(True)
  annotations._internal_apis_allowed_for_testing = True
  torch.tpu._sleep = torch.accelerator.set_device_index = _always(None)
  for name in ("flash", "mem_efficient", "cudnn"):
    getattr(torch.backends.cuda, f"enable_{name}_sdp")(False)


def prepare(device, count):
  """Patches the classes, before a test file is imported."""
  torch.set_num_threads(1)
  backend = BACKENDS if device == "tpu" else "gloo"
  torch.accelerator.device_count = _always(count)
  _only_for(device)
  common_distributed.DistributedTestBase.backend = _always(backend)
  common_fsdp.DEVICE_COUNT = common_dtensor.DEVICE_COUNT = common_dtensor.NUM_DEVICES = count
  common_fsdp.DISTRIBUTED_BACKEND = backend
  _as_devices(count) if device == "cpu" else _patch_for_tpu()


# ---- test files ----

RANKS = (common_distributed.MultiProcessTestCase, common_distributed.MultiProcContinuousTest,
         common_distributed.MultiThreadedTestCase)


def _has_ranks(value, module):
  """Whether it is a class of the file with tests of several ranks; LocalTensor runs all ranks in one process."""
  return (isinstance(value, type) and issubclass(value, RANKS) and value.__module__ in (module.__name__, "")
          and "Local" not in value.__mro__[1].__name__ and "LocalTensor" not in value.__name__)


@functools.cache
def _classes(path):
  """The classes of the file by name."""
  path = pathlib.Path(path)
  module = types.ModuleType(path.stem)
  module.__file__ = str(path)
  source = path.read_text().replace('("cuda", "hpu", "xpu", "cpu")', '("cuda", "hpu", "xpu", "cpu", "tpu")')
  sys.modules[path.stem] = module
  sys.path.insert(0, str(path.parent))
  exec(compile(source, path, "exec"), vars(module))
  sys.path.pop(0)
  return {value.__name__: value for value in vars(module).values() if _has_ranks(value, module)}


def load(path):
  """What is wrong with the file, or "", and its tests."""
  try:
    classes = _classes(path)
  except (Exception, SystemExit) as error:
    return f"{type(error).__name__}: {error}", []
  return "", [{"class": each, "test": test} for each in classes for test in sorted(dir(classes[each]))
              if test.startswith("test") and callable(getattr(classes[each], test))]


# ---- one test ----

def _start(case, rank, count):
  """What PyTorch's classes do in a process before they call the test."""
  case.rank, case.world_size = rank, count
  kind = type(case)
  if issubclass(kind, common_device_type.DeviceTypeTestBase):
    kind.setUpClass()
  if issubclass(kind, common_distributed.MultiProcContinuousTest):
    kind._init_pg(rank, count, case.file_name)
  elif issubclass(kind, common_distributed.MultiThreadedTestCase) or hasattr(kind, "init_method"):
    dist.init_process_group(common_fsdp.DISTRIBUTED_BACKEND, rank=rank, world_size=count,
                            init_method=f"file://{case.file_name}")
    dist.barrier()
  getattr(case, "perThreadSetUp", lambda: None)()
  common_utils.set_rng_seed()


def _finish(case):
  getattr(case, "perThreadTearDown", lambda: None)()
  if dist.is_initialized():
    dist.barrier()
    dist.destroy_process_group()
  torch._dynamo.reset()
  torch.set_default_device(None)


def _run(kind, test, rank, count, file_name):
  if getattr(kind, "__unittest_skip__", False):
    raise unittest.SkipTest(kind.__unittest_skip_why__)
  kind.world_size, kind.rank = count, rank
  case = kind(test)
  case.file_name = file_name
  _start(case, rank, count)
  getattr(case, test)()
  _finish(case)


def _reason(code):
  """Why a test that ends its process with this code skips itself, or None."""
  return next((skip.message for skip in common_distributed.TEST_SKIPS.values() if skip.exit_code == code), None)


def _errors_since(begin):
  """The first line of each kind of error that the process has logged after this place of its output."""
  text = os.pread(1, 1 << 20, begin).decode(errors="replace")
  return list(dict.fromkeys(re.findall(r"^E\d{4} [^\]]*\] (.{1,600})", text, re.MULTILINE)))[:3]


def _outcome(run):
  begin = os.fstat(1).st_size
  try:
    run()
    return {"result": "pass"}
  except unittest.SkipTest as skip:
    return {"result": "skip", "error": str(skip)}
  except BaseException as error:
    if isinstance(error, SystemExit) and (why := _reason(error.code)):
      return {"result": "skip", "error": why}
    frames = traceback.extract_tb(error.__traceback__)[-6:]
    return {"result": "fail", "error": f"{type(error).__name__}: {error}"[:3000], "log": _errors_since(begin),
            "where": [f"{os.path.basename(frame.filename)}:{frame.lineno} {frame.line}" for frame in reversed(frames)]}


def _clean():
  """After a test that has not come to its end."""
  if dist.is_initialized():
    dist.destroy_process_group()


def _join():
  """TorchTPU's client needs a process group, by torchrun's variables, before the tests seed the device."""
  if common_fsdp.DISTRIBUTED_BACKEND == BACKENDS:
    dist.init_process_group("tpu_dist")
    dist.barrier()
    dist.destroy_process_group()


def _end_with_parent():
  ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def serve(rank, count, requests, replies):
  """Runs the tests that are asked for."""
  _end_with_parent()
  resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
  faulthandler.enable()
  faulthandler.register(signal.SIGUSR1)
  _join()
  for number, line in enumerate(requests):
    case = json.loads(line)
    file_name = os.path.join(tempfile.gettempdir(), f"suites.{os.getppid()}.{os.environ['MASTER_PORT']}.{number}")
    outcome = _outcome(lambda: _run(_classes(case["path"])[case["class"]], case["test"], rank, count, file_name))
    replies.write(json.dumps(outcome) + "\n")
    replies.flush()
    if outcome["result"] != "pass":
      _clean()

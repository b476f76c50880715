"""How TorchTPU comes to the described pod: no set-up, whichever package PyTorch loads first."""

import os
import re
import shutil

import pytest
import torch_tpu_scenario as tpu

SUM = 'print(torch.arange(6., device="tpu").sum().item())\n'
HAS_TPU = """\
def has_tpu():
  try:
    return torch.device("tpu").type == "tpu"
  except RuntimeError:
    return False
"""
# Has PyTorch load the entry points in this order.
ORDER = """\
from importlib import metadata
found = metadata.entry_points
def entry_points(**keys):
  points = found(**keys)
  return sorted(points, key=lambda point: order.index(point.name)) if keys.get("group") == "torch.backends" else points
metadata.entry_points = entry_points
"""


def test_no_set_up():
  """No other variable, no JAX, no libtpu; and nothing is left behind."""
  out = tpu.run(SUM + """
import os, sys
print("jax" in sys.modules, "libtpu" in sys.modules, "TPU_LIBRARY_PATH" in os.environ, torch.accelerator.device_count())
print(torch.accelerator.current_accelerator())
""")
  assert out.splitlines() == ["15.0", "False False False 4", "tpu"]


@pytest.mark.parametrize("pod, name, count, gib", [
    ("v4-megacore:2x2x1", "TPU v4", 4, 32), ("v5p:2x2x1", "TPU v5p", 4, 95), ("v5e:2x4 hosts:1", "TPU v5e", 8, 16),
    ("v6e:1x1", "TPU v6e", 1, 32), ("v6e:4x4", "TPU v6e", 4, 32), ("7x:2x2x1", "TPU v7", 8, 96),
    ("v6e:2x2 hbm:1GiB", "TPU v6e", 4, 1)])
def test_what_the_search_for_tpus_finds(pod, name, count, gib):
  """Of a host: chips, but halves of chips on 7x; before there is a client."""
  out = tpu.run("""
      from torch_tpu._internal.utils import hardware
      print(hardware.get_tpu_device_name(), hardware.get_tpu_device_count(), torch.accelerator.device_count(),
            hardware.get_hbm_bytes_per_device() / 2**30, hardware.get_tpu_topology(), sep=";")
      """, pod)
  shape = {1: "1,1,1", 4: "2,2,1", 8: "2,2,1,2" if pod[0] == "7" else "2,4,1"}[count]
  assert out.strip() == f"{name};{count};{count};{float(gib)};{shape}"


@pytest.mark.parametrize("hook", ["1", "0"], ids=["hook", "no-hook"])
@pytest.mark.parametrize("first", ["minipod", "torch_tpu"])
def test_orders_of_the_entry_points(first, hook):
  second = {"minipod": "torch_tpu", "torch_tpu": "minipod"}[first]
  prelude = f"order = {[first, second]}\n{ORDER}"
  if first == "torch_tpu" and hook == "0":
    # TorchTPU would end a process that has no library.
    prelude = "import sys, types, minipod, os\nos.environ['TPU_LIBRARY_PATH'] = minipod.library_path()\n" + prelude
    returncode, out, lines = tpu.finish("import torch\n" + HAS_TPU + "print(has_tpu())", prelude=prelude,
                                        MINIPOD_START_HOOK=hook)
    assert returncode == 0 and out.splitlines()[-1] == "False"
    assert len(lines) == 1 and "TorchTPU was loaded before minipod" in lines[0]
  else:
    assert tpu.run("import torch\n" + SUM, prelude=prelude, MINIPOD_START_HOOK=hook) == "15.0\n"


@pytest.mark.parametrize("imports", ["import torch_tpu, torch", "import torch, torch_tpu"])
def test_torch_tpu_imported_by_the_script(imports):
  assert tpu.run(imports + "\n" + SUM, prelude="") == "15.0\n"


def test_no_autoload():
  assert tpu.run(HAS_TPU + """
print(has_tpu())
import torch_tpu._loader
torch_tpu._loader.load()
print(torch.ones(3, device="tpu").sum().item())
""", TORCH_DEVICE_BACKEND_AUTOLOAD="0").splitlines() == ["False", "3.0"]


@pytest.mark.parametrize("variables, words", [
    ({"MINIPOD_TOPOLOGY": "v9:2x2"}, 'topology "v9:2x2": expected a preset'),
    ({"MINIPOD_TOPOLOGY": "v6e:2x"}, "v6e:2x"),
    ({"MINIPOD_TOPOLOGY": "v6e:2x2", "MINIPOD_DEVICES": "3"}, "3"),
    ({"MINIPOD_TOPOLOGY": "h100:8"}, "the pod 'h100:8' are of kind 'NVIDIA H100 80GB HBM3', which TorchTPU does not"),
    ({"MINIPOD_TOPOLOGY": "v2:2x2"}, "of kind 'TPU v2'"),
    ({"MINIPOD_DEVICES": "4"}, "of kind 'minipod'"),
    ({"MINIPOD_TOPOLOGY": "v6e:2x2", "MINIPOD_LIBRARY": "/nothing.so"}, "MINIPOD_LIBRARY=/nothing.so: there is no such"),
    ({"MINIPOD_TOPOLOGY": "v6e:2x2", "MINIPOD_LIBRARY": __file__}, f"{__file__}: invalid ELF header"),
    ({}, "no TPU for PyTorch: set MINIPOD_TOPOLOGY to one of v4-megacore, v5e, v5p, v6e and 7x")], ids=str)
def test_a_pod_without_tpus(variables, words):
  """One line says it; PyTorch itself goes on."""
  returncode, out, lines = tpu.finish(HAS_TPU + "print(torch.ones(3).sum().item(), has_tpu())", None, **variables)
  assert returncode == 0 and out.splitlines()[-1] == "3.0 False", (out, lines)
  assert words in lines[0] and all(not line.startswith("minipod: ") for line in lines[1:])


@pytest.mark.parametrize("rank", [None, "0"])
def test_advice_for_v4(rank):
  variables = {} if rank is None else {"RANK": rank}
  returncode, out, lines = tpu.finish(SUM, "v4:2x1x1 hosts:1", **variables)
  assert returncode == 0 and out == "15.0\n"
  assert lines == ([] if rank else [
      "minipod: each chip of the pod 'v4:2x1x1 hosts:1' is two devices, but one device of a TPU v4 in PyTorch: set"
      " MINIPOD_TOPOLOGY='v4-megacore:2x1x1 hosts:1'"])


def test_another_library_of_the_user(tmp_path):
  """minipod leaves it alone, and its pod unseen."""
  import minipod

  other = shutil.copy(minipod.library_path(), tmp_path / "other.so")
  assert tpu.run(HAS_TPU + """
import os
print(has_tpu(), os.environ["TPU_LIBRARY_PATH"])
maps = open("/proc/self/maps").read()
print("other.so" in maps, "pjrt_c_api_minipod_plugin.so" in maps)
""", TPU_LIBRARY_PATH=other).split("\n")[-3:-1] == [f"False {other}", "True False"]


def test_another_build_of_the_user():
  """A library by minipod's name is minipod's: its pod is seen, and the variable stays."""
  import minipod

  path = minipod.library_path()
  out = tpu.run(SUM + "import os; print(os.environ['TPU_LIBRARY_PATH'])", TPU_LIBRARY_PATH=path)
  assert out.splitlines() == ["15.0", path]


def test_libtpu_of_the_user(tmp_path):
  """An installed libtpu stays; without a described pod, it is the library."""
  import minipod

  folder = tmp_path / "folder"
  folder.mkdir()
  (tmp_path / "libtpu.py").write_text(f"""
import os
def configure_library_path():
  print("libtpu", os.environ.setdefault("TPU_LIBRARY_PATH", {str(folder / "libtpu.so")!r}).rpartition("/")[2])
""")
  shutil.copy(minipod.library_path(), folder / "libtpu.so")
  name = os.path.basename(minipod.library_path())
  path = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")]))
  assert tpu.run(SUM, PYTHONPATH=path).splitlines() == [f"libtpu {name}", "15.0"]
  assert tpu.run(HAS_TPU + "print(has_tpu())", None, PYTHONPATH=path).splitlines() == ["libtpu libtpu.so", "False"]


def test_jax_in_the_same_process():
  """JAX sees what it sees without PyTorch."""
  pytest.importorskip("jax")
  code = """
      import jax, jax.numpy as jnp
      from jax._src import cloud_tpu_init
      print(jax.devices()[:1], jax.default_backend(), len(jax.devices()), cloud_tpu_init.get_tpu_library_path())
      print(jax.jit(lambda x: x + 1)(jnp.ones(2)))
      """
  alone = tpu.run(code, prelude="")
  assert re.search(r"MinipodDevice\(id=0,.* tpu 4 None", alone), alone
  assert tpu.run(code) == alone
  assert tpu.run("print(torch.ones(2, device='tpu').sum().item())\n" + code.replace("\n      ", "\n")) == "2.0\n" + alone
  assert tpu.run(code.replace("\n      ", "\n") + "import torch\n" + SUM, prelude="") == alone + "15.0\n"


def test_options_of_libtpu():
  """TorchTPU passes premapped_buffer_size; a line at level info says that it has no effect."""
  returncode, _, lines = tpu.finish(SUM, MINIPOD_LOG_LEVEL="info")
  assert returncode == 0
  assert [line for line in lines if "premapped_buffer_size" in line] == [
      "minipod: info: create option premapped_buffer_size of libtpu is known but has no effect here"]

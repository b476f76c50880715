"""`minipod.use`, and virtual times, in a process that has no JAX."""

import pytest
import torch_tpu_scenario as tpu

SHOW = """
import sys, torch
x = torch.ones(256, 256, device="tpu")
(x @ x).sum().item()
def bare(value): return f"{value:.3g}" if isinstance(value, float) else value
from torch_tpu._internal.utils import hardware
print(hardware.get_tpu_device_name(), torch.accelerator.device_count(), "jax" in sys.modules)
"""


@pytest.mark.parametrize("before", ["", "import torch\n"], ids=["before-import", "after-import"])
@pytest.mark.parametrize("pod", ["v5e:2x2", "v6e:1x1"])
def test_another_pod_without_jax(before, pod):
  """The environment describes a pod that is not used."""
  out = tpu.run(before + "import minipod\nminipod.use('v4:2x2x1')\nminipod.use('v5e:2x4', hosts=1, time='model')" + SHOW +
                "print(minipod.virtual_time() > 0, minipod.time_report('data')[0]['pod'])", pod, prelude="")
  assert out.splitlines() == ["TPU v5e 8 False", "True v5e:2x4 hosts:1"]


def test_a_pod_that_only_the_script_names():
  out = tpu.run("import minipod\nminipod.use('v6e:2x2', device_memory='1GiB')" + SHOW, None, prelude="")
  assert out.splitlines()[-1] == "TPU v6e 4 False"


def test_back_to_the_pod_of_the_environment():
  out = tpu.run("import minipod\nminipod.use('v5e:2x4', time='model')\nminipod.use()" + SHOW +
                "try: minipod.virtual_time()\nexcept RuntimeError as error: print(str(error)[:29])", "v6e:1x1", prelude="")
  assert out.splitlines() == ["TPU v6e 1 False", "no virtual times are kept: se"]


def test_a_client_keeps_its_pod():
  out = tpu.run("""
      import minipod
      torch.ones(2, device="tpu").sum().item()
      try: minipod.use("v5e:2x4")
      except RuntimeError as error: print(error)
      """)
  assert out.startswith("minipod.use: TorchTPU has a client already") and "before the first tensor" in out


@pytest.mark.parametrize("pod, words", [("v9:2x2", "v9:2x2"), ("h100:8", "which TorchTPU does not know")])
def test_a_pod_that_is_wrong(pod, words):
  out = tpu.run(f"""
      import minipod
      try: minipod.use("{pod}")
      except ValueError as error: print(error)
      """)
  assert words in out

"""The first programs of a new user, with both ways to name the device, and the texts of errors."""

import pathlib
import re
import subprocess

import pytest

pytest.importorskip("torch_xla")

import scenario
import torch_scenario

PAGE = (pathlib.Path(__file__).parents[3] / "tools/site/pages/cookbook/pytorch.md").read_text()


def test_the_page(tmp_path):
  """The page's example trains with each of the commands that the page prints for it."""
  code = re.search(r"```python\n(.*?)```", PAGE, re.DOTALL).group(1)
  (tmp_path / "train.py").write_text(code)
  (tmp_path / "script.py").write_text(code)
  (tmp_path / "build").symlink_to(pathlib.Path(torch_scenario.library()).parent)
  commands = re.search(r"```sh\n(.*?)```", PAGE, re.DOTALL).group(1).splitlines()
  assert len(commands) == 3
  for command in commands:
    process = scenario.start_shell(command, tmp_path, scenario.environment(2), stderr=subprocess.PIPE)
    code, out, err = scenario.finish(process, timeout=100)
    losses = out.split()
    assert code == 0 and len(losses) == (2 if "torchrun" in command else 1), (command, out, err)
    assert all(0 < float(loss) < 5 for loss in losses)


@pytest.mark.parametrize("form", torch_scenario.FORMS)
@pytest.mark.parametrize("way", ["package", "library"])
def test_devices_and_a_sum(way, form):
  variables = {} if way == "package" else {
      "PJRT_DEVICE": "LIBRARY", "PJRT_LIBRARY_PATH": torch_scenario.library()}
  out = torch_scenario.run("""
      print(torch_xla.devices())
      x = torch.arange(6., device="xla")
      print("numbers", x.sum().item(), (x.reshape(2, 3) @ x.reshape(3, 2)).sum().item())
      print(xm.xla_device_hw("xla:0"), xr.global_runtime_device_count(), xr.process_count())
      """, form=form, **variables)
  assert out.count("device(type='xla'") == 4
  assert torch_scenario.numbers(out) == [15, 91]
  assert "MINIPOD 4 1" in out


@pytest.mark.parametrize("form", torch_scenario.FORMS)
def test_compiled_functions(form):
  out = torch_scenario.run("""
      import torch_xla.debug.metrics as met
      f = lambda x, w: torch.nn.functional.gelu(x @ w, approximate="tanh").mean(0)
      torch.manual_seed(0)
      x, w = torch.randn(8, 8), torch.randn(8, 8)
      want = f(x, w)
      step = torch_xla.compile(f, full_graph=True)
      dynamo = torch.compile(f, backend="openxla")
      for g in (step, dynamo):
        for _ in range(2):
          got = g(x.to("xla"), w.to("xla")).cpu()
          torch.testing.assert_close(got, want, rtol=1e-5, atol=1e-5)
      print("right", met.metric_data("CompileTime")[0])
      """, form=form)
  assert "right" in out


@pytest.mark.parametrize("form", torch_scenario.FORMS)
def test_functions_of_numbers(form):
  """Some are calls, not operations of StableHLO."""
  torch_scenario.run("""
      for dtype in torch.float32, torch.float64, torch.bfloat16:
        x = torch.linspace(-0.99, 0.99, 25).to(dtype)
        for name in "erf erfc erfinv acos asin atan acosh asinh atanh cosh sinh tan".split():
          y = x + 2 if name == "acosh" else x
          f = getattr(torch, name)
          torch.testing.assert_close(f(y.to("xla")).cpu(), f(y), msg=lambda m: f"{name} {dtype}: {m}")
        f = torch.nn.functional.gelu
        torch.testing.assert_close(f(x.to("xla")).cpu(), f(x))
      """, form=form)


def test_arrays_of_every_type_come_back():
  torch_scenario.run("""
      for dtype in (torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64,
                    torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64):
        for x in (torch.arange(24).reshape(2, 3, 4).to(dtype), torch.ones(3, 4).to(dtype).t(),
                  torch.zeros(0, 3).to(dtype), torch.ones(()).to(dtype)):
          assert torch.equal(x.to("xla").cpu(), x), (dtype, x.shape)
          assert torch.equal(x.to("xla").clone().contiguous().cpu(), x), (dtype, x.shape)
      """)


def test_devices_exchange_arrays():
  torch_scenario.run("""
      x = torch.arange(4., device="xla:0") + 1
      y = x.to("xla:3") * 2
      assert str(y.device) == "xla:3" and y.cpu().tolist() == [2, 4, 6, 8]
      info = xm.get_memory_info("xla:3")
      assert 0 < info["bytes_used"] <= info["peak_bytes_used"] <= info["bytes_limit"], info
      """)


def test_buffers_are_donated():
  torch_scenario.run("""
      x = torch.ones(1024, device="xla")
      torch_xla.sync()
      for _ in range(3):
        x += 1
        torch_xla.sync()
      assert x.sum().item() == 4 * 1024
      """)


def test_a_full_device_is_an_error():
  err = torch_scenario.run("""
      x = torch.zeros(64, 1024, 1024, device="xla")
      torch_xla.sync(wait=True)
      print(x.sum().item())
      """, fails=True, MINIPOD_DEVICE_MEMORY="16MiB")
  assert "RESOURCE_EXHAUSTED" in err or "out of memory" in err


def test_dlpack():
  """PyTorch/XLA itself exchanges only arrays on a platform named "cpu", and its error says so."""
  torch_scenario.run("""
      import torch_xla.utils.dlpack as dlpack
      x = torch.arange(6., device="xla")
      torch_xla.sync(wait=True)
      for way, error, words in ((lambda: dlpack.to_dlpack(x), RuntimeError, "cannot be used as a DLPack device"),
                                (lambda: dlpack.from_dlpack(torch.ones(3)), RuntimeError, "CpuId"),
                                (lambda: torch.from_dlpack(x), ValueError, "Unknown device type xla"),
                                (lambda: np.from_dlpack(x), RuntimeError, "not on CUDA")):
        try:
          way()
        except error as found:
          assert words in str(found), found
        else:
          assert False, "it works now: what README says is to be changed"
      assert np.from_dlpack(x.cpu()).tolist() == [0, 1, 2, 3, 4, 5]
      assert torch.from_dlpack(np.ones(3)).to("xla").sum().item() == 3
      """)


@pytest.mark.parametrize("order", ["jax first", "torch_xla first"])
def test_arrays_go_to_jax_and_back(order):
  """Both frameworks in one process, each with its own pod, exchange arrays through torch's CPU."""
  jax = pytest.importorskip("jax", reason="JAX is no requirement of PyTorch/XLA")
  if tuple(map(int, jax.__version__.split(".")[:2])) < (0, 9):
    pytest.skip(f"JAX {jax.__version__} is too old for minipod")
  firsts = ["import jax; assert jax.devices()[0].platform == 'minipod'", "torch_xla.devices()"]
  torch_scenario.run("\n".join(firsts if order == "jax first" else firsts[::-1]) + """
x = torch.arange(6., device="xla") * 2
there = jax.dlpack.from_dlpack(x.cpu())
assert there.devices() == {jax.devices()[0]}
back = torch.from_dlpack(jax.jit(lambda v: v + 1)(there))
assert (back.to("xla") * 2).cpu().tolist() == [2, 6, 10, 14, 18, 22]
""")


def test_a_trace_shows_launches(tmp_path):
  torch_scenario.run("""
      import glob, os
      import torch_xla.debug.profiler as xp
      server = xp.start_server(9012)
      xp.start_trace(os.environ["TRACES"])
      x = torch.ones(4, device="xla") + 1
      torch_xla.sync(wait=True)
      xp.stop_trace()
      found = glob.glob(os.environ["TRACES"] + "/**/*.xplane.pb", recursive=True)
      assert b"/device:CUSTOM:minipod:0" in open(found[0], "rb").read()
      """, TRACES=tmp_path)


def test_the_package_needs_no_jax():
  torch_scenario.run("""
      import sys
      x = torch.ones(2, device="xla") + 1
      assert x.sum().item() == 4
      assert "minipod.jax_plugin" not in sys.modules, "the other framework's plugin was loaded"
      """)

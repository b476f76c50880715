"""The platform under a name that frameworks know, and what JAX must know before its first use."""

import json
import pathlib
import re

import minipod
import pytest
import scenario

# Python starts with minipod installed; then the code checks whether JAX exists, as libraries do.
PRELUDE = (f"import site; site.addsitedir({str(pathlib.Path(minipod.__file__).parents[1])!r})\n"
           "import importlib.util; assert importlib.util.find_spec('jax')\n"
           + scenario.PRELUDE + "import jax.export, jax.extend.backend, types\n")

ASKS = """
    name, key = NAMES
    device = jax.devices()[0]
    x = jax.jit(lambda x: jnp.linalg.eigvalsh(x))(jnp.eye(3))
    assert {jax.default_backend(), device.platform, device.client.platform, x.platform(),
            x.device.platform, jax.extend.backend.get_backend().platform} == {name}
    assert jax.local_devices()[0].platform == name and jax.devices("cpu")[0].client != device.client
    if key:
      for each in (name, key, "minipod"):
        assert jax.devices(each) == jax.devices() and jax.device_count(each) == 4
        assert jax.local_devices(backend=each)[1].client is device.client
      with jax.default_device(jax.devices(name)[1]):
        assert jnp.ones(2).device == jax.devices()[1]
    # JAX itself lowers, branches, exports, donates and stores for minipod.
    lowered = jax.jit(jnp.linalg.eigvalsh).lower(jnp.eye(3))
    assert "minipod.eigh" in lowered.as_text()
    f = jax.jit(lambda x: lax.platform_dependent(
        x, cpu=lambda x: x + 1, tpu=lambda x: x + 2, cuda=lambda x: x + 3, default=lambda x: x + 4))
    assert f(1.0) == (3 if device.device_kind.startswith("TPU") else 2)  # a TPU has its own branch
    exported = jax.export.export(jax.jit(lambda x: x + 1))(x)
    assert exported.platforms == ("minipod",) and exported.call(x)[0] == 2
    y = jnp.ones(1000)
    jax.jit(lambda y: y + 1, donate_argnums=0)(y)
    assert y.is_deleted() and np.from_dlpack(x)[0] == 1
    assert jax.pure_callback(lambda x: x + 1, x, x)[0] == 2
    mesh = jax.make_mesh((2, 2), ("x", "y"))
    assert mesh.devices.flat[0].platform == name
    z = jax.device_put(np.eye(4), NamedSharding(mesh, P("x", "y")))
    assert np.asarray(jax.jit(lambda z: z + 1)(z))[1, 1] == 2
    # And whoever asks from elsewhere hears the name.
    there = types.ModuleType("a_framework")
    exec("import jax\\ndef ask(): return jax.default_backend(), jax.devices()[0].platform", vars(there))
    assert there.ask() == (name, name)
    print("good")
    """


def ask(name, key, pod, code="", **variables):
  code = ASKS.replace("NAMES", repr((name, key))) + code
  out = scenario.run(code, devices=None, prelude=PRELUDE, MINIPOD_TOPOLOGY=pod, **variables)
  assert out.startswith("good\n")
  return out.splitlines()[1:]


def test_tpus():
  """A script as on a host of TPUs: `initialize` without arguments, and all look-ups."""
  code = """
    from jax.experimental import mesh_utils
    print(device.device_kind, device.coords, device.core_on_chip, device.num_cores, device.slice_index)
    print([d.id for d in mesh_utils.create_device_mesh((4,)).flat])
    print(sorted(device.memory_stats()))
    print(jax.process_count(), jax.process_index(), jax._src.distributed.global_state.client != None)
    print(described.devices[0].platform, len(described.devices), described.devices[0].device_kind)
    """
  before = """
    jax.distributed.initialize()
    from jax.experimental import topologies
    described = topologies.get_topology_desc("v6e:2x4", "tpu")
    """
  kind, mesh, stats, processes, described = scenario.run(
      before + ASKS.replace("NAMES", "('tpu', 'tpu')")
      + code, devices=None, prelude=PRELUDE, MINIPOD_TOPOLOGY="v5e:2x2",
      MINIPOD_PLATFORM="tpu").splitlines()[1:]
  assert kind == "TPU v5 lite [0, 0, 0] 0 1 0" and mesh == "[0, 1, 3, 2]"
  assert "'bytes_in_use'" in stats and "'bytes_limit'" in stats and "'peak_bytes_in_use'" in stats
  assert processes == "1 0 True" and described == "tpu 8 TPU v6 lite"


def test_a_process_alone_ends_at_once():
  """Nothing watches for other processes: JAX would report that at the end, after five seconds."""
  code = "jax.distributed.initialize(); print(jax.device_count())"
  assert scenario.finish(scenario.start(code, prelude=PRELUDE)) == (0, "4\n", "")


def test_gpus(tmp_path):
  """A description names GPUs: JAX calls them "gpu", and stores them under "cuda"."""
  (tmp_path / "pod.yaml").write_text("preset: h100\nchips: 4\nplatform: gpu\n")
  out = ask("gpu", "cuda", tmp_path / "pod.yaml",
            "print(device.device_kind, device.compute_capability)")
  assert out == ["NVIDIA H100 80GB HBM3 9.0"]


def test_a_pod_that_is_called_cpu():
  """JAX's own CPU devices still exist."""
  ask("cpu", None, "ring:4", MINIPOD_PLATFORM="cpu")


def test_an_unknown_name():
  err = scenario.run("jax.devices()", fails=True, MINIPOD_PLATFORM="rocm")
  assert ("option platform (environment variable): expected auto, minipod, tpu, gpu or cpu, got 'rocm'"
          in err)


@pytest.mark.parametrize("call, words", [
    ("jax.distributed.initialize('127.0.0.1:1234')", "Number of processes must be defined"),
    ("jax.config.update('jax_platforms', 'cpu'); jax.distributed.initialize()",
     "coordinator_address should be defined")], ids=["a coordinator", "another platform"])
def test_what_is_not_for_us_to_find(call, words):
  assert words in scenario.run(call, fails=True, prelude=PRELUDE)


@pytest.mark.parametrize("names", ["minipod", "", "minipod,cpu"])
def test_what_the_user_has_named_stays(names):
  """JAX's configuration keeps the user's value; a CPU backend still exists for JAX's host-side helpers."""
  assert scenario.run("""
      f = jax.jit(lambda x: jax.pure_callback(lambda v: v + 1, x, x))
      for _ in range(2):
        x = jnp.ones(3)
        assert jax.default_backend() == "minipod" == jax.devices()[0].platform
        assert jax.devices("cpu")[0].platform == "cpu" and f(x)[0] == 2
        assert np.from_dlpack(x)[0] == 1 and jax.dlpack.from_dlpack(np.ones(3)).device == jax.devices()[0]
        jax.extend.backend.clear_backends()
      print(repr(jax.config.jax_platforms))
      """, prelude=PRELUDE, JAX_PLATFORMS=names) == repr(names) + "\n"


def test_described_chips_determine_the_platform_name():
  ask("tpu", "tpu", "v6e:2x2")
  ask("gpu", "cuda", "h100:4")


@pytest.mark.parametrize("pod, variables", [("ring:4", {}), ("v5e:2x2", {"MINIPOD_PLATFORM": "minipod"})],
                         ids=["another pod", "by option"])
def test_pods_that_keep_the_name(pod, variables):
  """minipod does not replace JAX's answers."""
  assert scenario.run("""
      from jaxlib import _jax
      kinds = _jax.Device.platform, _jax.Client.platform
      print(jax.devices()[0].platform, jax.default_backend(), kinds == (_jax.Device.platform, _jax.Client.platform),
            any(isinstance(kind, property) and kind.fget.__module__ == "minipod.jax.names" for kind in kinds))
      """, devices=None, prelude=PRELUDE, MINIPOD_TOPOLOGY=pod, **variables) == "minipod minipod True False\n"


def test_described_tpus_need_no_option():
  assert scenario.run("""
      from jax.experimental import topologies
      described = topologies.get_topology_desc("v6e:2x4", "tpu")
      print(described.devices[0].platform, len(described.devices))
      """, devices=None, prelude=PRELUDE, MINIPOD_TOPOLOGY="v5e:2x2") == "tpu 8\n"


@pytest.mark.parametrize("variables, waits", [
    ({}, True), ({"JAX_PLATFORMS": ""}, True), ({"JAX_PLATFORMS": "cpu,minipod"}, True),
    ({"JAX_PLATFORMS": "cpu"}, False), ({"JAX_PLATFORMS": "cuda,cpu"}, False), ({"MINIPOD_START_HOOK": "0"}, False)],
    ids=str)
def test_the_start_hook(variables, waits):
  """The hook waits for JAX only if minipod may be used and the hook is not turned off."""
  out = scenario.run("""
      import sys
      print(any(getattr(finder, "awaited", None) == "jax" for finder in sys.meta_path))
      import jax
      print(any(getattr(finder, "awaited", None) == "jax" for finder in sys.meta_path))
      if "minipod" in (jax.config.jax_platforms or "minipod"):
        print(jax.devices("minipod")[0].platform)
      """, prelude=PRELUDE.partition("import importlib")[0], **variables)
  names_it = "minipod" in variables.get("JAX_PLATFORMS", "minipod") or variables.get("JAX_PLATFORMS") == ""
  assert out.splitlines() == [str(waits), "False"] + ["minipod"] * names_it


def test_another_platform_leaves_python_and_jax_alone():
  assert scenario.run("""
      import sys
      assert jax.devices()[0].platform == "cpu" and jax.jit(lambda x: x + 1)(1) == 2
      from jax._src import clusters
      from jaxlib import _jax
      print([name for name in sys.modules if name.startswith("minipod.jax.rules")] and "imported",
            any("Minipod" in kind.__name__ for kind in clusters.ClusterEnv._cluster_types),
            hasattr(_jax.Device.platform, "fget") and _jax.Device.platform.fget.__module__ == "minipod.jax.names")
      """, prelude=PRELUDE, JAX_PLATFORMS="cpu").split()[-2:] == ["False", "False"]


def names_of_pods():
  """The presets, and Google Cloud's names, with a shape if they need one."""
  folder = pathlib.Path(__file__).parents[3] / "topology" / "presets"
  presets = re.findall(r'^ +\{"([\w-]+)",', (folder / "presets.c").read_text(), re.MULTILINE)
  text = (folder / "cloud_names.c").read_text()
  slices = [name + "8" for name in re.findall(r'\{"(v\w+-)",', text)]
  chips = re.findall(r'\{"([\w-]+)", +"\w+"\}', text)
  assert "h200" in presets and "v5litepod-8" in slices and "trillium" in chips and "nvidia-gb200" in chips
  kinds = [f"tpu-{name}-{end}" for name in ("v4", "v5p", "v6e", "7x", "v5-lite") for end in ("podslice", "slice", "device")]
  return [name for name in dict.fromkeys(presets + slices + chips + kinds) if name not in ("topology", "chip", "kind", "shape")]


def test_the_name_before_there_are_devices_is_that_of_the_devices():
  """Also for description files, which only the client reads."""
  out = scenario.run(f"""
      import json, os
      from minipod.jax import names
      from minipod import topo
      out = {{}}
      for name in {names_of_pods()!r}:
        for line in (name, name + ":4x4", name + ":2x2x4", name + ":8"):
          try:
            pod = str(topo(line))
          except ValueError:
            continue
          os.environ["MINIPOD_TOPOLOGY"] = line
          out[line] = [names.wanted(), "TPU" in pod]
      os.environ["MINIPOD_TOPOLOGY"] = "v4-gpus.yaml"
      out["file"] = [names.wanted(), False]
      print(json.dumps(out))
      """, devices=None)
  found = json.loads(out)
  assert len(found) > 30 and {name.partition(":")[0] for name in found} >= {"v5e", "ironwood", "gb200", "tpu-v5-lite-podslice"}
  assert all((wanted == "tpu") == is_tpu for wanted, is_tpu in found.values()), found

"""Fails when JAX changes one of the private names that minipod's package uses."""

import importlib.util
import inspect
import json
import os
import pathlib
import re
import subprocess
import sys

import jax
from minipod import jax_plugin
import minipod
from minipod.jax import guard
import pytest
import scenario

ROOT = pathlib.Path(__file__).parents[3]


def load_tool():
  spec = importlib.util.spec_from_file_location("without_jax", ROOT / "tests/without_jax.py")
  module = importlib.util.module_from_spec(spec)
  spec.loader.exec_module(module)
  return module


TOOL = load_tool()


def test_package_is_installed_and_announced():
  from importlib.metadata import entry_points
  values = {e.value for e in entry_points(group="jax_plugins") if e.name == "minipod"}
  assert values == {"minipod.jax_plugin"}
  assert minipod.__version__[0].isdigit() and os.path.isfile(minipod.library_path())


def test_only_one_folder_uses_private_names():
  folder = pathlib.Path(minipod.__file__).parent
  users = {path.parent.name for path in folder.rglob("*.py")
           if any(map(TOOL.is_private, TOOL.names_of(path)))}
  assert users == {"jax"}


def test_private_modules_are_imported_where_a_step_is_guarded():
  """Private modules are not imported at the top of a file, because a failure would lose the whole file."""
  for path in (TOOL.package() / "jax").glob("*.py"):
    lines = [line for line in path.read_text().splitlines()
             if re.match(r"(import|from) +(jaxlib|jax\._src|jax\.interpreters|jax\.extend)", line)]
    assert lines == [], path


@pytest.mark.parametrize("name", TOOL.find_names())
def test_name_exists(name):
  assert TOOL.exists(name)


def test_all_names_are_found():
  """The finder follows aliases of modules, and assignments of several names."""
  names = TOOL.find_names()
  for name in ("jax._src.xla_bridge.register_plugin", "jax._src.lax.ann._jax",
               "jax._src.dlpack._jax.dlpack_managed_tensor_to_buffer",
               "jax._src.array.ArrayImpl.__dlpack_device__", "jax.interpreters.mlir._lowerings",
               "jax._src.interpreters.mlir.custom_call", "jax._src.dispatch.runtime_tokens.clear"):
    assert name in names, names


# ---- Messages about the names ----


def test_shapes_of_what_is_patched():
  from jax._src import buffer_callback, callback, compilation_cache, compiler, dispatch, xla_bridge
  from jax._src.interpreters import mlir, pxla
  assert {"plugin_name", "priority", "library_path"} <= set(
      inspect.signature(xla_bridge.register_plugin).parameters)
  assert isinstance(xla_bridge._nonexperimental_plugins, set)
  assert callable(xla_bridge._backend_factories["minipod"].factory)
  assert isinstance(mlir._platforms_with_donation, list)
  # The package looks up both in their modules at each use, so replacing them there suffices.
  assert "compilation_cache.is_cache_used(" in inspect.getsource(compiler)
  assert "emit_python_callback(" in inspect.getsource(callback)
  # A callback's number is the length of this list before the callback is appended.
  for lowering in (callback.emit_python_callback.__wrapped__,
                   buffer_callback._buffer_callback_lowering):
    source = inspect.getsource(lowering)
    assert "ctx.module_context.add_host_callback(" in source
    assert "np.uint64(len(ctx.module_context.host_callbacks) - 1)" in source
  assert "self.host_callbacks.append(" in inspect.getsource(mlir.ModuleContext.add_host_callback)
  assert {"host_callbacks", "backend", "platforms"} <= set(
      inspect.signature(mlir.ModuleContext.__init__).parameters)
  assert list(inspect.signature(dispatch.RuntimeTokenSet.get_token_input).parameters)[1:] == [
      "eff", "devices"]
  assert {"keepalive", "ordered_effects", "_local_devices"} <= set(pxla.ExecuteReplicated.__slots__)
  assert callable(mlir.ModuleContext.add_keepalive)
  assert "return backend_compile_and_load(" in inspect.getsource(compiler)
  entry = next(iter(mlir._lowerings.values()))
  assert isinstance(entry, mlir.LoweringRuleEntry) and callable(entry.rule)


def test_shapes_of_what_is_patched_for_arrays_kernels_and_meshes():
  from jax._src import dlpack
  from jax._src.pallas.mosaic.interpret import thread_map
  from jax.experimental import mesh_utils
  place = dlpack._place_array.__wrapped__
  assert list(inspect.signature(place).parameters)[1:] == ["device", "dlpack_device", "copy"]
  assert "_place_array(" in inspect.getsource(jax.dlpack.from_dlpack.__wrapped__)
  assert dlpack.DLDeviceType.kDLCPU == 1
  assert "executor.submit(_run_jaxpr, " in inspect.getsource(thread_map._thread_map_callback)
  make = mesh_utils.create_device_mesh
  assert list(inspect.signature(make).parameters)[:2] == ["mesh_shape", "devices"]
  assert make.__closure__ is None
  assert "last_device.platform == 'tpu'" in inspect.getsource(make)


def test_jax_leaves_the_handlers_that_are_there():
  from jaxlib import xla_client
  assert "is already register" in inspect.getsource(xla_client.register_custom_call_handler)


def test_what_was_registered():
  from jax._src import xla_bridge
  from jax._src.interpreters import mlir
  assert "minipod" in mlir._platforms_with_donation
  assert not xla_bridge._backend_factories["minipod"].experimental
  names = {p.name for p in mlir._platform_specific_lowerings["minipod"]}
  assert names - {"pbroadcast_start", "check_index"} == {"pbroadcast", "psend", "precv", "device_put",
                   "approx_top_k", "cholesky", "dot_product_attention_bwd", "dot_product_attention_fwd",
                   "eigh", "geqrf", "householder_product",
                   "io_callback", "lu", "lu_pivots_to_permutation", "svd", "triangular_solve",
                   "tridiagonal_solve"}


@pytest.mark.parametrize("version, warns", [
    ("0.9.0.1", False), ("0.10.2", False), ("0.10.9.dev2", False), ("0.12.0.1", False),
    ("0.8.3", True), ("0.13.0", True), ("1.0", True)])
def test_range_of_versions(version, warns):
  text = jax_plugin.version_warning(version)
  assert (text is not None) == warns and (not warns or version in text)


def test_installed_jax_is_in_the_range():
  assert jax_plugin.version_warning(jax.__version__) is None


# ---- Missing names ----


def test_a_sample_of_names_that_are_gone():
  """tests/without_jax.py without --sample removes all names."""
  done = subprocess.run(
      [sys.executable, ROOT / "tests/without_jax.py", "--sample", "6", "--seed",
       os.environ.get("MINIPOD_TEST_SEED", str(os.getpid()))], capture_output=True, text=True,
      env=scenario.environment(2))
  assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", [
    "jax._src.lax.linalg._linalg_ffi_lowering", "jax._src.dlpack",
    "jax._src.interpreters.pxla._jax", "jax._src.callback.emit_python_callback",
    "jax._src.pallas.pallas_call"])
def test_a_name_that_is_gone_costs_a_feature_and_says_so(name):
  done = subprocess.run([sys.executable, ROOT / "tests/without_jax.py", name], capture_output=True,
                        text=True, env=scenario.environment(2))
  assert done.returncode == 0, done.stdout + done.stderr


def test_rules_that_cannot_work_leave_it_to_jax_and_say_so_once():
  _, out, err = scenario.finish(scenario.start("""
      import logging
      from jax.interpreters import mlir
      from jax._src.interpreters import mlir as private
      real = private.custom_call
      private.custom_call = lambda target, *args, **kwargs: (
          real(target, *args, **kwargs) if "minipod" not in target else real.is_gone)
      for size in (2, 3):
        print(np.asarray(jnp.linalg.eigvalsh(2 * jnp.eye(size))).tolist())
      """))
  assert out.splitlines() == ["[2.0, 2.0]", "[2.0, 2.0, 2.0]"], err
  assert err.count("cannot serve programs with 'eigh'") == 1 and jax.__version__ in err


def test_the_users_own_errors_stay():
  with pytest.raises(TypeError):
    jax.dlpack.from_dlpack("no array")
  with pytest.raises(NotImplementedError, match="subset_by_index"):
    jax.lax.linalg.eigh(jax.numpy.eye(4), subset_by_index=(0, 2))


def test_errors_below_a_line_of_ours_are_the_users():
  def users():
    return {}["a key"]

  with pytest.raises(KeyError):
    with guard.use("a test"):
      users()


# ---- If other platforms are chosen ----

WALK = """
import json, sys, types
%s
import jax, jax.numpy as jnp, numpy as np
import jax.export, jax.experimental.mesh_utils, jax.experimental.multihost_utils
from jax.experimental import buffer_callback, pallas
from jax.experimental.pallas import tpu
x = jnp.ones((3, 3))
jnp.linalg.svd(jax.jit(lambda x: jax.pure_callback(lambda y: y, x, x))(x))
np.from_dlpack(x), jax.dlpack.from_dlpack(np.arange(4.0))

def is_ours(thing):
  names = [getattr(thing, "__module__", None), getattr(type(thing), "__module__", None)]
  names.append(getattr(getattr(thing, "__code__", None), "co_filename", None))
  names.append(getattr(getattr(thing, "func", None), "__module__", None))
  return any(isinstance(n, str) and (n.split(".")[0] == "minipod" or "/minipod/" in n)
             for n in names)

def parts(thing):
  if isinstance(thing, dict):
    return list(thing.items())
  if isinstance(thing, (list, tuple, set, frozenset)):
    return list(enumerate(thing))
  if isinstance(thing, type):
    return list(vars(thing).items())
  return [("rule", thing.rule)] if hasattr(type(thing), "rule") else []

found, seen = [], set()
def look(path, thing, depth):
  if is_ours(thing):
    found.append(path)
  elif depth and id(thing) not in seen:
    if isinstance(thing, (dict, list, set)):
      seen.add(id(thing))
    for name, part in parts(thing):
      look(f"{path}.{getattr(name, 'name', name)}", part, depth - 1)

for name, module in sorted(sys.modules.items()):
  if name.split(".")[0] in ("jax", "jaxlib") and module is not None:
    for attribute, thing in list(vars(module).items()):
      # These have an entry that is the platform.
      # Where minipod is installed JAX knows its kind of cluster, too.
      if attribute not in ("_backend_factories", "_topology_factories", "ClusterEnv"):
        look(f"{name}.{attribute}", thing, 3)
print(json.dumps([jax.default_backend(), sorted(set(found)),
                  [n for n in ("create_device_mesh",)
                   if hasattr(getattr(jax.experimental.mesh_utils, n), "__wrapped__")]]))
"""


def walk(lines="", **variables):
  env = scenario.environment(None, **variables)
  done = subprocess.run([sys.executable, "-c", WALK % lines], env=env, capture_output=True,
                        text=True)
  assert done.returncode == 0, done.stderr
  return json.loads(done.stdout)


@pytest.mark.parametrize("lines, platforms", [
    ("", "cpu"), ("import jax; jax.config.update('jax_platforms', 'cpu')", "")])
def test_nothing_of_jax_is_ours_where_other_platforms_are_chosen(lines, platforms):
  assert walk(lines, JAX_PLATFORMS=platforms) == ["cpu", [], []]


def test_the_walk_finds_what_is_ours():
  platform, found, meshes = walk(JAX_PLATFORMS="minipod")
  assert platform == "minipod" and len(found) > 12 and meshes == []
  assert walk(JAX_PLATFORMS="minipod", MINIPOD_TOPOLOGY="v5e:2x2")[2] == ["create_device_mesh"]


LATER = """
assert jax.devices()[0].platform == "cpu"
jax.config.update("jax_platforms", "minipod")
jax.extend.backend.clear_backends()
x = jnp.ones((70, 70)) + 70 * jnp.eye(70)
assert jax.default_backend() == "minipod" and len(jax.devices()) == 4
np.testing.assert_allclose(jax.scipy.linalg.lu_factor(x)[0][0, :2], [71, 1])
np.testing.assert_allclose(jax.jit(lambda x: jax.pure_callback(lambda y: y, x, x))(x), x)
np.testing.assert_allclose(np.from_dlpack(x), x)
print(jax.devices("cpu")[0].platform)
"""


def test_a_later_choice_of_minipod_has_all_features():
  lines = "import jax.extend.backend" + LATER
  assert scenario.run(lines, JAX_PLATFORMS="cpu") == "cpu\n"
  # Also if a variable of JAX's names the library.
  path = f"minipod:{minipod.library_path()}"
  assert scenario.run(lines, JAX_PLATFORMS="cpu", PJRT_NAMES_AND_LIBRARY_PATHS=path) == "cpu\n"


def test_a_choice_of_minipod_before_the_first_use():
  lines = ("jax.config.update('jax_platforms', 'minipod')\n"
           "print(jax.default_backend(), jax.devices('cpu')[0])")
  assert scenario.run(lines, JAX_PLATFORMS="cpu").split()[0] == "minipod"


def test_described_topologies_have_our_rules_where_other_platforms_are_chosen():
  out = scenario.run("""
      from jax.experimental import topologies
      topology = topologies.get_topology_desc("", "minipod", topology="v5e:2x2")
      mesh = Mesh(topology.devices, "x")
      x = jax.ShapeDtypeStruct((4, 4), jnp.float32, sharding=NamedSharding(mesh, P()))
      print("minipod.eigh" in jax.jit(jnp.linalg.eigvalsh).lower(x).as_text())
      """, JAX_PLATFORMS="cpu")
  assert out == "True\n"


QUIET = """
import jax
print(jax.devices()[0].platform)
"""


def test_nothing_is_printed_for_other_platforms():
  environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
  # Only a JAX version that was not tested causes a message.
  lines = "from minipod.jax import guard; guard.jax_version = lambda: '7.0'\n" + QUIET
  result = subprocess.run([sys.executable, "-c", lines], env=environment, capture_output=True,
                          text=True, check=True)
  assert (result.stdout, result.stderr) == ("cpu\n", "")
  environment["JAX_PLATFORMS"] = "minipod"
  result = subprocess.run([sys.executable, "-c", lines], env=environment, capture_output=True,
                          text=True, check=True)
  assert result.stdout == "minipod\n" and "this is JAX 7.0" in result.stderr


def test_warnings_as_errors_do_not_cost_the_platform():
  lines = ("from minipod.jax import guard; guard.jax_version = lambda: '7.0'\n"
           "import jax; del jax._src.interpreters.mlir._platforms_with_donation\n" + QUIET)
  result = subprocess.run([sys.executable, "-W", "error", "-c", lines], capture_output=True,
                          text=True, check=True, env={**os.environ, "JAX_PLATFORMS": "minipod"})
  assert result.stdout == "minipod\n"
  assert "could not teach JAX 7.0 donation" in result.stderr

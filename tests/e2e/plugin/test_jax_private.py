"""Trips when JAX changes one of the private names that minipod's package uses."""

import ast
import importlib
import inspect
import os
import re
import subprocess
import sys

import jax
from minipod import jax_plugin
from minipod import jax_private
import minipod
import pytest


def test_package_is_installed_and_announced():
  from importlib.metadata import entry_points
  entry, = [e for e in entry_points(group="jax_plugins") if e.name == "minipod"]
  assert entry.value == "minipod.jax_plugin"
  assert minipod.__version__[0].isdigit() and os.path.isfile(minipod.library_path())


def test_only_one_file_uses_private_names():
  folder = os.path.dirname(minipod.__file__)
  users = []
  for directory, _, names in os.walk(folder):
    for name in names:
      if name.endswith(".py"):
        with open(os.path.join(directory, name)) as file:
          text = file.read()
        modules = [getattr(node, "module", None) or alias.name for node in ast.walk(ast.parse(text))
                   if isinstance(node, (ast.Import, ast.ImportFrom)) for alias in node.names]
        if any(module.startswith("jax._src") for module in modules):
          users.append(name)
  assert users == ["jax_private.py"]


@pytest.mark.parametrize("module, names", [
    ("xla_bridge", "register_plugin _nonexperimental_plugins _backend_factories"),
    ("distributed", "global_state"),
    ("interpreters.mlir", "_platforms_with_donation _platform_specific_lowerings _lowerings"
                          " LoweringRuleEntry emit_python_callback"),
    ("compilation_cache", "is_cache_used"),
    ("callback", "emit_python_callback io_callback_p"),
    ("compiler", "backend_compile_and_load"),
    ("config", "jax_platforms"),
    ("dispatch", "device_put_p runtime_tokens RuntimeTokenSet"),
    ("dlpack", "from_dlpack DLDeviceType _place_array _jax"),
    ("dtypes", "canonicalize_dtype"),
    ("lib", "jaxlib_extension_version"),
    ("interpreters.pxla", "ExecuteReplicated"),
    ("mesh_utils", "create_device_mesh create_hybrid_device_mesh"),
    ("pallas.mpmd", "_mpmd_map_fallback_lowering"),
    ("pallas.mosaic.interpret.thread_map", "_run_jaxpr"),
    ("export._export", "call_exported_p"),
    ("lax.control_flow", "platform_index_p cond_p"),
    ("lax.ann", "approx_top_k_p _jax"),
    ("lax.linalg", "lu_p eigh_p svd_p tridiagonal_solve_p lu_pivots_to_permutation_p"
     " _empty_svd _linalg_ffi_lowering"),
    ("core", "ShapedArray"),
    ("lax.parallel", "pbroadcast_p psend_p precv_p")])
def test_names_exist(module, names):
  module = importlib.import_module("jax._src." + module)
  assert [name for name in names.split() if not hasattr(module, name)] == []


def test_names_of_jaxlib_exist():
  from jaxlib import lapack, xla_client
  wanted = ("register_custom_call_handler register_custom_type_handler _custom_callback_handler"
            " _custom_callback_lock _custom_type_id_handler _custom_type_id_lock"
            " xla_platform_names")
  assert [name for name in wanted.split() if not hasattr(xla_client, name)] == []
  assert callable(xla_client._xla.register_custom_call_target)
  assert callable(xla_client._xla.register_custom_type)
  assert callable(lapack._lapack.initialize)
  assert callable(jax._src.dlpack._jax.dlpack_managed_tensor_to_buffer)
  place = inspect.getclosurevars(jax._src.dlpack._place_array).nonlocals["original_place"]
  assert list(inspect.signature(place).parameters)[1:] == ["device", "dlpack_device", "copy"]
  assert "_place_array(" in inspect.getsource(jax.dlpack.from_dlpack.__wrapped__)
  # JAX's CPU client leaves the handlers that are there.
  assert "is already register" in inspect.getsource(xla_client.register_custom_call_handler)


def test_shapes_of_what_is_patched():
  from jax._src import callback, compilation_cache, compiler, xla_bridge
  from jax._src.interpreters import mlir
  assert {"plugin_name", "priority", "library_path"} <= set(
      inspect.signature(xla_bridge.register_plugin).parameters)
  assert isinstance(xla_bridge._nonexperimental_plugins, set)
  for name in ("minipod", "cpu"):
    assert callable(xla_bridge._backend_factories[name].factory)
  from jax._src import distributed
  for name in ("client", "process_id", "num_processes", "preemption_sync_manager"):
    assert hasattr(distributed.global_state, name)
  assert isinstance(mlir._platforms_with_donation, list)
  assert isinstance(mlir._platform_specific_lowerings["minipod"], jax_private._LoweringRules)
  assert list(inspect.signature(compilation_cache.is_cache_used).parameters) == ["backend"]
  # All that the original asks of its backend is in the stand-in that ours gives it.
  closure = inspect.getclosurevars(compilation_cache.is_cache_used).nonlocals
  source = inspect.getsource(closure["original"])
  asked = set(re.findall(r"backend\.(\w+)|getattr\(backend, \"(\w+)\"", source))
  assert asked == {("platform", ""), ("", "supports_executable_serialization")}
  # Both are looked up in their modules at each use, so that replacing them there is enough.
  assert "compilation_cache.is_cache_used(" in inspect.getsource(compiler)
  assert "emit_python_callback(" in inspect.getsource(callback)
  # A callback's number is the length of this list when it is appended.
  from jax._src import buffer_callback, dispatch
  for lowering in (callback.emit_python_callback.__wrapped__,
                   buffer_callback._buffer_callback_lowering):
    source = inspect.getsource(lowering)
    assert "ctx.module_context.add_host_callback(" in source
    assert "np.uint64(len(ctx.module_context.host_callbacks) - 1)" in source
  assert "self.host_callbacks.append(" in inspect.getsource(mlir.ModuleContext.add_host_callback)
  assert {"host_callbacks", "backend", "platforms"} <= set(
      inspect.signature(mlir.ModuleContext.__init__).parameters)
  assert callable(dispatch.runtime_tokens.clear)
  assert {"current_tokens", "output_runtime_tokens"} <= set(vars(dispatch.runtime_tokens))
  assert list(inspect.signature(dispatch.RuntimeTokenSet.get_token_input).parameters)[1:] == [
      "eff", "devices"]
  from jax._src.interpreters import pxla
  assert {"keepalive", "ordered_effects", "_local_devices"} <= set(pxla.ExecuteReplicated.__slots__)
  assert callable(mlir.ModuleContext.add_keepalive)
  from jax._src.pallas.mosaic.interpret import thread_map
  assert "executor.submit(_run_jaxpr, " in inspect.getsource(thread_map._thread_map_callback)
  assert "return backend_compile_and_load(" in inspect.getsource(compiler)
  from jax._src import mesh_utils
  make = mesh_utils.create_device_mesh
  assert list(inspect.signature(make).parameters)[:2] == ["mesh_shape", "devices"]
  assert make.__wrapped__.__closure__ is None
  assert "last_device.platform == 'tpu'" in inspect.getsource(make)
  entry = next(iter(mlir._lowerings.values()))
  assert isinstance(entry, mlir.LoweringRuleEntry) and callable(entry.rule)


def test_what_was_taught():
  from jax._src import xla_bridge
  from jax._src.interpreters import mlir
  assert "minipod" in mlir._platforms_with_donation
  assert not xla_bridge._backend_factories["minipod"].experimental
  names = {p.name for p in mlir._platform_specific_lowerings["minipod"]}
  assert names - {"pbroadcast_start"} == {"pbroadcast", "psend", "precv", "device_put",
                   "approx_top_k", "cholesky", "eigh", "geqrf", "householder_product",
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


QUIET = """
import jax
print(jax.devices()[0].platform)
"""


def test_nothing_is_said_where_other_platforms_are_chosen():
  environment = {**os.environ, "JAX_PLATFORMS": "cpu"}
  # A version that nobody has tested is the reason to say something.
  lines = "from minipod import jax_private; jax_private.jax_version = lambda: '7.0'\n" + QUIET
  result = subprocess.run([sys.executable, "-c", lines], env=environment, capture_output=True,
                          text=True, check=True)
  assert (result.stdout, result.stderr) == ("cpu\n", "")
  environment["JAX_PLATFORMS"] = "minipod"
  result = subprocess.run([sys.executable, "-c", lines], env=environment, capture_output=True,
                          text=True, check=True)
  assert result.stdout == "minipod\n" and "this is JAX 7.0" in result.stderr


def test_warnings_as_errors_do_not_cost_the_platform():
  lines = ("from minipod import jax_private; jax_private.jax_version = lambda: '7.0'\n"
           "jax_private.allow_donation = None\n" + QUIET)
  result = subprocess.run([sys.executable, "-W", "error", "-c", lines], capture_output=True,
                          text=True, check=True, env={**os.environ, "JAX_PLATFORMS": "minipod"})
  assert result.stdout == "minipod\n"
  assert "could not teach JAX 7.0 donation" in result.stderr

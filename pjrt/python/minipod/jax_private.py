"""Every use of a private JAX name in minipod, and nothing else.

JAX promises nothing about `jax._src`.  `tests/e2e/plugin/test_jax_private.py` checks each name used
here against the installed JAX, so that an upgrade which breaks one is noticed there first.
"""

import atexit
import dataclasses
import functools
import inspect
import logging
import os
import sys
import threading
import types

from jax._src import array
from jax._src import callback
from jax._src import compilation_cache
from jax._src import compiler
from jax._src import config
from jax._src import core
from jax._src import custom_partitioning
from jax._src import dispatch
from jax._src import distributed
from jax._src import dlpack
from jax._src import dtypes
from jax._src import mesh_utils
from jax._src import xla_bridge
from jax._src.export import _export
from jax._src.interpreters import mlir
from jax._src.interpreters import pxla
from jax._src.lax import ann
from jax._src.lax import control_flow
from jax._src.lax import linalg
from jax._src.lax import parallel
from jax._src.lib import jaxlib_extension_version
import jax
import jax.dlpack
from jax import lax
import jax.numpy as jnp
from jaxlib import lapack
from jaxlib import xla_client
import numpy as np

_logger = logging.getLogger("minipod")

# Primitives whose rules for every platform become operations that minipod computes itself, and
# that JAX has another rule for on CPUs: one that calls LAPACK, or suits XLA's CPU compiler.
_OWN_DEFAULTS = frozenset((
    "cholesky", "geqrf", "householder_product", "triangular_solve", "threefry2x32", "random_gamma",
    "conv_general_dilated", "dot_general", "select_and_scatter_add"))

# From which size on LAPACK is faster than the library's own kernels, by 1.2 to 9 times. (geqrf is
# hardly ever slower, and users who call LAPACK's handler themselves get the same bits.)
_LAPACK_FROM = {"cholesky": 32, "lu": 64, "geqrf": 0, "householder_product": 128, "svd": 32,
                "eigh": 64, "triangular_solve": 256}

# From which version of jaxlib on its import of DLPack is told the kind of device.
_DLPACK_DEVICE_TYPE = 467


def _parameters(function) -> list[str]:
  return list(inspect.signature(function).parameters)


def jax_version() -> str:
  return jax.__version__


def may_be_used(platform: str) -> bool:
  """False when the user has named the platforms to use, and this one is not among them."""
  chosen = config.jax_platforms.value
  return not chosen or platform in chosen.split(",")


def say(platform: str, text: str) -> None:
  """Tells the user of the platform; nothing where others were chosen."""
  _logger.log(logging.WARNING if may_be_used(platform) else logging.DEBUG, "%s", text)


def register_plugin(platform: str, library_path: str, priority: int) -> None:
  # A dict, if an empty one: without it JAX drops `jax_pjrt_client_create_options` once
  # jax.distributed is in use.
  xla_bridge.register_plugin(platform, library_path=library_path, priority=priority, options={})


def mark_nonexperimental(platform: str) -> None:
  """Drops the warning "experimental", and makes the name known to `register_lowering`."""
  xla_bridge._nonexperimental_plugins.add(platform)


def allow_donation(platform: str) -> None:
  if platform not in mlir._platforms_with_donation:
    mlir._platforms_with_donation.append(platform)


def keep_cpu_backend(platform: str) -> None:
  """Keeps JAX's CPU backend beside the platform when the user named the platform alone.

  Host-side helpers of JAX (callbacks, DLPack import) ask for a CPU device by name.
  """
  chosen = config.jax_platforms.value
  names = chosen.split(",") if chosen else []
  if platform in names and "cpu" not in names:
    jax.config.update("jax_platforms", chosen + ",cpu")


def allow_compilation_cache(platform: str) -> None:
  """Lets the persistent cache serve the platform; JAX's list of names is a local variable.

  JAX decides itself, once per process, and counts what it decides: it only hears another name.
  """
  original = compilation_cache.is_cache_used

  def is_cache_used(backend) -> bool:
    if backend.platform == platform:
      backend = types.SimpleNamespace(platform="cpu", supports_executable_serialization=True)
    return original(backend)

  compilation_cache.is_cache_used = is_cache_used


def allow_callbacks(platform: str, table) -> None:
  """Lowers Python callbacks as for a CPU, with numbers for callables from `table`."""
  original = callback.emit_python_callback

  @functools.wraps(original)
  def emit_python_callback(ctx, *args, **kwargs):
    if tuple(ctx.module_context.platforms) == (platform,):
      ctx = _with_callback_table(ctx, table)
    return original(ctx, *args, **kwargs)

  callback.emit_python_callback = emit_python_callback
  mlir.emit_python_callback = emit_python_callback

  def lower_buffer_callback(ctx, *args, **params):
    entry = mlir._lowerings[ctx.primitive]
    return entry.rule(_with_callback_table(ctx, table), *args, **params)

  mlir._platform_specific_lowerings[platform].buffer_callback = lower_buffer_callback


def await_effects() -> None:
  """Waits for the programs with effects that the calling thread has launched; raises their error."""
  tokens = dispatch.runtime_tokens
  if tokens.output_runtime_tokens:
    try:
      tokens.block_until_ready()
    finally:
      tokens.clear()


def let_effects_go_on(platform: str) -> None:
  """Lets programs with ordered effects run again when the last one of them has failed.

  The next one raises its error, and those after it go on, as in JAX from 0.12 on; before, all that
  come later fail with it.
  """
  tokens = dispatch.RuntimeTokenSet
  original = tokens.get_token_input

  @functools.wraps(original)
  def get_token_input(self, effect, devices):
    try:
      return original(self, effect, devices)
    except jax.errors.JaxRuntimeError:
      if devices[0].platform == platform:
        self.current_tokens.pop(effect, None)
      raise

  tokens.get_token_input = get_token_input


def forget_effects() -> None:
  dispatch.runtime_tokens.clear()


def _with_callback_table(ctx, table):
  module_context = ctx.module_context.replace(
      platforms=("cpu",), backend=None, host_callbacks=table(ctx.module_context.host_callbacks))
  return ctx.replace(module_context=module_context)


class _Interpreted:
  """Kept by a program with kernels in Pallas' interpreters."""

  mesh = None  # the abstract mesh of the thread that has launched it last


def allow_pallas_interpreters(platform: str) -> None:
  """Has calls of programs with kernels in Pallas' interpreters return when they are over.

  The interpreters take this for granted, because JAX's CPU backend does it with every program that
  calls Python.  One of their callbacks runs a kernel's threads as programs without results, and is
  over itself when their calls have returned.  Nor do they know that callbacks have a thread of
  their own: they ask the mesh of the thread for the kind of TPU to be.
  """
  from jax._src.pallas.mosaic.interpret import thread_map

  original = pxla.ExecuteReplicated.__call__
  entry = mlir._lowerings[callback.io_callback_p]

  def lower_io_callback(ctx, *args, callback, **params):
    function = callback.callback_func
    while isinstance(function, functools.partial):
      function = function.func
    if (getattr(function, "__module__", None) or "").startswith("jax._src.pallas."):
      program = _find_interpreted(ctx.module_context.keepalives)
      if program is None:
        program = _Interpreted()
        ctx.module_context.add_keepalive(program)
      callback = dataclasses.replace(callback, callback_func=functools.partial(
          _call_interpreter, program, callback.callback_func))
    return entry.rule(ctx, *args, callback=callback, **params)

  @functools.wraps(original)
  def __call__(self, *args):
    program = _find_interpreted(self.keepalive or ())
    if program is None:
      return original(self, *args)
    program.mesh = jax.sharding.get_abstract_mesh()
    results = original(self, *args)
    _await_end(self, results)
    return results

  mlir._platform_specific_lowerings[platform][callback.io_callback_p] = mlir.LoweringRuleEntry(
      lower_io_callback, entry.inline)
  pxla.ExecuteReplicated.__call__ = __call__
  run_thread = thread_map._run_jaxpr

  @functools.wraps(run_thread)
  def _run_jaxpr(*args):
    run_thread(*args)
    await_effects()

  thread_map._run_jaxpr = _run_jaxpr


def _find_interpreted(kept) -> _Interpreted | None:
  return next((thing for thing in kept if isinstance(thing, _Interpreted)), None)


def _call_interpreter(program, function, *args, **kwargs):
  with jax.sharding.use_abstract_mesh(program.mesh):
    return function(*args, **kwargs)


def _await_end(executable, results) -> None:
  """Waits until the program that has just been launched is over; raises its error."""
  tokens = dispatch.runtime_tokens
  devices = executable._local_devices
  try:
    jax.block_until_ready(results)  # this first, because Ctrl-C ends it
    for device in devices:
      tokens.output_runtime_tokens[device].block_until_ready()
  except jax.errors.JaxRuntimeError:
    # The caller hears of the error now: it shall not fail programs that come later as well.
    for device in devices:
      tokens.output_runtime_tokens.pop(device, None)
    for effect in executable.ordered_effects:
      tokens.current_tokens.pop(effect, None)
    raise


def _interpreted_mpmd_map():
  """The rule of Pallas' interpreters, behind a rule that knows the names of JAX's platforms only."""
  return getattr(sys.modules.get("jax._src.pallas.mpmd"), "_mpmd_map_fallback_lowering", None)


def refuse_compiling_after_fork(platform: str) -> None:
  """Answers a forked child that compiles; in it, JAX would wait for a thread it does not have.

  The library itself refuses all else that a forked child asks of its parent's client.
  """
  original = compiler.backend_compile_and_load
  owner = os.getpid()

  @functools.wraps(original)
  def backend_compile_and_load(backend, *args, **kwargs):
    if backend.platform == platform and os.getpid() != owner:
      raise RuntimeError(
          "this process was forked from the one that started the minipod client; nothing can be"
          " compiled here: fork before using JAX, or start a new process (multiprocessing: method"
          " \"spawn\")")
    return original(backend, *args, **kwargs)

  compiler.backend_compile_and_load = backend_compile_and_load


def exchange_arrays(platform: str) -> None:
  """Lets arrays leave and enter the platform by DLPack, which JAX offers for names it knows.

  Device memory of the platform is host memory, so that consumers see it as a CPU's.
  """
  impl = array.ArrayImpl
  original, original_device, original_from, original_place = (
      impl.__dlpack__, impl.__dlpack_device__, dlpack.from_dlpack, dlpack._place_array)
  calls = threading.local()

  def is_ours(x) -> bool:
    devices = x.sharding.device_set
    return len(devices) == 1 and next(iter(devices)).platform == platform

  @functools.wraps(original)
  def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
    host = self
    if is_ours(self):
      host, copy = _host_array(self, copy), None
    return original(host, stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)

  @functools.wraps(original_device)
  def __dlpack_device__(self):
    if is_ours(self):
      return dlpack.DLDeviceType.kDLCPU, 0
    return original_device(self)

  def default_device():
    """Where foreign arrays come to, as with JAX's CPU backend; None on another platform."""
    if jax.default_backend() != platform:
      return None
    device = config.default_device.value or jax.local_devices()[0]
    return jax.local_devices(backend=device)[0] if isinstance(device, str) else device

  @functools.wraps(original_from)
  def from_dlpack(external_array, device=None, copy=None):
    # One of JAX's own arrays stays on its device.
    if device is None and isinstance(external_array, jax.Array) and is_ours(external_array):
      return jnp.array(external_array, copy=True) if copy else external_array
    is_foreign = not isinstance(external_array, jax.Array)
    target = default_device() if device is None and is_foreign else device
    if not copy and is_foreign and isinstance(target, jax.Device) and target.platform == platform:
      shared = _array_in_memory_of(external_array, target)
      if shared is not None:
        return shared
    calls.is_ours = True
    try:
      return original_from(external_array, device if copy is False else target, copy)
    finally:
      calls.is_ours = False

  def _place_array(arr, device, dlpack_device, copy):
    # The first call of a program makes JAX look for platforms, and is under way as this function is
    # put in its place.
    if device is None and copy is not False and not getattr(calls, "is_ours", False):
      device = default_device()
    return original_place(arr, device, dlpack_device, copy)

  impl.__dlpack__, impl.__dlpack_device__ = __dlpack__, __dlpack_device__
  dlpack.from_dlpack = jax.dlpack.from_dlpack = from_dlpack
  dlpack._place_array = _place_array


def _array_in_memory_of(external_array, device):
  """An array of the device that shares the memory of a foreign one; None where that has to be
  copied.

  Kernels want memory in row-major order that begins at a multiple of 64, which XLA's CPU client
  asks for too.
  """
  if not hasattr(external_array, "__dlpack_device__"):
    return None
  if external_array.__dlpack_device__()[0] != dlpack.DLDeviceType.kDLCPU:
    return None
  kind = [int(dlpack.DLDeviceType.kDLCPU)] if jaxlib_extension_version >= _DLPACK_DEVICE_TYPE else []
  try:
    x = dlpack._jax.dlpack_managed_tensor_to_buffer(
        external_array.__dlpack__(stream=None), device, None, None, *kind)
  except Exception:  # JAX's own way comes next, and says what is wrong
    return None
  # Where there is nothing to share, or JAX converts, the result has memory of its own anyway.
  is_plain = x.size and x.dtype == dtypes.canonicalize_dtype(x.dtype)
  is_row_major = x.format.layout.major_to_minor == tuple(range(x.ndim))
  return x if is_plain and is_row_major and x.unsafe_buffer_pointer() % 64 == 0 else None


def _host_array(x, copy):
  """An array of JAX's CPU backend with the contents of `x`: in the same memory, if `copy` is not
  True."""
  view = np.asarray(x)
  host = jax.device_put(np.array(view) if copy else view, jax.local_devices(backend="cpu")[0])
  host.block_until_ready()
  if copy is False and view.size and host.unsafe_buffer_pointer() != view.ctypes.data:
    raise BufferError("the array's memory cannot be shared with a CPU device: copy=None or True")
  return host


def count_costs_before_compiling(platform: str) -> None:
  """Answers `cost_analysis` of a lowered program with what JAX's CPU backend says of it."""
  original = pxla.MeshComputation.cost_analysis

  @functools.wraps(original)
  def cost_analysis(self):
    if self.compile_args["backend"].platform != platform:
      return original(self)
    cpu = xla_bridge.get_backend("cpu")
    return pxla._jax.hlo_module_cost_analysis(cpu, self.hlo().as_hlo_module())

  pxla.MeshComputation.cost_analysis = cost_analysis


class _AsTpu:
  """A device under the platform name "tpu"."""

  platform = "tpu"

  def __init__(self, device):
    self.device = device

  def __getattr__(self, name):
    return getattr(self.device, name)


def order_meshes_as_tpus(platform: str) -> None:
  """Gives meshes of described TPUs the order that they have on TPUs.

  That order follows from kind and coordinates, and from the order of the devices: that of their
  hosts, even where one process has them all.
  """
  def make(original, mesh_shape, devices=None, **options):
    devices = xla_bridge.devices() if devices is None else devices
    is_tpu = len(devices) and all(
        getattr(d, "platform", "") == platform and d.device_kind.startswith("TPU") for d in devices)
    if not is_tpu:
      return original(mesh_shape, devices, **options)
    tpus = [_AsTpu(d) for d in devices]
    if all(a.id < b.id for a, b in zip(tpus, tpus[1:])):
      tpus.sort(key=lambda d: d.host_index)
    try:
      mesh = original(mesh_shape, tpus, **options)
    except AssertionError:  # a part of a grid, say, for which JAX has no mesh on TPUs
      return original(mesh_shape, devices, **options)
    return np.vectorize(lambda d: d.device, otypes=[object])(mesh)

  _take_over(mesh_utils.create_device_mesh, make)


def _take_over(function, ours) -> None:
  """Makes `function` call `ours`, with what it was as the first argument.

  Programs have imported it by its own name long before they use a device, so that another function
  in its place would not reach them.
  """
  original = types.FunctionType(function.__code__, function.__globals__, function.__name__,
                                function.__defaults__, function.__closure__)
  original.__kwdefaults__ = function.__kwdefaults__
  function.__globals__["_minipod_takes_over"] = functools.partial(ours, original)
  function.__code__ = (lambda *args, **kwargs: _minipod_takes_over(*args, **kwargs)).__code__
  function.__defaults__ = function.__kwdefaults__ = None
  function.__wrapped__ = original  # whose signature it keeps


def _is_failing() -> bool:
  """Whether an exception that nobody has caught ends the process."""
  return getattr(sys, "last_value", None) is not None


def offer_coordination(platform: str, coordinate, leave) -> None:
  """Makes a client over several processes come with what `jax.distributed.initialize()` gives.

  `coordinate` gets the number of this process, that of all, and the type of errors; it returns a
  client (None: processes do without) and a preemption manager.  `leave` is called when the process
  ends, with whether it fails, where JAX has a client of its own.
  """
  state = distributed.global_state
  registration = xla_bridge._backend_factories.get(platform)
  if registration is None:  # registered later, by a variable of JAX's
    return
  factories = {name: xla_bridge._backend_factories[name].factory for name in (platform, "cpu")}
  own, has_hook = None, False

  def make_alone(name):
    # JAX would hand the client to its C++, and make its CPU devices those of all processes.
    kept = state.client, state.process_id, state.num_processes
    if own is None or state.client is not own:
      return factories[name]()
    state.client, state.process_id, state.num_processes = None, 0, 1
    try:
      return factories[name]()
    finally:
      state.client, state.process_id, state.num_processes = kept

  def make():
    nonlocal own, has_hook
    client = make_alone(platform)
    count = 1 + max(device.process_index for device in client.devices())
    if count > 1 and state.client is None:
      own, preemption = coordinate(client.process_index(), count, jax.errors.JaxRuntimeError)
      if own is not None:
        state.client, state.preemption_sync_manager = own, preemption
        state.process_id, state.num_processes = client.process_index(), count
    elif count > 1 and state.client is not own and not has_hook:
      # JAX's own client waits at its end for the other processes. They may be waiting for a program
      # that this one will never run, so they hear of the end before: this hook comes before JAX's.
      atexit.register(lambda: leave(_is_failing()))
      has_hook = True
    return client

  registration.factory = make
  xla_bridge._backend_factories["cpu"].factory = lambda: make_alone("cpu")


def install_lowering_rules(platform: str) -> None:
  """Gives the platform its own lowering rules; rules registered for it before are kept."""
  rules = _LoweringRules(mlir._platform_specific_lowerings.get(platform, {}))
  mlir._platform_specific_lowerings[platform] = rules
  # Rules that JAX has only under other names, and whose programs minipod runs.
  gpu = mlir._platform_specific_lowerings["cuda"]
  rules[parallel.pbroadcast_p] = gpu[parallel.pbroadcast_p]
  if hasattr(parallel, "pbroadcast_start_p"):  # JAX 0.10 has it, those before and after do not
    rules[parallel.pbroadcast_start_p] = gpu[parallel.pbroadcast_start_p]
  for primitive in (parallel.psend_p, parallel.precv_p):
    rules[primitive] = _as_platform("cuda", gpu[primitive])
  # JAX's own rule is a custom call that asks for any top k of a certain recall: an exact one is.
  mlir.register_lowering(ann.approx_top_k_p, mlir.lower_fun(_exact_top_k, multiple_results=True),
                         platform=platform)
  # Moves between memory spaces inside a program; JAX drops them by default.
  tpu = mlir._platform_specific_lowerings["tpu"]
  rules[dispatch.device_put_p] = tpu[dispatch.device_put_p]
  # Decompositions that the library has itself, as custom calls.
  rules[linalg.lu_p] = tpu[linalg.lu_p]
  rules[linalg.eigh_p] = mlir.LoweringRuleEntry(_eigh, True)
  rules[linalg.svd_p] = mlir.LoweringRuleEntry(_svd, True)
  rules[linalg.tridiagonal_solve_p] = mlir.LoweringRuleEntry(_tridiagonal_solve, True)
  rules[linalg.lu_pivots_to_permutation_p] = mlir.LoweringRuleEntry(_pivots_to_permutation, True)
  for name, size in _LAPACK_FROM.items():
    if primitive := getattr(linalg, name + "_p", None):
      _use_lapack(rules, primitive, size)


def _use_lapack(rules, primitive, size) -> None:
  """Gives matrices whose sides are at least `size` to a rule that calls LAPACK: JAX's for CPUs, if
  there is none of ours.
  """
  own = rules[primitive] if dict.__contains__(rules, primitive) else mlir._lowerings[primitive]
  cpu = mlir._platform_specific_lowerings["cpu"].get(primitive)
  if cpu is None:
    return
  lapack_rule = _lapack_lu if primitive is linalg.lu_p else cpu.rule

  def rule(ctx, *operands, **params):
    sides = ctx.avals_in[0].shape[-2:]
    is_large = all(isinstance(side, int) and side >= size for side in sides)
    return (lapack_rule if is_large else own.rule)(ctx, *operands, **params)

  rules[primitive] = mlir.LoweringRuleEntry(rule, own.inline)


def _lapack_lu(ctx, operand):
  """JAX's rule for CPUs, but that what LAPACK refuses is not looked for: there is nothing.

  So nothing is between the factors and what solves with them, and both want them by columns.
  """
  aval, pivots_aval, permutation_aval = ctx.avals_out
  batch, rows = aval.shape[:-2], aval.shape[-2]
  info_aval = core.ShapedArray(batch, np.dtype(np.int32))
  call = linalg._linalg_ffi_lowering(
      lapack.prepare_lapack_call("getrf_ffi", aval.dtype),
      avals_out=[aval, pivots_aval, info_aval], operand_output_aliases={0: 0})
  factors, pivots, _ = call(ctx, operand)
  pivots = mlir.hlo.subtract(pivots, mlir.full_like_aval(ctx, 1, pivots_aval))  # LAPACK begins at 1
  permute = mlir.lower_fun(lambda pivots: linalg.lu_pivots_to_permutation(pivots, rows),
                           multiple_results=False)
  permutation, = permute(ctx.replace(primitive=None, avals_in=[pivots_aval],
                                     avals_out=[permutation_aval]), pivots)
  return [factors, pivots, permutation]


def _pivots_to_permutation(ctx, pivots, *, permutation_size):
  # A program that is stored shall not need a name that JAX does not know.
  is_fixed = all(isinstance(size, int) for size in ctx.avals_in[0].shape)
  if ctx.module_context.lowering_parameters.for_export or not is_fixed:
    rule = mlir._lowerings[linalg.lu_pivots_to_permutation_p].rule
    return rule(ctx, pivots, permutation_size=permutation_size)
  return _custom_call(ctx, "minipod.pivots_to_permutation", [pivots])


def _custom_call(ctx, target, operands):
  # JAX 0.9 has no module context to give.
  context = (ctx.module_context,) * (len(_parameters(mlir.aval_to_ir_type)) - 1)
  types = [mlir.aval_to_ir_type(*context, aval) for aval in ctx.avals_out]
  return mlir.custom_call(target, result_types=types, operands=operands).results


def _eigh(ctx, operand, *, lower, sort_eigenvalues, subset_by_index, algorithm):
  del sort_eigenvalues, algorithm  # always sorted; there is one algorithm
  if subset_by_index not in (None, (0, ctx.avals_in[0].shape[-1])):
    raise NotImplementedError("minipod does not support eigh's 'subset_by_index'")
  return _custom_call(ctx, "minipod.eigh.lower" if lower else "minipod.eigh.upper", [operand])


def _tridiagonal_solve(ctx, *operands, perturb_singular=False):  # JAX 0.9 has no such choice
  target = "minipod.tridiagonal_solve" + (".perturbed" if perturb_singular else "")
  return _custom_call(ctx, target, operands)


def _svd(ctx, operand, *, full_matrices, compute_uv, subset_by_index, algorithm=None):
  del algorithm  # there is one
  shape = ctx.avals_in[0].shape
  if subset_by_index not in (None, (0, min(shape[-2:]))):
    raise NotImplementedError("minipod does not support svd's 'subset_by_index'")
  if 0 in shape[-2:]:
    return mlir.lower_fun(linalg._empty_svd, multiple_results=True)(
        ctx, operand, full_matrices=full_matrices, compute_uv=compute_uv)
  return _custom_call(ctx, "minipod.svd", [operand])


def _exact_top_k(operand, *, k, reduction_dimension, is_max_k, aggregate_to_topk, recall_target,
                 reduction_input_size_override):
  size = k
  if not aggregate_to_topk:  # then the number of candidates is part of the result's shape
    size, _ = ann._jax.approx_top_k_reduction_output_size(
        operand.shape[reduction_dimension], operand.ndim, k, recall_target, aggregate_to_topk,
        reduction_input_size_override)
  rows = jnp.moveaxis(operand, reduction_dimension, -1)
  values, indices = lax.top_k(rows if is_max_k else -rows, size)
  values = values if is_max_k else -values
  return (jnp.moveaxis(values, -1, reduction_dimension),
          jnp.moveaxis(indices, -1, reduction_dimension))


class _LoweringRules(dict):
  """A table of lowering rules that offers JAX's rules for CPUs where it has none of its own.

  Looked up late on purpose: users, and modules of JAX that are imported only on use (sparse,
  pallas), register rules afterwards.
  """

  buffer_callback = None  # the rule of the primitive of this name, which has none for CPUs alone

  def __contains__(self, primitive) -> bool:
    return super().__contains__(primitive) or self._rule_of_cpu(primitive) is not None

  def __missing__(self, primitive):
    entry = self._rule_of_cpu(primitive)
    if entry is None:
      raise KeyError(primitive)
    return entry

  def _rule_of_cpu(self, primitive):
    """JAX's rule for CPUs if minipod is to use it; None if that for every platform is right."""
    if primitive.name == "buffer_callback" and self.buffer_callback is not None:
      return mlir.LoweringRuleEntry(self.buffer_callback, True)
    if primitive.name == "mpmd_map" and (rule := _interpreted_mpmd_map()) is not None:
      return mlir.LoweringRuleEntry(rule, True)
    if primitive.name in _OWN_DEFAULTS and primitive in mlir._lowerings:
      return None
    return mlir._platform_specific_lowerings["cpu"].get(primitive)


def _as_platform(name: str, entry):
  """The rule of an entry, run as if it lowered for platform `name`, which it insists on."""

  def rule(ctx, *args, **params):
    module_context = ctx.module_context.replace(platforms=(name,))
    return entry.rule(ctx.replace(module_context=module_context), *args, **params)

  return mlir.LoweringRuleEntry(rule, entry.inline)


def install_foreign_functions(platform: str, register, register_type) -> None:
  """Lets `register` and `register_type` see all foreign functions for the platform and for "cpu".

  Those of before are handed over now. JAX hands functions for "cpu" to its own CPU client, so that
  they are registered with both.
  """
  # What was registered before is handed over while JAX starts: one that is wrong costs itself. Its
  # user hears of it when a program calls it.
  is_starting = True
  ours = platform

  def handle(function, *args, **kwargs):
    if is_starting:
      _forward(platform, function, *args, **kwargs)
    else:
      function(*args, **kwargs)

  xla_client.register_custom_call_handler(platform, functools.partial(handle, register))
  xla_client.register_custom_type_handler(platform, functools.partial(handle, register_type))

  def initialize_lapack():
    lapack._lapack.initialize()

  def forward(name, fn, platform, api_version=0, traits=0):
    before_use = initialize_lapack if name.startswith("lapack_") else None
    _forward(ours, register, name, fn, platform, api_version, traits, before_use=before_use)

  _tap(xla_client._custom_callback_handler, xla_client._custom_callback_lock,
       xla_client.register_custom_call_handler, xla_client._xla.register_custom_call_target, forward)
  _tap(xla_client._custom_type_id_handler, xla_client._custom_type_id_lock,
       xla_client.register_custom_type_handler, xla_client._xla.register_custom_type,
       functools.partial(_forward, platform, register_type))
  is_starting = False


def _forward(ours, register, name, *args, **kwargs) -> None:
  """Registers a function or a type; that minipod cannot take it must not harm anybody else."""
  try:
    register(name, *args, **kwargs)
  except ValueError as error:
    say(ours, f"the foreign function or type '{name}' is not available on minipod: {error}")


def _tap(handlers, lock, register_handler, handle, forward) -> None:
  """Makes registrations for "cpu" go to JAX's own `handle`, and then to `forward`."""
  name = xla_client.xla_platform_names["cpu"]
  with lock:
    known = handlers.get(name)  # there is one if a CPU client was made before

    def both(*args, **kwargs):
      (known or handle)(*args, **kwargs)
      forward(*args, **kwargs)

    if known is not None:
      handlers[name] = both
  if known is None:
    register_handler("cpu", both)  # which hands over what was registered so far


def use_cpu_branches(platform: str) -> None:
  """Where a program has a branch for "cpu" and none for the platform, it takes that one.

  `lax.platform_dependent` is two primitives, which must agree on the branch.
  """
  def widen(platforms):
    if platforms is None or any(names and platform in names for names in platforms):
      return platforms
    return tuple((*names, platform) if names and "cpu" in names else names for names in platforms)

  for primitive, param in ((control_flow.platform_index_p, "platforms"),
                           (control_flow.cond_p, "branches_platforms")):
    entry = mlir._lowerings[primitive]

    def rule(ctx, *args, entry=entry, param=param, **params):
      if params.get(param) is not None:
        params[param] = widen(params[param])
      return entry.rule(ctx, *args, **params)

    mlir._lowerings[primitive] = mlir.LoweringRuleEntry(rule, entry.inline)


def accept_exports_for_cpu(platform: str) -> None:
  """Lets functions that were exported for "cpu" be called on the platform."""
  entry = mlir._lowerings[_export.call_exported_p]

  def rule(ctx, *args, exported, **params):
    wanted = ctx.module_context.platforms
    if platform in wanted and "cpu" not in wanted and platform not in exported.platforms:
      exported = dataclasses.replace(exported, platforms=tuple(
          platform if name == "cpu" else name for name in exported.platforms))
    return entry.rule(ctx, *args, exported=exported, **params)

  mlir._lowerings[_export.call_exported_p] = mlir.LoweringRuleEntry(rule, entry.inline)


def allow_custom_partitioning(platform: str) -> None:
  """Hands the partitioner of `custom_partitioning` to the library in a form that it can read.

  JAX registers its partitioner with every plugin; its programs are in a form that only XLA reads.
  Ours makes the same programs, as text, and comes after it.
  """
  def partition(*args):
    code, *shardings = custom_partitioning._custom_partitioning_partition(*args)
    with mlir.make_ir_context() as context:
      module = mlir.ir.Module.parse(code, context)
      text = module.operation.get_asm(enable_debug_info=True)
    return (text.encode(), *shardings)

  def register(c_api):
    if c_api is xla_bridge._backend_factories[platform].c_api:
      xla_client.register_custom_call_partitioner(
          name=custom_partitioning._CUSTOM_PARTITIONING_CALL_NAME,
          prop_user_sharding=custom_partitioning._custom_partitioning_propagate_user_sharding,
          partition=partition,
          infer_sharding_from_operands=(
              custom_partitioning._custom_partitioning_infer_sharding_from_operands),
          can_side_effecting_have_replicated_sharding=True, c_api=c_api)

  xla_bridge.register_plugin_callbacks(register)

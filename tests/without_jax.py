#!/usr/bin/env python3
"""Tests minipod against changes of JAX: removes one private name of JAX at a time.

    PYTHON tests/without_jax.py [NAME…] [--jobs 2] [--sample N [--seed S]] [--list]

PYTHON is one with JAX and minipod installed.  NAME is a dotted one, such as
`jax._src.dispatch.runtime_tokens`; without any all are taken, and all modules they are in, as the
syntax trees of minipod/jax/ have them.  A name is removed for minipod alone, in a process of its own,
which uses the features that minipod adds to JAX.  Prints a line for each: whether the platform lives,
whether minipod has printed anything, and which uses failed with what error (JAX's own message if JAX
lacks the feature).  Exits 1 if a platform is lost without need (only without `register_plugin` is there
none), if minipod prints nothing, or if an error of our own code comes out, such as an AttributeError.
"""

import argparse
import ast
import builtins
import importlib
import importlib.util
import io
import json
import logging
import os
import pathlib
import random
import signal
import sys
import tempfile
import types

# Without these no platform can be registered with JAX.
NEEDED = {"jax._src.xla_bridge", "jax._src.xla_bridge.register_plugin"}
# Errors of our own code; NotImplementedError and XLA's errors are JAX's messages.
OURS = ("AttributeError", "ImportError", "ModuleNotFoundError", "KeyError", "TypeError",
        "NameError")
LIMIT_S = 600


# ---- The names ----

class _Chains(ast.NodeVisitor):
  """Collects attribute chains on modules of JAX's, also by the names that functions give them."""

  def __init__(self):
    self.found, self._known = set(), [{}]

  def visit_FunctionDef(self, node):
    self._known.append(dict(self._known[-1]))
    self.generic_visit(node)
    self._known.pop()

  def visit_Import(self, node):
    for alias in node.names:
      self._know(alias.asname or alias.name.split(".")[0],
                 alias.name if alias.asname else alias.name.split(".")[0])
      self._find(alias.name)

  def visit_ImportFrom(self, node):
    for alias in node.names:
      self._know(alias.asname or alias.name, f"{node.module}.{alias.name}")
      self._find(f"{node.module}.{alias.name}")

  def visit_Assign(self, node):
    self.generic_visit(node)
    for target in node.targets:
      pairs = [(target, node.value)]
      if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
        pairs = zip(target.elts, node.value.elts)
      for name, value in pairs:
        if isinstance(name, ast.Name) and (chain := self._chain(value)):
          self._know(name.id, chain)

  def visit_Attribute(self, node):
    if chain := self._chain(node):
      self._find(chain)
    else:
      self.generic_visit(node)

  def _know(self, name, chain):
    if chain.split(".")[0] in ("jax", "jaxlib"):
      self._known[-1][name] = chain

  def _chain(self, node):
    if isinstance(node, ast.Name):
      return self._known[-1].get(node.id)
    if isinstance(node, ast.Attribute) and (owner := self._chain(node.value)):
      return f"{owner}.{node.attr}"
    return None

  def _find(self, chain):
    if chain.split(".")[0] in ("jax", "jaxlib"):
      self.found.add(chain)


def is_private(name):
  """Whether JAX promises nothing about it."""
  parts = name.split(".")
  return parts[0] == "jaxlib" or any(
      part.startswith("_") and not part.startswith("__") for part in parts)


def names_of(path):
  """All names of JAX's in the file, dotted."""
  visitor = _Chains()
  visitor.visit(ast.parse(pathlib.Path(path).read_text()))
  return visitor.found


def package():
  """The folder of the installed package."""
  return pathlib.Path(importlib.util.find_spec("minipod").origin).parent


def exists(name):
  """Whether the installed JAX has it."""
  parts = name.split(".")
  for end in range(len(parts), 0, -1):
    try:
      thing = importlib.import_module(".".join(parts[:end]))
    except ImportError:
      continue
    for part in parts[end:]:
      if not hasattr(thing, part):
        return False
      thing = getattr(thing, part)
    return True
  return False


def find_names():
  """All private names of the package, and the private modules and things that they are in."""
  found = {name for path in (package() / "jax").glob("*.py") for name in names_of(path)
           if is_private(name)}
  for name in list(found):
    while name := name.rpartition(".")[0]:
      if is_private(name) and name not in ("jax._src", "jaxlib"):
        found.add(name)
      elif not is_private(name):
        break
  return sorted(name for name in found if name.count(".") > 1 or name.startswith("jaxlib."))


# ---- The process ----

def _without(real, path, gone):
  """The thing of JAX's at this path, without the name that is gone if that is below it."""
  if not gone.startswith(path + "."):
    return real
  return (_Names if isinstance(real, (types.ModuleType, type)) else _Object)(real, path, gone)


class _Names(types.SimpleNamespace):
  """A module or class.  Its names are real attributes, so that one that is gone is an error of the
  line that asks for it.
  """

  def __init__(self, real, path, gone):
    self.__dict__[""] = real
    for name in dir(real):
      if f"{path}.{name}" != gone and name not in ("__class__", "__dict__", "__name__"):
        self.__dict__[name] = _without(getattr(real, name, None), f"{path}.{name}", gone)

  def __setattr__(self, name, value):
    setattr(self.__dict__[""], name, value)


class _Object:
  """Anything else; its attributes may change."""

  def __init__(self, real, path, gone):
    self.__dict__["_what"] = real, path, gone

  def __getattr__(self, name):
    real, path, gone = self._what
    if f"{path}.{name}" == gone:
      raise AttributeError(f"'{path}' has no attribute '{name}'")
    return _without(getattr(real, name), f"{path}.{name}", gone)

  def __setattr__(self, name, value):
    setattr(self._what[0], name, value)


def take_away(gone):
  """Makes minipod's own imports lack the name."""
  real_import = builtins.__import__

  def import_without(name, globals=None, locals=None, fromlist=(), level=0):
    module = real_import(name, globals, locals, fromlist, level)
    if not (globals or {}).get("__name__", "").startswith("minipod") or level:
      return module
    if name == gone or name.startswith(gone + "."):
      raise ModuleNotFoundError(f"No module named '{gone}'")
    path = name if fromlist else name.split(".")[0]
    return _without(module, path, gone)

  builtins.__import__ = import_without


def attempt(gone):
  """How the platform and its uses fare: (lives, lines that were printed, errors by use)."""
  said = io.StringIO()
  for name in ("minipod", "jax._src.xla_bridge"):
    logging.getLogger(name).addHandler(logging.StreamHandler(said))
  if gone:
    take_away(gone)
  import jax
  try:
    lives = "minipod" in jax.devices()[0].client.platform_version
  except RuntimeError:
    lives = False
  errors = {}
  for use in USES if lives else ():
    try:
      use()
    except BaseException as error:
      lines = str(error).splitlines() or [""]
      errors[use.__name__] = [f"{type(error).__name__}: {lines[0]}", lines[-1]]
  return lives, said.getvalue().splitlines(), errors


# ---- The uses ----

def _matrix(size, dtype="float32"):
  import numpy as np
  noise = np.random.default_rng(1).normal(size=(size, size))
  return (noise + 4 * np.eye(size)).astype(dtype)


def _check(x, y):
  import numpy as np
  np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=1e-2, atol=1e-2)


def decompose_small():
  import jax.numpy as jnp
  import jax.scipy as jsp
  import numpy as np
  a = _matrix(5)
  _check(jnp.linalg.eigh(a + a.T)[0], np.linalg.eigvalsh(a + a.T))
  _check(jnp.linalg.svd(a)[1], np.linalg.svd(a)[1])
  _check(jnp.linalg.svd(jnp.zeros((0, 3)))[2], np.eye(3))
  _check(jsp.linalg.lu_solve(jsp.linalg.lu_factor(a), a), np.eye(5))
  _check(jnp.linalg.det(a), np.linalg.det(a))


def decompose_large():
  import jax.numpy as jnp
  import jax.scipy as jsp
  import numpy as np
  a = _matrix(70)
  _check(jsp.linalg.lu_solve(jsp.linalg.lu_factor(a), a), np.eye(70))
  _check(jnp.linalg.eigh(a + a.T)[0], np.linalg.eigvalsh(a + a.T))
  _check(jnp.linalg.svd(a)[1], np.linalg.svd(a)[1])
  q, r = jnp.linalg.qr(a)
  _check(q @ r, a)
  _check(jnp.linalg.cholesky(a @ a.T), np.linalg.cholesky(a @ a.T))


def solve_tridiagonal():
  import jax.numpy as jnp
  from jax import lax
  one = jnp.ones(4)
  _check(lax.linalg.tridiagonal_solve(one.at[0].set(0), 3 * one, one.at[3].set(0), one[:, None]),
         [[0.2727], [0.1818], [0.1818], [0.2727]])


def approximate_top_k():
  from jax import lax
  import numpy as np
  _check(lax.approx_max_k(np.arange(64, dtype="f4"), 3)[0], [63, 62, 61])


def call_python():
  import jax
  import jax.numpy as jnp
  x = jnp.ones(2)
  _check(jax.jit(lambda x: jax.pure_callback(lambda y: y + 1, x, x))(x), [2, 2])
  seen = []
  from jax.experimental import io_callback
  jax.jit(lambda x: io_callback(lambda y: seen.append(1), None, x, ordered=True))(x)
  jax.effects_barrier()
  assert seen == [1]


def call_python_with_buffers():
  import jax
  import jax.numpy as jnp
  import numpy as np
  from jax.experimental import buffer_callback as bc

  def double(ctx, out, x):
    np.asarray(out)[...] = 2 * np.asarray(x)

  x = jnp.ones(2)
  f = bc.buffer_callback(double, jax.ShapeDtypeStruct((2,), x.dtype))
  _check(jax.jit(f)(x), [2, 2])


def fail_in_order():
  import jax
  import jax.numpy as jnp
  from jax.experimental import io_callback

  def fail(x):
    if x[0] > 0:
      raise ValueError("as told")

  f = jax.jit(lambda x: io_callback(fail, None, x, ordered=True))
  for value in (1.0, 0.0):
    try:
      f(jnp.full(2, value))
      jax.effects_barrier()
    except jax.errors.JaxRuntimeError:
      pass


def leave_by_dlpack():
  import jax.numpy as jnp
  import numpy as np
  _check(np.from_dlpack(jnp.arange(4.)), np.arange(4.))


def enter_by_dlpack():
  import jax
  import numpy as np
  x = jax.dlpack.from_dlpack(np.arange(4, dtype="f4"))
  _check(x, np.arange(4))


def count_costs():
  import jax
  import jax.numpy as jnp
  jax.jit(lambda x: x + 1).lower(jnp.ones(3)).cost_analysis()


def take_cpu_branch():
  import jax
  from jax import lax
  f = jax.jit(lambda x: lax.platform_dependent(x, cpu=lambda x: x + 1, tpu=lambda x: x + 2))
  _check(f(1.), 2)


def call_exported():
  import jax
  import numpy as np
  from jax import export
  exported = export.export(jax.jit(lambda x: x + 1), platforms=["cpu"])(np.float32(1))
  _check(jax.jit(exported.call)(np.float32(1)), 2)


def partition():
  import jax
  import jax.numpy as jnp
  from jax.experimental.custom_partitioning import custom_partitioning
  from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

  @custom_partitioning
  def f(x):
    return x + 1

  f.def_partition(
      partition=lambda mesh, args, result: (mesh, lambda x: x + 1, result.sharding,
                                            tuple(a.sharding for a in args)),
      infer_sharding_from_operands=lambda mesh, args, result: args[0].sharding,
      sharding_rule="i -> i")
  x = jax.device_put(jnp.ones(4), NamedSharding(Mesh(jax.devices()[:2], "i"), P("i")))
  _check(jax.jit(f)(x), [2] * 4)


def broadcast():
  import jax
  import jax.numpy as jnp
  from jax import lax
  f = jax.pmap(lambda x: lax.pbroadcast(x, "i", 1), axis_name="i", devices=jax.devices()[:2])
  _check(f(jnp.arange(2.)), [1, 1])


def move_between_memories():
  import jax
  import jax.numpy as jnp
  host = jax.sharding.SingleDeviceSharding(jax.devices()[0], memory_kind="pinned_host")
  x = jax.jit(lambda x: jax.device_put(x * 2, host))(jnp.ones(2))
  assert x.sharding.memory_kind == "pinned_host"


def donate():
  import jax
  import jax.numpy as jnp
  x = jnp.ones(1000)
  jax.jit(lambda x: x + 1, donate_argnums=0)(x)


def cache():
  import jax
  import jax.numpy as jnp
  with tempfile.TemporaryDirectory() as folder:
    jax.config.update("jax_compilation_cache_dir", folder)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", 0)
    jax.jit(lambda x: x * 3 - 1)(jnp.ones(3)).block_until_ready()
    jax.config.update("jax_compilation_cache_dir", None)


def interpret_kernel():
  import jax
  import jax.numpy as jnp
  from jax.experimental import pallas as pl
  from jax.experimental.pallas import tpu as pltpu

  def kernel(x, out):
    out[...] = x[...] + 1

  f = pl.pallas_call(kernel, jax.ShapeDtypeStruct((8, 128), jnp.float32),
                     interpret=pltpu.InterpretParams())
  _check(jax.jit(f)(jnp.ones((8, 128))), jnp.full((8, 128), 2.))


def run_kernel():
  import jax
  import jax.numpy as jnp
  from jax.experimental import pallas as pl

  def kernel(x, out):
    out[...] = x[...] + 1

  f = pl.pallas_call(kernel, jax.ShapeDtypeStruct((8, 128), jnp.float32))
  _check(jax.jit(f)(jnp.ones((8, 128))), jnp.full((8, 128), 2.))


def interpret_gpu_kernel():
  import inspect
  import jax
  from jax.experimental.pallas import mosaic_gpu as plgpu
  try:
    from jax._src.pallas.mosaic_gpu.interpret.params import InterpretGPUParams
  except ImportError:  # JAX 0.9 has it elsewhere
    from jax._src.pallas.mosaic.interpret.utils import InterpretGPUParams
  import numpy as np

  def kernel(x, out):
    out[...] = x[...] + 1

  out = "out_type" if "out_type" in inspect.signature(plgpu.kernel).parameters else "out_shape"
  x = np.ones((5, 1), np.int32)
  f = plgpu.kernel(kernel, **{out: jax.ShapeDtypeStruct(x.shape, x.dtype)},
                   interpret=InterpretGPUParams())
  _check(f(x), x + 1)


def name_layers():
  """The rules that minipod adds when flax is imported, which need not be installed."""
  import jax
  import jax.numpy as jnp
  from minipod.jax import modules

  class Module:
    def __init_subclass__(cls, **kwargs):
      super().__init_subclass__(**kwargs)

  class Layer(Module):
    def __call__(self, x):
      return x + 1

  sys.modules["flax.nnx.module"] = types.SimpleNamespace(Module=Module)
  modules.name_layers()
  _check(jax.jit(Layer())(jnp.ones(3)), [2] * 3)


def describe_topology():
  from jax.experimental import topologies
  topologies.get_topology_desc("", "minipod")


USES = (decompose_small, decompose_large, solve_tridiagonal, approximate_top_k, call_python,
        call_python_with_buffers, fail_in_order, leave_by_dlpack, enter_by_dlpack, count_costs,
        take_cpu_branch, call_exported, partition, broadcast, move_between_memories, donate, cache,
        interpret_kernel, run_kernel, interpret_gpu_kernel, name_layers, describe_topology)


# ---- The run ----

def start(gone):
  """Starts a process for the name; its outcome comes through the pipe."""
  read, write = os.pipe()
  sys.stdout.flush()
  pid = os.fork()
  if pid == 0:
    os.close(read)
    try:
      signal.alarm(LIMIT_S)
      out = os.open(os.devnull, os.O_WRONLY)
      os.dup2(out, 1), os.dup2(out, 2)
      with os.fdopen(write, "w") as pipe:
        json.dump(attempt(gone), pipe)
    finally:
      os._exit(0)
  os.close(write)
  return pid, os.fdopen(read)


def outcome(pid, pipe):
  with pipe:
    text = pipe.read()
  _, status = os.waitpid(pid, 0)
  if text:
    return json.loads(text)
  return False, [], {"process": [f"ended by signal {os.WTERMSIG(status)}", ""]}


def is_good(gone, lives, said, errors):
  """Whether a name that is gone costs what it may, and says so."""
  if gone in NEEDED:
    return bool(said)
  return lives and bool(said) and not any(
      line.startswith(OURS) for lines in errors.values() for line in lines)


def run(names, jobs):
  """Yields (name, lives, said, errors) of each, in the order of the names."""
  # The processes patch JAX themselves, as without the hook that patches it during its import.
  sys.meta_path[:] = [finder for finder in sys.meta_path
                      if type(finder).__module__ != "_minipod_start"]
  import jax
  import jax.experimental.pallas.tpu  # what many use, so that each process need not import it
  waiting = []
  for name in names:
    if len(waiting) == jobs:
      done, process = waiting.pop(0)
      yield done, *outcome(*process)
    waiting.append((name, start(name)))
  for done, process in waiting:
    yield done, *outcome(*process)


def main():
  parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
  parser.add_argument("names", nargs="*")
  parser.add_argument("--jobs", type=int, default=2)
  parser.add_argument("--sample", type=int)
  parser.add_argument("--seed", type=int, default=1)
  parser.add_argument("--list", action="store_true")
  options = parser.parse_args()
  names = options.names or find_names()
  if options.sample:
    names = sorted(random.Random(options.seed).sample(names, options.sample))
  if options.list:
    print("\n".join(names))
    return 0
  os.environ["JAX_PLATFORMS"] = "minipod"
  os.environ.setdefault("MINIPOD_DEVICES", "2")
  # So that minipod patches these, too.
  os.environ.setdefault("MINIPOD_PLATFORM", "tpu")
  os.environ.setdefault("MINIPOD_TIME", "model")
  os.environ.setdefault("MINIPOD_CLOCK", "virtual")
  os.environ.setdefault("MINIPOD_CHECK", "replicas")
  bad = 0
  for name, lives, said, errors in run(["", *names], options.jobs):
    good = is_good(name, lives, said, errors) if name else lives and not said and not errors
    bad += not good
    words = "; ".join(f"{use}: {first[:80]}" for use, (first, _) in errors.items()) or "-"
    print(f"{'good' if good else 'BAD '} {'lives' if lives else 'dead '}"
          f" {'said' if said else '-   '} {name or 'nothing is gone'}: {words}")
    if not good or not name:
      print("".join(f"       {line[:160]}\n" for line in said[:4]), end="", flush=True)
  print(f"{len(names)} names and modules: {bad} bad")
  return int(bad > 0)


if __name__ == "__main__":
  sys.exit(main())

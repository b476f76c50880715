"""What JAX calls at its first use of a backend: registers the platform "minipod".

JAX knows some features only for platform names it has heard of.  Each step below teaches it
one of them; the private names this takes are all in `jax_private`.  A step that fails (another
version of JAX, say) costs its feature and says so, never the platform: what there is to say goes
to the logger "minipod", because a warning that the user has made an error (`-W error`) would end
JAX's search for plugins.  Nothing is said where the user has chosen other platforms.
"""

import ctypes
import os
import re

import minipod
from minipod import callbacks
from minipod import foreign
from minipod import jax_private

PLATFORM = "minipod"
# Above every other plugin's default, so that an installed minipod is the default backend.
PRIORITY = 500
# The JAX versions this package was tested with: from the first, to before the second.
TESTED_JAX = ((0, 9), (0, 13))


def version_warning(version: str) -> str | None:
  """What to tell the user of this JAX version; None if it was tested."""
  first, end = TESTED_JAX
  found = tuple(int(part) for part in re.findall(r"\d+", version)[:2])
  if first <= found < end:
    return None
  return (f"minipod {minipod.__version__} was tested with JAX {first[0]}.{first[1]} to"
          f" {end[0]}.{end[1] - 1}, and this is JAX {version}: features that JAX has to be taught"
          " may be missing")


def initialize() -> None:
  """Registers the plugin and teaches JAX its name; called by JAX, once per process."""
  if warning := version_warning(jax_private.jax_version()):
    jax_private.say(PLATFORM, warning)
  # Known before the registration, which computes the flag "experimental" from it.
  _teach("that minipod is no experiment", jax_private.mark_nonexperimental, PLATFORM)
  # A library named in JAX's own variable is registered by JAX after us: it only needs the rest.
  if not _named_in_environment():
    jax_private.register_plugin(PLATFORM, minipod.library_path(), PRIORITY)
  _teach("donation", jax_private.allow_donation, PLATFORM)
  _teach("the compilation cache", jax_private.allow_compilation_cache, PLATFORM)
  _teach("lowering rules", jax_private.install_lowering_rules, PLATFORM)
  _teach("foreign functions", jax_private.install_foreign_functions, PLATFORM, foreign.register,
         foreign.register_type)
  _teach("to take a CPU's branches", jax_private.use_cpu_branches, PLATFORM)
  _teach("to call what was exported for CPUs", jax_private.accept_exports_for_cpu, PLATFORM)
  _teach("custom partitioning", jax_private.allow_custom_partitioning, PLATFORM)
  _teach("to call Python", _allow_callbacks)
  _teach("to let effects go on", jax_private.let_effects_go_on, PLATFORM)
  _teach("to run Pallas' interpreters", jax_private.allow_pallas_interpreters, PLATFORM)
  _teach("not to hang after a fork", jax_private.refuse_compiling_after_fork, PLATFORM)
  _teach("to exchange arrays by DLPack", jax_private.exchange_arrays, PLATFORM)
  _teach("the costs of lowered programs", jax_private.count_costs_before_compiling, PLATFORM)
  _teach("the order of a TPU's meshes", jax_private.order_meshes_as_tpus, PLATFORM)
  _teach("to coordinate processes", jax_private.offer_coordination, PLATFORM, _coordinate, _leave)
  _teach("to keep a CPU backend", jax_private.keep_cpu_backend, PLATFORM)


def _allow_callbacks() -> None:
  callbacks.open_library(jax_private.await_effects, jax_private.forget_effects)
  jax_private.allow_callbacks(PLATFORM, callbacks.CallbackTable)


def _named_in_environment() -> bool:
  entries = os.environ.get("PJRT_NAMES_AND_LIBRARY_PATHS", "").split(",")
  return any(entry.split(":")[0].strip() == PLATFORM for entry in entries)


def _coordinate(process: int, num_processes: int, error):
  from minipod import coordination  # which few processes need, and JAX's start need not wait for

  return coordination.make_client(process, num_processes, error), coordination.NoPreemption()


def _leave(has_failed: bool) -> None:
  foreign.library().minipod_leave_world(ctypes.c_bool(has_failed))


def _teach(what, step, *args) -> None:
  try:
    step(*args)
  except Exception as error:  # whatever a changed JAX raises: the platform itself still works
    jax_private.say(
        PLATFORM, f"minipod could not teach JAX {jax_private.jax_version()} {what}: {error!r}")

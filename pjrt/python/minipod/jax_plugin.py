"""The functions that JAX calls at its first use of a backend: they register the platform "minipod".

Everything else that minipod adds to JAX is in `minipod.jax`, with a step for each feature.  If a step fails (for
example with another version of JAX), its feature is missing and a warning says so.  The platform itself still works.
"""

import os
import re

import minipod
from minipod import clock
from minipod.jax import arrays
from minipod.jax import attention
from minipod.jax import callbacks
from minipod.jax import coordination
from minipod.jax import early
from minipod.jax import foreign
from minipod.jax import guard
from minipod.jax import kernels
from minipod.jax import launches
from minipod.jax import linalg
from minipod.jax import meshes
from minipod.jax import modules
from minipod.jax import names
from minipod.jax import pallas
from minipod.jax import programs
from minipod.jax import replicas
from minipod.jax import rules
from minipod.jax import start

# Higher than the default priority of every other plugin, so that an installed minipod is the default backend.
PRIORITY = 500
# The JAX versions that this package was tested with: from the first, up to but without the second.
TESTED_JAX = ((0, 9), (0, 13))

# The steps that are applied before JAX makes a client, in this order.  Some steps have their own guards.
_STEPS = (
    ("which lines are the user's own", programs.leave_out_own_lines),
    ("to wait for flax.nnx", modules.name_layers),
    ("donation", programs.allow_donation),
    ("the compilation cache", programs.allow_compilation_cache),
    ("to use LAPACK", foreign.find_lapack),
    ("foreign functions", foreign.install_functions),
    ("types of foreign functions", foreign.install_types),
    ("lowering rules", rules.install_table),
    ("the rule for 'pbroadcast'", rules.take_rule, "cuda", "pbroadcast"),
    ("the rule for 'pbroadcast_start'", rules.take_rule_if_any, "cuda", "pbroadcast_start"),
    ("the rule for 'psend'", rules.take_rule, "cuda", "psend", True),
    ("the rule for 'precv'", rules.take_rule, "cuda", "precv", True),
    # Moves between memory spaces inside a program, which JAX drops by default.
    ("the rule for 'device_put'", rules.take_rule, "tpu", "device_put"),
    ("the rule for 'approx_top_k'", rules.install_top_k),
    ("decompositions", linalg.install),
    ("to take a CPU's branches", programs.use_cpu_branches),
    ("to call what was exported for CPUs", programs.accept_exports_for_cpu),
    ("custom partitioning", programs.allow_custom_partitioning),
    ("to wait for effects", callbacks.find_effects),
    ("to open the library for callbacks", callbacks.open_library),
    ("to call Python", callbacks.allow_callbacks),
    ("to call Python with buffers", callbacks.allow_buffer_callbacks),
    ("to raise the errors of callbacks", callbacks.raise_as_cpus_do),
    ("to let effects continue", callbacks.let_effects_go_on),
    ("to run Pallas' interpreters", pallas.allow_interpreters),
    ("to run kernels of Pallas", kernels.allow_kernels),
    ("to run kernels that access memory under masks", kernels.allow_masked_accesses),
    ("to run Pallas' programs of programs", pallas.allow_programs_of_programs),
    ("to run cuDNN's attention on described GPUs", attention.allow),
    ("not to hang after a fork", programs.refuse_compiling_after_fork),
    ("to let arrays leave by DLPack", arrays.let_leave),
    ("to let arrays enter by DLPack", arrays.let_enter),
    ("to let the first array enter by DLPack", arrays.let_first_enter),
    ("to put an array on very many devices", arrays.scatter_from_host),
    ("the costs of lowered programs", programs.count_costs_before_compiling),
    ("that options may come too late", start.attend_options),
    ("to give its clocks back", start.attend_clearing, clock.restore),
    ("to coordinate processes", coordination.find_state),
    ("to tell where programs are called from", coordination.find_callers))
_is_taught = False


def version_warning(version: str) -> str | None:
  """The warning about this JAX version; None if it was tested."""
  first, end = TESTED_JAX
  found = tuple(int(part) for part in re.findall(r"\d+", version)[:2])
  if first <= found < end:
    return None
  return (f"minipod {minipod.__version__} was tested with JAX {first[0]}.{first[1]} to"
          f" {end[0]}.{end[1] - 1}, and this is JAX {version}:"
          " some features may not work with it")


def initialize() -> None:
  """Registers the plugin and its name with JAX, which calls this once per process.

  If the user has chosen other platforms, no step is applied until the user selects minipod.
  """
  # Known before the registration, which computes the flag "experimental" from it.
  guard.teach("that minipod is not experimental", start.mark_nonexperimental)
  # A library named in JAX's own variable is registered by JAX after us: it only needs the rest.
  if not _named_in_environment() and not start.register(minipod.library_path, PRIORITY):
    return
  guard.teach("to attend the start of minipod", start.attend_clients, _teach, _make_client)
  guard.teach("to attend its topologies", start.attend_topologies, _teach, _see_topology)
  guard.teach("to add a CPU backend", start.find_cpu_backend)
  early.attend()
  early.leave()
  if guard.may_be_used():
    _teach()


def _teach() -> None:
  """Applies all steps, once per process."""
  global _is_taught
  if _is_taught:
    return
  _is_taught = True
  if warning := version_warning(guard.jax_version()):
    guard.say(warning)
  for what, step, *args in _STEPS:
    guard.teach(what, step, *args)


def _make_client(make):
  client = coordination.make_client(make)
  guard.teach("the platform's name", names.show_client, client)
  if clock.is_wanted():
    guard.teach("the pod's clock", clock.follow)
    guard.teach("how many hosts a process is", _share_lock, client)
    guard.teach("that a launch takes none of the pod's time", launches.stop_clock)
  if launches.is_for_shapes():
    guard.teach("to forget what was donated", launches.forget_donated)
  guard.teach("the order of a TPU's meshes", meshes.order_meshes_of_client, client)
  guard.teach("to compare copies", replicas.attend_client)
  return client


def _share_lock(client) -> None:
  clock.share_lock(len({device.host_index for device in client.local_devices()}))


def _see_topology(topology) -> None:
  guard.teach("the platform's name", names.show_topology, topology)
  guard.teach("the order of a TPU's meshes", meshes.order_meshes_of_topology, topology)


def _named_in_environment() -> bool:
  entries = os.environ.get("PJRT_NAMES_AND_LIBRARY_PATHS", "").split(",")
  return any(entry.split(":")[0].strip() == guard.PLATFORM for entry in entries)

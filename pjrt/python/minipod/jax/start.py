"""The start: the platform and its client, and when the other steps are applied to JAX.

Where the user has named other platforms, JAX gets to know the platform and nothing else.  The names
may change as long as no backend is in use, and later with `clear_backends`: the steps are applied when the first
client or described topology is wanted.
"""

import functools
import os

from minipod.jax import guard

_OPTIONS = "jax_pjrt_client_create_options"
_make_cpu_backend = None


def mark_nonexperimental() -> None:
  """Drops the warning "experimental", and makes the name known to `register_lowering`."""
  from jax._src import xla_bridge

  xla_bridge._nonexperimental_plugins.add(guard.PLATFORM)


def register(find_library, priority: int) -> bool:
  """Registers the library that `find_library` names.

  Where it cannot be loaded JAX learns why, so that code that requests the platform does; False then.
  """
  from jax._src import xla_bridge
  from jax.extend import backend

  try:
    # A dict, if an empty one: without it JAX drops `jax_pjrt_client_create_options` once
    # jax.distributed is in use.
    xla_bridge.register_plugin(guard.PLATFORM, library_path=find_library(), priority=priority,
                               options={})
    return True
  except Exception as error:  # whatever finding and loading it raise
    why = f"minipod's library cannot be loaded: {error} (`minipod doctor` tells more)"
  guard.say(why)

  def refuse():
    raise RuntimeError(why)

  backend.register_backend_factory(guard.PLATFORM, refuse, priority=priority)
  return False


def chosen(option: str, variable: str) -> str | None:
  """What the user has chosen for an option, in code or in the environment."""
  import jax

  options = getattr(jax.config, _OPTIONS)
  given = options.get(option) if isinstance(options, dict) else None
  return given or os.environ.get(variable)


def is_for_shapes() -> bool:
  """Whether the user has asked for runs without values, where not a description of the pod does."""
  return chosen("values", "MINIPOD_VALUES") == "shapes"


def attend_clients(prepare, make_client) -> None:
  """Has `prepare` called before JAX makes a client, and this made by `make_client`, which gets the
  function that makes one."""
  from jax._src import xla_bridge

  registrations = xla_bridge._backend_factories

  def attend(c_api=None):
    registration = registrations[guard.PLATFORM]
    if c_api is None or registration.c_api is c_api:
      registration.factory = functools.partial(_make, prepare, make_client, registration.factory)

  if guard.PLATFORM in registrations:
    attend()
  else:  # a variable of JAX's names the library, which JAX registers at the end of its search
    xla_bridge.register_plugin_callbacks(attend)


def attend_topologies(prepare, attend) -> None:
  """Has `prepare` called before JAX makes a described topology, and `attend` with it."""
  from jax._src import xla_bridge

  factories = xla_bridge._topology_factories
  if guard.PLATFORM in factories:
    factories[guard.PLATFORM] = functools.partial(_make_topology, prepare, attend,
                                                  factories[guard.PLATFORM])


def _make(prepare, make_client, make):
  prepare()
  client = make_client(make)
  guard.teach("to keep a CPU backend", _add_cpu_backend)
  return client


def _make_topology(prepare, attend, make, *args, **kwargs):
  prepare()
  topology = make(*args, **kwargs)
  attend(topology)
  return topology


def attend_clearing(attend) -> None:
  """Has `attend` called when JAX has dropped its clients, which others may still refer to."""
  from jax._src import xla_bridge

  clear = xla_bridge._clear_backends

  @functools.wraps(clear)
  def clear_backends():
    clear()
    attend()

  xla_bridge._clear_backends = clear_backends


def attend_options() -> None:
  """Says of options that are set when a client is there already that they come too late for it."""
  import jax
  from jax._src import xla_bridge

  update = jax.config.update
  _ = xla_bridge._backends

  @functools.wraps(update)
  def attended(name, value):
    is_late = name == _OPTIONS and guard.PLATFORM in xla_bridge._backends
    if is_late and value != getattr(jax.config, _OPTIONS):
      guard.say("the pod is already in use, and keeps its options: these are for the next client"
                " (minipod.use changes the pod, jax.extend.backend.clear_backends ends it)")
    update(name, value)

  jax.config.update = attended


def find_cpu_backend() -> None:
  """Looks for what it takes to have JAX's CPU backend beside the platform when the user named the
  platform alone.

  Host-side helpers of JAX (callbacks, DLPack import) ask for a CPU device by name.  The names that
  the user has chosen stay as they are: others compare them.
  """
  global _make_cpu_backend
  from jax._src import xla_bridge

  make = xla_bridge._init_backend
  _ = xla_bridge._backends

  def make_cpu_backend():
    if "cpu" not in xla_bridge._backends:
      xla_bridge._backends["cpu"] = make("cpu")

  _make_cpu_backend = make_cpu_backend


def _add_cpu_backend() -> None:
  chosen = guard.chosen_platforms()
  if guard.PLATFORM in chosen and "cpu" not in chosen and _make_cpu_backend is not None:
    _make_cpu_backend()

"""The start: registers the platform, makes its client, and decides when the other steps are applied to JAX.

If the user has named other platforms, minipod only registers the platform.  The user may change the names as long as no
backend is in use, and later with `clear_backends`.  So the steps are applied when JAX makes the first client or
described topology.
"""

import functools
import os

from minipod.jax import guard

_OPTIONS = "jax_pjrt_client_create_options"
_make_cpu_backend = None


def mark_nonexperimental() -> None:
  """Drops the warning "experimental", and makes `register_lowering` accept the name."""
  from jax._src import xla_bridge

  xla_bridge._nonexperimental_plugins.add(guard.PLATFORM)


def register(find_library, priority: int) -> bool:
  """Registers the library that `find_library` names; False if it cannot be loaded.

  JAX then gets the reason, which it shows to code that requests the platform.
  """
  from jax._src import xla_bridge
  from jax.extend import backend

  try:
    # An empty dict, not None: otherwise JAX drops `jax_pjrt_client_create_options` once jax.distributed is in use.
    xla_bridge.register_plugin(guard.PLATFORM, library_path=find_library(), priority=priority,
                               options={})
    return True
  except Exception as error:  # any exception from finding and loading the library
    why = f"minipod's library cannot be loaded: {error} (`minipod doctor` tells more)"
  guard.say(why)

  def refuse():
    raise RuntimeError(why)

  backend.register_backend_factory(guard.PLATFORM, refuse, priority=priority)
  return False


def chosen(option: str, variable: str) -> str | None:
  """The value that the user has set for an option, in code or in the environment."""
  import jax

  options = getattr(jax.config, _OPTIONS)
  given = options.get(option) if isinstance(options, dict) else None
  return given or os.environ.get(variable)


def is_for_shapes() -> bool:
  """Whether the user has requested runs without values, other than in a description of the pod."""
  return chosen("values", "MINIPOD_VALUES") == "shapes"


def attend_clients(prepare, make_client) -> None:
  """Makes JAX call `prepare` before it makes a client, and make the client by `make_client`.

  `make_client` gets JAX's function that makes one.
  """
  from jax._src import xla_bridge

  registrations = xla_bridge._backend_factories

  def attend(c_api=None):
    registration = registrations[guard.PLATFORM]
    if c_api is None or registration.c_api is c_api:
      registration.factory = functools.partial(_make, prepare, make_client, registration.factory)

  if guard.PLATFORM in registrations:
    attend()
  else:  # a variable of JAX names the library, which JAX registers at the end of its search
    xla_bridge.register_plugin_callbacks(attend)


def attend_topologies(prepare, attend) -> None:
  """Makes JAX call `prepare` before it makes a described topology, and `attend` with the topology."""
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
  """Makes JAX call `attend` after it has dropped its clients, to which other code may still refer."""
  from jax._src import xla_bridge

  clear = xla_bridge._clear_backends

  @functools.wraps(clear)
  def clear_backends():
    clear()
    attend()

  xla_bridge._clear_backends = clear_backends


def attend_options() -> None:
  """Warns that options which are set after the client was made have no effect on it."""
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
  """Looks up how to add JAX's CPU backend if the user has named this platform alone.

  Some of JAX's host-side helpers (callbacks, DLPack import) request a CPU device by name.  minipod does not change the
  names that the user has chosen, because other code compares them.
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

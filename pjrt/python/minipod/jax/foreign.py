"""Passes foreign functions that are registered with JAX to the library, too."""

import functools

from minipod import foreign
from minipod.jax import blas_threads
from minipod.jax import guard

_initialize_lapack = None  # prepares LAPACK's functions; None if this JAX lacks it
_has_functions = False


def has_lapack() -> bool:
  """Whether programs on the platform may call the LAPACK functions that JAX brings."""
  return _has_functions and _initialize_lapack is not None


def find_lapack() -> None:
  global _initialize_lapack
  from jaxlib import lapack

  _initialize_lapack = lapack._lapack.initialize


def install_functions() -> None:
  """Lets the library see all foreign functions for the platform and for "cpu".

  It passes functions that were registered earlier now.  JAX also gives functions for "cpu" to its own CPU client, so
  both have them.
  """
  global _has_functions
  from jaxlib import xla_client

  names, lock = xla_client._custom_callback_handler, xla_client._custom_callback_lock
  register_handler, known = xla_client.register_custom_call_handler, xla_client.custom_call_targets
  _hand_over(register_handler, foreign.register)

  def forward(name, fn, platform, api_version=0, traits=0):
    is_lapack = name.startswith("lapack_")
    if not is_lapack or _initialize_lapack is not None:
      _forward(foreign.register, name, fn, platform, api_version, traits,
               before_use=_start_lapack if is_lapack else None)

  if not _tap(names, lock, register_handler, xla_client._xla.register_custom_call_target, forward):
    _forward_known(known("cpu"), forward)
  _has_functions = True


def _forward_known(functions, forward) -> None:
  """Passes the functions that the CPU client already has, except XLA's own ways to call Python."""
  for name, function in functions.items():
    if not name.startswith("xla_"):
      forward(name, function, "cpu", 1 if isinstance(function, dict) else 0)


def install_types() -> None:
  """The same for the types of states and of user data."""
  from jaxlib import xla_client

  names, lock = xla_client._custom_type_id_handler, xla_client._custom_type_id_lock
  register_handler = xla_client.register_custom_type_handler
  _hand_over(register_handler, foreign.register_type)
  _tap(names, lock, register_handler, xla_client._xla.register_custom_type,
       functools.partial(_forward, foreign.register_type))


def _start_lapack() -> None:
  _initialize_lapack()
  blas_threads.share("lapack_")


def _hand_over(register_handler, register) -> None:
  """Makes JAX call `register` for everything that it registers, or has registered, for the platform."""
  # JAX passes earlier registrations while it starts.  If one of them is wrong, only that one fails, and its user sees
  # the error when a program calls the function.
  is_starting = True

  def handle(name, *args, **kwargs):
    if is_starting:
      _forward(register, name, *args, **kwargs)
    else:
      register(name, *args, **kwargs)

  register_handler(guard.PLATFORM, handle)
  is_starting = False


def _forward(register, name, *args, **kwargs) -> None:
  """Registers a function or a type.  If minipod refuses it, other platforms must not be affected."""
  try:
    register(name, *args, **kwargs)
  except ValueError as error:
    guard.say(f"the foreign function or type '{name}' is not available on minipod: {error}")


def _tap(handlers, lock, register_handler, handle, forward) -> bool:
  """Makes registrations for "cpu" go to JAX's own `handle`, and then to `forward`.

  Returns False if a CPU client already exists: then `forward` sees only later registrations.
  """
  name = _cpu_name()
  with lock:
    known = handlers.get(name)

    def both(*args, **kwargs):
      (known or handle)(*args, **kwargs)
      forward(*args, **kwargs)

    if known is not None:
      handlers[name] = both
  if known is None:
    register_handler("cpu", both)  # this passes the earlier registrations
  return known is None


def _cpu_name() -> str:
  """The name that JAX's tables have for the platform "cpu"."""
  from jaxlib import xla_client

  return xla_client.xla_platform_names["cpu"]

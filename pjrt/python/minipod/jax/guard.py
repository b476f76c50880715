"""Turns off a feature, with one warning, if its step fails because JAX has changed."""

import logging
import os

import jax

PLATFORM = "minipod"

_logger = logging.getLogger("minipod")
_FOLDER = os.path.dirname(__file__)
# Exceptions that a missing name, or a function with other arguments, raises.
_CHANGES = (AttributeError, ImportError, KeyError, TypeError)
_said = set()


def jax_version() -> str:
  return jax.__version__


def chosen_platforms() -> list[str]:
  """The platforms that the user has named; empty if JAX may choose."""
  chosen = jax.config.jax_platforms
  return chosen.split(",") if chosen else []


def may_be_used() -> bool:
  """False if the user has named platforms and minipod is not among them."""
  chosen = chosen_platforms()
  return not chosen or PLATFORM in chosen


def say(text: str) -> None:
  """Prints a message about the platform, unless the user has chosen other platforms.

  It uses a logger: if the user turns warnings into errors (`-W error`), a warning would end JAX's search for plugins.
  """
  _logger.log(logging.WARNING if may_be_used() else logging.DEBUG, "%s", text)


def say_once(text: str) -> None:
  """The same, once, for messages that each program would repeat."""
  if text not in _said:
    _said.add(text)
    say(text)


def teach(what: str, step, *args) -> bool:
  """Runs a step that adds a feature to JAX; if it fails, only this feature is missing."""
  try:
    step(*args)
    return True
  except Exception as error:  # a changed JAX may raise anything; the platform itself still works
    say(f"minipod could not teach JAX {jax_version()} {what}: {error!r}")
    return False


class use:
  """Guards a block that uses parts of JAX that may have changed: `with use("callbacks"): …`.

  If the block fails, the code after it runs, which is JAX's own way.  A block fails if a module is missing, or if a
  line of the block itself uses a name that is missing or takes other arguments.  Errors from below such a line may be
  the user's own, so they are raised.  With `anywhere`, no mistake of the user can reach the block, and errors from
  below count, too.
  """

  def __init__(self, what: str, anywhere: bool = False):
    self._what, self._anywhere = what, anywhere

  def __enter__(self) -> None:
    pass

  def __exit__(self, _, error, traceback) -> bool:
    if not isinstance(error, _CHANGES):
      return False
    if not (self._anywhere or isinstance(error, ImportError) or _is_raised_here(traceback)):
      return False
    if self._what not in _said:
      _said.add(self._what)
      say(f"minipod cannot serve {self._what} with JAX {jax_version()}, and leaves that to JAX:"
          f" {error!r}")
    return True


def _is_raised_here(traceback) -> bool:
  while traceback.tb_next is not None:
    traceback = traceback.tb_next
  return traceback.tb_frame.f_code.co_filename.startswith(_FOLDER)

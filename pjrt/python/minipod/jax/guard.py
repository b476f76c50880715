"""If a step fails because JAX has changed, its feature is off, with one warning."""

import logging
import os

import jax

PLATFORM = "minipod"

_logger = logging.getLogger("minipod")
_FOLDER = os.path.dirname(__file__)
# What a name that is gone, or takes other arguments, raises.
_CHANGES = (AttributeError, ImportError, KeyError, TypeError)
_said = set()


def jax_version() -> str:
  return jax.__version__


def chosen_platforms() -> list[str]:
  """The platforms that the user has named; none where that is left to JAX."""
  chosen = jax.config.jax_platforms
  return chosen.split(",") if chosen else []


def may_be_used() -> bool:
  """False when the user has named the platforms to use, and minipod is not among them."""
  chosen = chosen_platforms()
  return not chosen or PLATFORM in chosen


def say(text: str) -> None:
  """Tells the user of the platform; nothing where others were chosen.

  By a logger: a warning that the user has made an error (`-W error`) would end JAX's search for
  plugins.
  """
  _logger.log(logging.WARNING if may_be_used() else logging.DEBUG, "%s", text)


def say_once(text: str) -> None:
  """The same for messages that each program would repeat."""
  if text not in _said:
    _said.add(text)
    say(text)


def teach(what: str, step, *args) -> bool:
  """Runs a step that teaches JAX something; one that fails costs what it teaches."""
  try:
    step(*args)
    return True
  except Exception as error:  # whatever a changed JAX raises: the platform itself still works
    say(f"minipod could not teach JAX {jax_version()} {what}: {error!r}")
    return False


class use:
  """Guards a block that uses what may have changed in JAX: `with use("callbacks"): …`.

  What follows the block is JAX's own way.  It is taken when a module is gone, or a name in the
  block is or takes other arguments: an error that is raised by a line of ours, rather than below
  it, where the user's own mistakes come to light.  `anywhere` guards a block that no mistake of a
  user's can reach.
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

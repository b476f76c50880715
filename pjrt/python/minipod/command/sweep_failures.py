"""Why a run of a sweep failed: the message of its exception, and the user's line that raised it, from standard error."""

import pathlib
import re
import signal
import sysconfig

import minipod
from minipod import report

_UNITS = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
_NEEDS = re.compile(r"needs ([\d.]+) (\w+) of ([\d.]+) (\w+)")
_FRAME = re.compile(r'  File "(.+)", line (\d+)(?:, in .*)?$')
_LIBRARIES = tuple(f"{path}/" for path in (sysconfig.get_path("stdlib"), pathlib.Path(minipod.__file__).parent))


def _is_message(line: str) -> bool:
  return bool(line.strip()) and not line.startswith((" ", "\t")) and set(line) != {"-"}


def _is_users(path: str) -> bool:
  return not (path.startswith(("<frozen ", *_LIBRARIES)) or "/site-packages/" in path or "/dist-packages/" in path)


def users_line(stderr: str) -> str | None:
  """The innermost line of the user's own files in the last traceback that has one: "train.py:3: x = f(y)"."""
  lines = stderr.splitlines()
  found = None
  for text, below in zip(lines, [*lines[1:], ""]):
    frame = _FRAME.match(text)
    if frame and _is_users(frame[1]):
      code = below.strip() if below.startswith("    ") else ""
      found = f"{frame[1]}:{frame[2]}" + (f": {code}" if code else "")
  return found and report.visible(found)


def reason(stderr: str, code: int) -> str:
  """The message of the exception that ended a run: the text after the last traceback."""
  lines = stderr.splitlines()
  begin = max((i for i, line in enumerate(lines) if line.startswith("Traceback (most recent call last)")), default=None)
  if begin is None:
    said = [line for line in lines if line.strip() and set(line) != {"-"} and "JAX has removed its internal frames" not in line]
    ended = f"ended by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}, no time report"
    return said[-1].strip() if said and code > 0 else ended
  message: list[str] = []
  for line in lines[begin + 1:]:
    if not message and not _is_message(line):
      continue
    if message and (set(line) == {"-"} or line.startswith(("The above exception", "During handling", "minipod: "))):
      break
    message.append(line)
  first = re.sub(r"^(?:\w+\.)+(\w+)", r"\1", message[0]) if message else f"exit code {code}"
  return "\n".join([first, *message[1:]]).strip()


def failure(stderr: str, code: int) -> dict:
  """The row of a run that failed: the first line of the message, the user's line, and the memory that it speaks of."""
  message = reason(stderr, code)
  row: dict = {"error": report.visible(message.splitlines()[0])}
  if at := users_line(stderr):
    row["line"] = at
  found = _NEEDS.search(message)
  if found and found[2] in _UNITS and found[4] in _UNITS:
    row |= {"memory_bytes": float(found[1]) * _UNITS[found[2]], "device_memory": float(found[3]) * _UNITS[found[4]],
            "fits": False}
  return row

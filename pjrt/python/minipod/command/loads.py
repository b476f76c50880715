"""`minipod loads`: how busy each link of a pod was, from the timeline of a run."""

import contextlib
import os
import tempfile

from minipod import command
from minipod import report
from minipod import timeline
from minipod.command import arguments

ABOUT = """Prints how busy each link was, from the timeline of a run (MINIPOD_TRACE=t.json or t.json.gz).

  minipod loads --program jit_train_step t.json.gz > loads.txt
  minipod topo --svg --loads loads.txt v5e:4x4 > pod.svg

Prints one line per link that carried data: its name, and its load as a share of its capacity from the first launch to
the end. `minipod topo --loads` also reads timelines directly, for all programs."""


def read(path: str, use):
  """What `use` makes of the events of a timeline.

  Raises:
    ValueError: it is none; names the file.
  """
  try:
    return use(timeline.read_events(path))
  except (KeyError, TypeError, AttributeError, ZeroDivisionError) as error:
    raise ValueError(f"{report.visible(path)}: it is not a timeline of MINIPOD_TRACE: {error!r}") from error
  except ValueError as error:
    raise ValueError(f"{report.visible(path)}: {report.visible(str(error))}") from error


def _is_timeline(path: str) -> bool:
  with contextlib.suppress(OSError), open(path, "rb") as file:
    return os.path.isfile(path) and file.read(2).lstrip()[:1] in (b"[", b"\x1f")
  return False


@contextlib.contextmanager
def prepared(words: list[str]):
  """The arguments of `topo`, with the loads of a timeline in its place."""
  at = words.index("--loads") + 1 if "--loads" in words else len(words)
  if at >= len(words) or not _is_timeline(words[at]):
    yield words
    return
  loads = read(words[at], timeline.loads_of)
  with tempfile.NamedTemporaryFile("w", suffix=".txt", prefix="minipod-loads-") as file:
    file.write(timeline.write_loads(loads))
    file.flush()
    yield [*words[:at], file.name, *words[at + 1:]]


def main(words: list[str]) -> int:
  parser = arguments.parser("loads", ABOUT)
  parser.add_argument("timeline", help="the file that MINIPOD_TRACE named")
  parser.add_argument("--program", help="count only the launches of this program")
  asked = parser.parse_args(words)
  try:
    loads = read(asked.timeline, lambda events: timeline.loads_of(events, asked.program))
  except ValueError as error:
    return command.complain("loads", str(error))
  print(timeline.write_loads({report.visible(name): load for name, load in loads.items()}), end="")
  return 0

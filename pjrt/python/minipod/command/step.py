"""`minipod step`: a step as a picture, from the timeline of a run."""

import json

from minipod import command
from minipod import step_picture
from minipod import timeline
from minipod.command import arguments
from minipod.command import loads

ABOUT = """Draws a step as a picture (SVG), from the timeline of a run (MINIPOD_TRACE=t.json or t.json.gz).

  minipod step --program jit_train_step --pod v5e:4x4 t.json.gz > step.svg

The upper half is a roofline. Each circle is a kernel: its horizontal position shows operations per byte, its vertical
position operations per second, and its area its share of the time. --pod, or --flops and --bandwidth, set the roofs;
without them, the roofs are the best values that a kernel reaches.

The lower half shows the last launch of the program on a device, with rows for work, collectives and everything else in
the timeline."""


def _roofs(pod: str | None) -> tuple[float | None, float | None]:
  """Operations and bytes per second of a device of the pod."""
  if not pod:
    return None, None
  done = command.ask_library("topo", "--json", pod)
  if done.returncode:
    raise ValueError(done.stderr.strip().removeprefix("minipod topo: "))
  facts = json.loads(done.stdout)
  return facts.get("flops", {}).get("bf16") or None, facts.get("memory_bandwidth") or None


def main(words: list[str]) -> int:
  parser = arguments.parser("step", ABOUT)
  parser.add_argument("timeline", help="the file that MINIPOD_TRACE named")
  parser.add_argument("--program", help="draw the last launch of this program; default: the last launch of any program")
  parser.add_argument("--device", type=int, default=0, help="device to draw; default: 0")
  parser.add_argument("--pod", help="take the roofs from this pod: v5e:4x4")
  parser.add_argument("--flops", type=float, help="peak rate, operations per second")
  parser.add_argument("--bandwidth", type=float, help="memory bandwidth, bytes per second")
  asked = parser.parse_args(words)
  try:
    flops, bandwidth = _roofs(asked.pod)
    draw = lambda events: step_picture.draw(*timeline.step_of(events, asked.program, asked.device),
                                            asked.flops or flops, asked.bandwidth or bandwidth)
    print(loads.read(asked.timeline, draw))
  except ValueError as error:
    return command.complain("step", str(error))
  return 0

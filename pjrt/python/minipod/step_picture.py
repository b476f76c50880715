"""Draws a step: the rates that kernels reach, and when kernels and collectives run."""

import dataclasses
import html
import math

from minipod import timeline
from minipod.report import seconds
from minipod.report import visible

WIDTH, LEFT, RIGHT, ROOFS, ROW = 1000, 70, 30, 420, 26
COLOURS = {"matmul": "#4477aa", "convolution": "#66ccee", "elementwise": "#228833", "reduction": "#ccbb44",
           "copy": "#bbbbbb", "collective": "#ee6677"}
OTHER = "#aa3377"


@dataclasses.dataclass
class Kernel:
  """The sums over all runs of one kernel: `seconds`, `flops` and `bytes`."""

  name: str
  place: str
  kind: str
  seconds: float
  flops: float
  bytes: float


def _colour(kind: str) -> str:
  return COLOURS.get(kind, OTHER)


def _kind(event: dict) -> str:
  return event["args"].get("class", event["cat"])


def kernels_of(events: list[dict]) -> list[Kernel]:
  """The kernels of a timeline that compute."""
  sums: dict[tuple, Kernel] = {}
  for e in events:
    args = e["args"]
    if args.get("flops", 0) > 0 and args.get("bytes", 0) > 0 and e["dur"] > 0:
      key = e["name"], args.get("file"), args.get("line"), args["flops"], args["bytes"]
      kernel = sums.setdefault(key, Kernel(e["name"], f"{key[1]}:{key[2]}", _kind(e), 0, 0, 0))
      kernel.seconds += e["dur"] * 1e-6
      kernel.flops += args["flops"]
      kernel.bytes += args["bytes"]
  return list(sums.values())


def kernels_of_report(program: dict) -> list[Kernel]:
  """The same for a program's rows in a report."""
  return [Kernel(op["name"], op["at"], op["class"], op["time"], op["flops"] * op["count"], op["bytes"] * op["count"])
          for op in program["ops"] if op.get("flops", 0) > 0 and op.get("bytes", 0) > 0 and op.get("count") and op["time"] > 0]


def _lanes_of(events):
  """(category, [events of a lane]); events in one lane do not overlap."""
  for category in sorted({e["cat"] for e in events}, key=lambda c: (c != "work", c)):
    lanes: list[list[dict]] = []
    for e in sorted((e for e in events if e["cat"] == category), key=lambda e: e["ts"]):
      lane = next((lane for lane in lanes if lane[-1]["ts"] + lane[-1]["dur"] <= e["ts"] + 1e-3), None)
      if lane is None:
        lanes.append(lane := [])
      lane.append(e)
    yield from ((category, lane) for lane in lanes)


class _Picture:
  def __init__(self, height):
    self.lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
                  'font-family="sans-serif" font-size="12">', '<rect width="100%" height="100%" fill="white"/>']

  def add(self, tag, title=None, text=None, **attributes):
    words = " ".join(f'{name.replace("_", "-")}="{value:.1f}"' if isinstance(value, float) else
                     f'{name.replace("_", "-")}="{html.escape(str(value))}"' for name, value in attributes.items())
    inside = f"<title>{html.escape(visible(title))}</title>" if title else html.escape(visible(text or ""))
    self.lines.append(f"<{tag} {words}>{inside}</{tag}>")

  def text(self, x, y, text, anchor="start"):
    self.add("text", text=text, x=float(x), y=float(y), text_anchor=anchor)

  def legend(self, kinds, y):
    at = float(LEFT)
    for kind in kinds:
      self.add("rect", x=at, y=y - 10.0, width=10, height=10, fill=_colour(kind))
      self.text(at + 14, y, kind)
      at += 30 + 7 * len(kind)

  def finish(self):
    return "\n".join([*self.lines, "</svg>"])


def _human(number: float, unit: str = "") -> str:
  power = min(max(int(math.floor(math.log10(number) / 3)), -4), 5)
  return f"{number / 1000**power:.3g} {'pnum kMGTP'[power + 4].strip()}{unit}".strip()


def _scale(values, begin: float, end: float):
  """The powers of ten around the values, and the position of a value between two places."""
  low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)) + 0.1)
  return range(low, high + 1), lambda value: begin + (math.log10(value) - low) / (high - low) * (end - begin)


def _draw_roofs(picture, kernels: list[Kernel], flops: float, bandwidth: float) -> None:
  columns, x = _scale([k.flops / k.bytes for k in kernels] + [flops / bandwidth], LEFT, WIDTH - RIGHT)
  rows, y = _scale([k.flops / k.seconds for k in kernels] + [flops], ROOFS - 40, 50)
  for power in columns:
    at = float(x(10.0**power))
    picture.add("line", x1=at, y1=float(y(10.0**rows[0])), x2=at, y2=float(y(10.0**rows[-1])), stroke="#eeeeee")
    picture.text(at, ROOFS - 22, _human(10.0**power), "middle")
  for power in rows:
    at = float(y(10.0**power))
    picture.add("line", x1=float(x(10.0**columns[0])), y1=at, x2=float(x(10.0**columns[-1])), y2=at, stroke="#eeeeee")
    picture.text(LEFT - 6, at + 4, _human(10.0**power), "end")
  picture.text(WIDTH / 2, ROOFS - 6, "operations per byte", "middle")
  picture.text(LEFT, 18, f"operations/s; roofs: {_human(flops, 'FLOP/s')}, {_human(bandwidth, 'B/s')};"
                         " a circle for each kernel, its area the share of the work")
  picture.legend(sorted({k.kind for k in kernels}), 36)
  ridge, begin = flops / bandwidth, max(10.0**columns[0], 10.0**rows[0] / bandwidth)
  points = [(begin, begin * bandwidth), (ridge, flops), (10.0**columns[-1], flops)]
  picture.add("polyline", points=" ".join(f"{x(a):.1f},{y(b):.1f}" for a, b in points), fill="none", stroke="#333333")
  total = sum(k.seconds for k in kernels)
  for k in sorted(kernels, key=lambda k: -k.seconds):
    title = (f"{k.name} at {k.place}: {k.seconds * 1e6:.1f} us, {100 * k.seconds / total:.1f} % of the work,"
             f" {_human(k.flops / k.seconds, 'FLOP/s')}")
    picture.add("circle", title=title, cx=float(x(k.flops / k.bytes)), cy=float(y(k.flops / k.seconds)),
                r=max(3.0, 40 * math.sqrt(k.seconds / total)), fill=_colour(k.kind), fill_opacity=0.5, stroke=_colour(k.kind))


def _draw_timeline(picture, lanes, duration: float, top: float) -> None:
  scale = (WIDTH - LEFT - RIGHT) / duration
  for i, (category, lane) in enumerate(lanes):
    y = float(top + 10 + i * ROW)
    picture.text(LEFT - 6, y + 15, category, "end")
    for e in lane:
      kind = _kind(e) if e["cat"] == "work" else e["cat"]
      picture.add("rect", title=f"{e['name']}: {e['dur']:.1f} us from {e['ts']:.1f} us on", x=LEFT + e["ts"] * scale,
                  y=y, width=max(e["dur"] * scale, 0.3), height=ROW - 6.0, fill=_colour(kind))
  picture.text(LEFT, top + 24 + len(lanes) * ROW, "0")
  picture.text(WIDTH - RIGHT, top + 24 + len(lanes) * ROW, seconds(duration * 1e-6), "end")


def roofline(kernels: list[Kernel], flops: float | None = None, bandwidth: float | None = None) -> str:
  """A circle for each kernel, below the roofs.  If the roofs are unknown, they are the best rates of the kernels."""
  flops = flops or max(k.flops / k.seconds for k in kernels)
  bandwidth = bandwidth or max(k.bytes / k.seconds for k in kernels)
  picture = _Picture(ROOFS)
  _draw_roofs(picture, kernels, flops, bandwidth)
  return picture.finish()


def draw(launch: dict, events: list[dict], flops: float | None = None, bandwidth: float | None = None) -> str:
  """The roofline of a step's kernels, and below it when a device does what (timeline.step_of).

  Raises:
    timeline.Nothing: there is nothing to draw.
  """
  kernels = kernels_of(events)
  if not kernels or launch["dur"] <= 0:
    raise timeline.Nothing("no kernel of this launch computes anything")
  lanes = list(_lanes_of(events))
  picture = _Picture(ROOFS + 40 + len(lanes) * ROW)
  _draw_roofs(picture, kernels, flops or max(k.flops / k.seconds for k in kernels),
              bandwidth or max(k.bytes / k.seconds for k in kernels))
  _draw_timeline(picture, lanes, launch["dur"], ROOFS)
  return picture.finish()

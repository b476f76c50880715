#!/usr/bin/env python3
"""Draws a step as a picture: which kernels reach what, and when they and the collectives are under way.

    MINIPOD_TIME=model MINIPOD_TRACE=t.json MINIPOD_TOPOLOGY=v5e:4x4 python train.py
    tools/step_picture.py --program jit_train_step --flops 197e12 --bandwidth 819e9 t.json > step.svg

The upper half is a roofline: a circle for each kernel, its operations for a byte to the right, its operations in a second
upwards, its area its share of the time.  Without --flops and --bandwidth the roofs are the best that a kernel reaches.
The lower half is the last launch of the program on a device (--device 0), with rows for work, collectives and whatever
else the timeline has; what is under way at the same time stands in rows of its own.
"""

import argparse
import collections
import html
import math
import sys

from link_loads import read_events

WIDTH, LEFT, ROOFS, ROW = 1000, 70, 420, 26
COLOURS = {"matmul": "#4477aa", "convolution": "#66ccee", "elementwise": "#228833", "reduction": "#ccbb44",
           "copy": "#bbbbbb", "collective": "#ee6677"}
OTHER = "#aa3377"


def colour(event):
  kind = event["args"].get("class", event["cat"])
  return COLOURS.get(kind, COLOURS["collective"] if event["cat"] == "collective" else OTHER)


def step_of(events, program, device):
  """The last launch of the program on a device, and what the device does in it, from the launch's beginning on."""
  rows = {(e["pid"], e["tid"]) for e in events
          if e["name"] == "thread_name" and e["args"]["name"].split(",")[0] == f"device {device}"}
  own = [e for e in events if e["ph"] == "X" and (e["pid"], e["tid"]) in rows]
  launches = [e for e in own if e["cat"] == "launch" and program in (None, e["name"])]
  if not launches:
    raise SystemExit(f"no launches{f' of {program}' if program else ''} on device {device} in this timeline")
  launch = max(launches, key=lambda e: e["ts"])
  inside = [e for e in own if e["cat"] != "launch" and launch["ts"] <= e["ts"] <= launch["ts"] + launch["dur"]]
  return launch, [{**e, "ts": e["ts"] - launch["ts"]} for e in inside]


def kernels_of(events):
  """Of each kernel that computes: (name, place, its first event, microseconds, operations, bytes)."""
  sums = collections.OrderedDict()
  for e in events:
    args = e["args"]
    if args.get("flops", 0) > 0 and args.get("bytes", 0) > 0 and e["dur"] > 0:
      row = sums.setdefault((e["name"], args.get("file"), args.get("line"), args["flops"], args["bytes"]), [e, 0, 0, 0])
      for i, more in enumerate((e["dur"], args["flops"], args["bytes"]), 1):
        row[i] += more
  return [(name, f"{file}:{line}", *row) for (name, file, line, *_), row in sums.items()]


def lanes_of(events):
  """(category, [events of a lane]): in a lane nothing is at the same time."""
  for category in sorted({e["cat"] for e in events}, key=lambda c: (c != "work", c)):
    lanes = []
    for e in sorted((e for e in events if e["cat"] == category), key=lambda e: e["ts"]):
      lane = next((lane for lane in lanes if lane[-1]["ts"] + lane[-1]["dur"] <= e["ts"] + 1e-3), None)
      if lane is None:
        lanes.append(lane := [])
      lane.append(e)
    yield from ((category, lane) for lane in lanes)


class Picture:
  def __init__(self, height):
    self.lines = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
                  'font-family="sans-serif" font-size="12">', '<rect width="100%" height="100%" fill="white"/>']

  def add(self, tag, title=None, text=None, **attributes):
    words = " ".join(f'{name.replace("_", "-")}="{value:.1f}"' if isinstance(value, float) else
                     f'{name.replace("_", "-")}="{html.escape(str(value))}"' for name, value in attributes.items())
    inside = f"<title>{html.escape(title)}</title>" if title else html.escape(text or "")
    self.lines.append(f"<{tag} {words}>{inside}</{tag}>")

  def text(self, x, y, text, anchor="start"):
    self.add("text", text=text, x=float(x), y=float(y), text_anchor=anchor)

  def finish(self):
    return "\n".join([*self.lines, "</svg>"])


def human(number, unit):
  power = min(max(int(math.floor(math.log10(number) / 3)), -4), 5)
  return f"{number / 1000**power:.3g} {'pnum kMGTP'[power + 4].strip()}{unit}"


def draw_roofs(picture, kernels, flops, bandwidth):
  intensities = [ops / size for *_, ops, size in kernels] + [flops / bandwidth]
  rates = [ops / (dur * 1e-6) for _, _, _, dur, ops, _ in kernels] + [flops]
  low_x, high_x = (math.floor(math.log10(min(intensities))), math.ceil(math.log10(max(intensities)) + 0.1))
  low_y, high_y = (math.floor(math.log10(min(rates))), math.ceil(math.log10(max(rates)) + 0.1))
  x = lambda v: LEFT + (math.log10(v) - low_x) / (high_x - low_x) * (WIDTH - LEFT - 20)
  y = lambda v: ROOFS - 40 - (math.log10(v) - low_y) / (high_y - low_y) * (ROOFS - 70)
  for power in range(low_x, high_x + 1):
    picture.add("line", x1=x(10.0**power), y1=y(10.0**low_y), x2=x(10.0**power), y2=y(10.0**high_y), stroke="#eeeeee")
    picture.text(x(10.0**power), ROOFS - 22, f"{10.0**power:g}", "middle")
  for power in range(low_y, high_y + 1):
    picture.add("line", x1=x(10.0**low_x), y1=y(10.0**power), x2=x(10.0**high_x), y2=y(10.0**power), stroke="#eeeeee")
    picture.text(LEFT - 6, y(10.0**power) + 4, human(10.0**power, ""), "end")
  picture.text(WIDTH / 2, ROOFS - 6, "operations for a byte", "middle")
  picture.text(LEFT, 18, f"operations/s; roofs: {human(flops, 'FLOP/s')}, {human(bandwidth, 'B/s')}")
  ridge, begin = flops / bandwidth, max(10.0**low_x, 10.0**low_y / bandwidth)
  points = [(begin, begin * bandwidth), (ridge, flops), (10.0**high_x, flops)]
  picture.add("polyline", points=" ".join(f"{x(a):.1f},{y(b):.1f}" for a, b in points), fill="none", stroke="#333333")
  total = sum(dur for _, _, _, dur, *_ in kernels)
  for name, place, event, dur, ops, size in sorted(kernels, key=lambda k: -k[3]):
    title = f"{name} at {place}: {dur:.1f} us, {100 * dur / total:.1f} % of the work, {human(ops / dur * 1e6, 'FLOP/s')}"
    picture.add("circle", title=title, cx=x(ops / size), cy=y(ops / (dur * 1e-6)),
                r=max(3.0, 40 * math.sqrt(dur / total)), fill=colour(event), fill_opacity=0.5, stroke=colour(event))


def draw_timeline(picture, lanes, duration):
  scale = (WIDTH - LEFT - 20) / duration
  for i, (category, lane) in enumerate(lanes):
    top = float(ROOFS + 10 + i * ROW)
    picture.text(LEFT - 6, top + 15, category, "end")
    for e in lane:
      picture.add("rect", title=f"{e['name']}: {e['dur']:.1f} us from {e['ts']:.1f} us on", x=LEFT + e["ts"] * scale,
                  y=top, width=max(e["dur"] * scale, 0.3), height=ROW - 6.0, fill=colour(e))
  picture.text(LEFT, ROOFS + 24 + len(lanes) * ROW, "0")
  picture.text(WIDTH - 20, ROOFS + 24 + len(lanes) * ROW, f"{duration:.1f} us", "end")


def main():
  parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("timeline")
  parser.add_argument("--program", help="which program's last launch; any")
  parser.add_argument("--device", type=int, default=0)
  parser.add_argument("--flops", type=float, help="the peak rate, operations/s")
  parser.add_argument("--bandwidth", type=float, help="of the memory, bytes/s")
  arguments = parser.parse_args()
  launch, events = step_of(read_events(arguments.timeline), arguments.program, arguments.device)
  kernels = kernels_of(events)
  if not kernels:
    raise SystemExit("no kernel of this launch computes anything")
  flops = arguments.flops or max(ops / dur * 1e6 for _, _, _, dur, ops, _ in kernels)
  bandwidth = arguments.bandwidth or max(size / dur * 1e6 for _, _, _, dur, _, size in kernels)
  lanes = list(lanes_of(events))
  picture = Picture(ROOFS + 40 + len(lanes) * ROW)
  draw_roofs(picture, kernels, flops, bandwidth)
  draw_timeline(picture, lanes, launch["dur"])
  print(picture.finish())


if __name__ == "__main__":
  sys.exit(main())

#!/usr/bin/env python3
"""Draws the picture of the README and of the site's front page: a training step of the cookbook on a described pod.

    tools/site/front_picture.py >tools/site/pages/front.svg

The program is the one on pages/cookbook/mesh.md.  `minipod topo --svg --loads` draws the pod with the loads of its
links, and `minipod step` the timeline of a device.  The bars are rows of the program's report.
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET

import blocks

PAGE = pathlib.Path(__file__).parent / "pages/cookbook/mesh.md"
POD, SCRIPT, PROGRAM = "v5e:4x4", "train.py", "jit_train_step"
SVG = "{http://www.w3.org/2000/svg}"
WIDTH, HEIGHT, GREY, INK, PALE = 1000, 520, "#5b6b7b", "#2c3e50", "#eef1f4"
COLOURS = {"matmul": "#4477aa", "elementwise": "#228833", "reduction": "#ccbb44", "copy": "#bbbbbb"}
COLLECTIVE, OTHER = "#ee6677", "#aa3377"
ROOFS = 424  # `minipod step` draws a roofline above this line, and the timeline below it


def command(words: list[str], folder: pathlib.Path, **variables: str) -> str:
  return subprocess.run([sys.executable, *words], cwd=folder, check=True, text=True, stdout=subprocess.PIPE,
                        env=blocks.environment() | variables).stdout


def rows_of(report: str) -> list[tuple[str, str, str, float]]:
  """(name, work or collective, time, percent) of each row of a report by axis."""
  found = re.findall(r"^  (\S.*?) +(work|collective) +([\d.]+ \w+) +([\d.]+) %$", report, re.MULTILINE)
  return [(what, kind, time, float(share)) for what, kind, time, share in found]


def text(x: float, y: float, words: str, size: int = 13, colour: str = INK, more: str = "") -> ET.Element:
  # Inline styles, because the style sheet in the picture of the pod applies to the whole of this picture.
  made = ET.Element(f"{SVG}text", {"x": f"{x:g}", "y": f"{y:g}", "style": f"font-size:{size}px;fill:{colour};{more}"})
  made.text = words
  return made


def bar(x: float, y: float, width: float, colour: str) -> ET.Element:
  return ET.Element(f"{SVG}rect", {"x": f"{x:g}", "y": f"{y:g}", "width": f"{width:.1f}", "height": "20", "fill": colour})


def bars(rows: list[tuple[str, str, str, float]], x: float, y: float, width: float) -> list[ET.Element]:
  made = []
  for i, (what, kind, time, share) in enumerate(rows):
    top, long = y + 28 * i, width * share / 100
    colour = COLLECTIVE if kind == "collective" else COLOURS.get(what, OTHER)
    made += [text(x + 170, top + 14, what, more="text-anchor:end"), bar(x + 180, top, long, colour),
             text(x + 186 + long, top + 14, f"{share:.1f} %, {time}", 12, GREY)]
  return made


def memory(run: dict, x: float, y: float, width: float) -> list[ET.Element]:
  """The memory that the program needs on a device."""
  [program] = [each for each in run["programs"] if each["name"] == PROGRAM]
  needed, there = program["memory"]["bytes"], run["device_memory"]
  words = f"yes: {needed / 2**30:.1f} of {there / 2**30:.1f} GiB per device"
  return [text(x + 170, y + 14, "memory", more="text-anchor:end"), bar(x + 180, y, width, PALE),
          bar(x + 180, y, width * needed / there, COLOURS["matmul"]), text(x + 186 + width * needed / there, y + 14, words, 12, GREY)]


def placed(picture: ET.Element, x: float, y: float, width: float, height: float, box: str) -> ET.Element:
  """A picture inside another one: the part of it in `box`, at a position."""
  inner = ET.Element(f"{SVG}svg", {"x": str(x), "y": str(y), "width": str(width), "height": str(height), "viewBox": box,
                             **{name: picture.get(name) for name in ("font-family", "font-size") if picture.get(name)}})
  inner.extend(picture)
  return inner


def time_line(step: ET.Element) -> ET.Element:
  """A picture of a step without its roofline."""
  for element in list(step):
    if float(element.get("y", 0)) < ROOFS:
      step.remove(element)
  return step


def without_heading(pod: ET.Element) -> ET.Element:
  for child in list(pod):
    if child.tag == f"{SVG}text" and float(child.get("y", 99)) < 40:
      pod.remove(child)
  return pod


def picture(report: str, run: dict, pod: ET.Element, step: ET.Element) -> str:
  length = [each.text for each in step if each.tag == f"{SVG}text"][-1]
  whole = ET.Element(f"{SVG}svg", {"viewBox": f"0 0 {WIDTH} {HEIGHT}", "width": str(WIDTH), "height": str(HEIGHT),
                                   "font-family": "sans-serif"})
  whole.append(ET.Element(f"{SVG}rect", {"width": "100%", "height": "100%", "fill": "white"}))
  whole.append(text(24, 34, f"One training step on 16 TPU v5e chips, as minipod predicts it: {length}", 18, more="font-weight:bold"))
  whole.append(text(24, 74, "How busy is each link?", more="font-weight:bold"))
  whole.append(placed(without_heading(pod), 8, 76, 510, 307, "12 36 510 307"))
  whole.append(text(510, 74, "Where does the time go?", more="font-weight:bold"))
  rows = [row for row in rows_of(report) if row[3] >= 1]
  whole.extend(bars(rows, 480, 92, 320))
  below = 92 + 28 * len(rows) + 40
  whole.append(text(510, below, "Does it fit?", more="font-weight:bold"))
  whole.extend(memory(run, 480, below + 18, 320))
  whole.append(text(24, HEIGHT - 92, "What does a device do, and when?", more="font-weight:bold"))
  whole.append(placed(time_line(step), 0, HEIGHT - 82, WIDTH, 76, f"0 {ROOFS} {WIDTH} 76"))
  ET.register_namespace("", SVG[1:-1])
  return re.sub(r"(?<=>)(?=<(?:rect|text|line|svg|g|circle)\b)", "\n", ET.tostring(whole, encoding="unicode")) + "\n"


def make() -> str:
  [program] = [block.text for block in blocks.read(PAGE.read_text()) if block.file == SCRIPT]
  with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    (folder / SCRIPT).write_text(program)
    report = command([SCRIPT], folder, MINIPOD_TOPOLOGY=POD, MINIPOD_TIME="model", MINIPOD_VALUES="shapes",
                     MINIPOD_TRACE="t.json", MINIPOD_DUMP="dump", BY_AXIS="1")
    [run] = [json.loads(path.read_text()) for path in (folder / "dump").glob("*.time.json")]
    verb = lambda *words: ET.fromstring(command(["-m", "minipod", *words], folder))
    pod = verb("topo", "--svg", "--loads", "t.json", POD)
    return picture(report, run, pod, verb("step", "t.json", "--program", PROGRAM, "--pod", POD))


if __name__ == "__main__":
  print(__doc__ if len(sys.argv) > 1 else make(), end="")

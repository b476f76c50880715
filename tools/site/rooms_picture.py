"""Draws the rooms of the C code by what they may include: each room is above all rooms that it includes
(tests/layers.py).
"""

import html
import sys

from c_lists import ROOT

sys.path.insert(0, str(ROOT / "tests"))
import layers

WIDTH, HEIGHT, GAP, LEFT = 104, 26, 8, 12
COLOURS = {"sim": "#dbe7f5", "topology": "#e2f0d9", "collectives": "#fbe5d6", "pjrt": "#ede2f4"}


def group(room: str) -> str:
  """The box of a room: the rooms of a folder at the second level share one."""
  return "/".join(room.split("/")[:2])


def levels() -> dict[str, int]:
  """For each box: the height of the longest chain of boxes below it."""
  knows = {}
  for room, known in layers.KNOWS.items():
    knows.setdefault(group(room), set()).update(group(each) for each in known)
  made = {}

  def level(name: str, above: tuple) -> int:
    # Rooms include each other in one direction only.  Folders of rooms may do so in both, and are then side by side.
    if name not in made:
      below = [level(each, (*above, name)) for each in knows[name] if each != name and each not in above]
      if above and any(each in above for each in knows[name]):
        return max(below, default=-1) + 1
      made[name] = max(below, default=-1) + 1
    return made[name]

  for name in knows:
    level(name, ())
  return made


def picture() -> str:
  floors = {}
  for name, level in levels().items():
    floors.setdefault(level, []).append(name)
  widest = max(map(len, floors.values()))
  width = 2 * LEFT + widest * (WIDTH + GAP)
  height = 2 * LEFT + len(floors) * (HEIGHT + GAP)
  lines = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
           ' font-family="sans-serif" font-size="11">', f'<rect width="{width}" height="{height}" fill="#ffffff"/>']
  for floor, names in floors.items():
    y = height - LEFT - (floor + 1) * (HEIGHT + GAP)
    x = (width - len(names) * (WIDTH + GAP)) / 2
    for name in sorted(names):
      colour = COLOURS[name.split("/")[0]]
      lines.append(f'<rect x="{x:.0f}" y="{y}" width="{WIDTH}" height="{HEIGHT}" rx="4" fill="{colour}" stroke="#888"/>'
                   f'<text x="{x + WIDTH / 2:.0f}" y="{y + 17}" text-anchor="middle">{html.escape(name)}</text>')
      x += WIDTH + GAP
  return "\n".join([*lines, "</svg>", ""])


"""The ratios as a picture: a row per case, a dot per figure, on a logarithmic scale."""

import html
import math

import report

ROW = 15
LEFT = 280
WIDTH = 620  # of the scale
TOP = 64
MARKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100)

STYLE = """
  svg { color-scheme: light dark; font: 11px sans-serif; background: var(--paper); }
  svg { --paper: #fff; --ink: #222; --faint: #ddd; --wall: #0a6; --processor: #27c; --bytes: #c60; }
  @media (prefers-color-scheme: dark) {
    svg { --paper: #161616; --ink: #ddd; --faint: #383838; --wall: #3d9; --processor: #7af;
          --bytes: #fa5; }
  }
  text { fill: var(--ink); } .paper { fill: var(--paper); }
  .section { font-weight: bold; } .end { text-anchor: end; } .mid { text-anchor: middle; }
  .faint { stroke: var(--faint); } .one { stroke: var(--ink); }
  .wall { fill: none; stroke: var(--wall); stroke-width: 1.5; }
  .processor { fill: var(--processor); } .bytes { fill: var(--bytes); }
"""


def dot(figure, x, y):
  """Each figure has a shape of its own, so that colours are not needed."""
  if figure == "bytes":
    return f'<path class="bytes" d="M{x:.1f} {y - 4}l4 4l-4 4l-4 -4z"/>'
  return f'<circle class="{figure}" cx="{x:.1f}" cy="{y}" r="{4 if figure == "wall" else 3}"/>'


class Scale:
  """Where a ratio is; those beyond the marks are at the edge."""

  def __init__(self, values):
    inside = [min(max(value, MARKS[0]), MARKS[-1]) for value in [*values, 0.5, 2]]
    self.marks = [m for i, m in enumerate(MARKS)
                  if MARKS[min(i + 1, len(MARKS) - 1)] >= min(inside)
                  and MARKS[max(i - 1, 0)] <= max(inside)]

  def __call__(self, value):
    low, high = math.log(self.marks[0]), math.log(self.marks[-1])
    share = (math.log(max(value, 1e-9)) - low) / (high - low)
    return LEFT + WIDTH * min(max(share, 0), 1)


def grid(scale, bottom):
  for mark in scale.marks:
    x = scale(mark)
    yield (f'<line class="{"one" if mark == 1 else "faint"}" x1="{x:.1f}" x2="{x:.1f}" '
           f'y1="{TOP - 6}" y2="{bottom}"/>')
    yield f'<text class="mid" x="{x:.1f}" y="{TOP - 12}">{mark:g}</text>'


def legend():
  yield ('<text class="section" x="10" y="20">minipod / JAX CPU: left of 1, minipod takes '
         'less</text>')
  yield '<text x="10" y="36">A mark at an edge stands for all beyond it.</text>'
  for figure, x in zip(report.FIGURES, (LEFT + 250, LEFT + 350, LEFT + 480)):
    yield dot(figure, x, 16)
    yield f'<text x="{x + 8}" y="20">{"memory" if figure == "bytes" else figure + " time"}</text>'


def rows(table, scale):
  """The lines of the picture, and how far down they go."""
  y, lines = TOP, []
  for section, cases in group(table).items():
    y += ROW + 6
    lines.append(f'<text class="section" x="10" y="{y + 4}">{section}</text>')
    for name, ratios in cases.items():
      y += ROW
      lines.append(f'<text class="end" x="{LEFT - 10}" y="{y + 4}">{html.escape(name)}</text>')
      lines += [dot(figure, scale(ratio), y) for figure, ratio in ratios.items()]
  return lines, y + ROW


def group(table):
  """The ratios of every case that has any, by section."""
  result = {}
  for name, row in table.items():
    if ratios := report.ratios(row):
      section, case = name.split("/", 1)
      result.setdefault(section, {})[case] = ratios
  return result


def svg(table):
  scale = Scale([ratio for row in table.values() for ratio in report.ratios(row).values()])
  lines, bottom = rows(table, scale)
  width, height = LEFT + WIDTH + 30, bottom + 10
  return "\n".join([
      f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
      f'viewBox="0 0 {width} {height}">',
      f"<style>{STYLE}</style>", f'<rect class="paper" width="{width}" height="{height}"/>',
      *legend(), *grid(scale, bottom), *lines, "</svg>\n"])

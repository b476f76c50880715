"""The findings at the end of a time report: suggestions, each with its share of the step and its line."""

import html
import textwrap

from minipod import report as reports

LEAST = 0.02  # share of a program's time below which a finding is left out
PROGRAM = 0.05  # share of the time of all programs below which a program is left out
PLACE = 80  # characters of a line's path; of a longer path, the end is shown


def _place(row: dict) -> str:
  name, _, place = row["at"].rpartition(" at ")
  shown = reports.shortened(place, PLACE)
  return f"{shown} ({name})" if name else shown


def _repeated(program: dict, whole: float) -> list[tuple[float, str]]:
  """Combines all work that devices repeat into one finding, with the place that has the largest part."""
  rows = [row for row in program.get("findings", []) if row["finding"] == "repeated"]
  time = sum(row["time"] for row in rows)
  if not rows or time < LEAST * whole:
    return []
  most = rows[0]
  elsewhere = f" and {len(rows) - 1} more" if len(rows) > 1 else ""
  return [(time, f"repeated work: {most['devices']} devices compute the same values: {_place(most)}{elsewhere}")]


_TEXTS = {
    "batch": "{what} is replicated on {devices} devices, which all repeat the same matmuls; shard it like their other operand: {place}",
    "attention": "attention without a fused kernel, {what} go through memory: {place}",
    "reduce_scatter": "each device uses only its own part of this all_reduce; a reduce_scatter sends half as much: {place}",
    "blocks": "overhead of small blocks: {what}; larger blocks need fewer steps: {place}",
}


def _of_program(program: dict, whole: float) -> list[tuple[float, str]]:
  found = _repeated(program, whole)
  for row in program.get("findings", []):
    if row["finding"] in _TEXTS and row["time"] >= LEAST * whole:
      found.append((row["time"], _TEXTS[row["finding"]].format(what=row["what"], devices=row["devices"], place=_place(row))))
  return found


def _exposed(program: dict, whole: float, mesh) -> list[tuple[float, str]]:
  """Collectives that devices wait for, by mesh axis, each with the line of the longest one."""
  sums: dict[str, float] = {}
  longest: dict[str, dict] = {}
  for row in program.get("collectives", []):
    axis = f"{row['kind']} along {reports.axes(row, mesh)}"
    sums[axis] = sums.get(axis, 0.0) + row["exposed"]
    if axis not in longest or row["exposed"] > longest[axis]["exposed"]:
      longest[axis] = row
  return [(time, f"exposed: {axis}, most of it at {_place(longest[axis])}") for axis, time in sums.items()
          if time >= LEAST * whole]


def of_program(program: dict, mesh=None) -> list[tuple[float, str]]:
  """Findings of a program with their shares of its time, the largest first.  `mesh`: the result of `report.axes_of`."""
  whole = reports.whole(program)
  found = [*_of_program(program, whole), *_exposed(program, whole, mesh)] if whole else []
  return [(time / whole, text) for time, text in sorted(found, key=lambda one: -one[0])]


def slow_devices(report: dict) -> list[str]:
  """Devices that work longer than the rest, if they are few."""
  return [f"device {row['device']} works {row['times']:.1f} times as long as the others"
          for row in report.get("findings", []) if row["finding"] == "slow"]


def page(program: dict, mesh=None) -> str:
  """Formats the findings of a program for an HTML page."""
  rows = "".join(f"<li>{100 * share:.1f} %: {html.escape(text)}</li>" for share, text in of_program(program, mesh))
  return f"<p>findings</p><ul>{rows}</ul>" if rows else ""


def _wrapped(share: str, text: str) -> list[str]:
  # A path is never truncated.
  return textwrap.wrap(text, reports.COLUMNS, initial_indent=f"  {share:>7}  ", subsequent_indent=" " * 11,
                       break_long_words=False, break_on_hyphens=False)


def lines(report: dict, mesh=None) -> list[str]:
  """Formats the end of the text report; empty if nothing was found."""
  in_all = reports.all_seconds(report)
  out = []
  for program in report["programs"]:
    found = of_program(program, mesh) if program["seconds"] >= PROGRAM * in_all else []
    if found:
      out += ["", f"findings, as shares of the time of {reports.title(program)}"]
    for share, text in found:
      out += _wrapped(f"{100 * share:.1f} %", text)
  if slow := slow_devices(report):
    out += ["", "findings about devices"]
    for text in slow[:reports.PROGRAMS]:
      out += _wrapped("", text)
  return out

"""Plots the ratios: a row per case, a mark per measured quantity, on a logarithmic scale."""

import pathlib

import report

# Each quantity has its own shape, so that the plot is readable without colours.
MARKS = {"wall": {"marker": "o", "markerfacecolor": "none", "color": "#00aa66", "label": "wall time"},
         "processor": {"marker": ".", "color": "#2277cc", "label": "processor time"},
         "bytes": {"marker": "D", "markersize": 5, "color": "#cc6600", "label": "memory"}}
LEAST, MOST = 0.01, 100


def draw(table: dict, file: pathlib.Path) -> None:
  """Writes the picture, in the format that the file's ending names."""
  from matplotlib.figure import Figure

  cases = {name: ratios for name, row in table.items() if (ratios := report.ratios(row))}
  picture = Figure(figsize=(9, 1.4 + 0.17 * len(cases)), layout="constrained")
  axes = picture.subplots()
  for figure, mark in MARKS.items():
    points = [(min(max(ratios[figure], LEAST), MOST), y) for y, ratios in enumerate(cases.values()) if figure in ratios]
    axes.plot(*zip(*points) if points else ([], []), linestyle="none", **mark)
  axes.axvline(1, color="black", linewidth=0.8)
  axes.set(xscale="log", ylim=(len(cases), -1), title="minipod / JAX CPU: left of 1, minipod takes less",
           xlabel=f"ratio; a mark at {LEAST:g} or {MOST:g} may stand for one beyond")
  axes.set_yticks(range(len(cases)), cases, fontsize=7)
  axes.grid(color="#dddddd")
  axes.legend(loc="upper right", fontsize=7)
  picture.savefig(file)

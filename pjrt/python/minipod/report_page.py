"""The time report as one page of HTML without anything beside it: tables by line, layer, class and axis."""

import html

from minipod import report

_COLOURS = {"work": "#3b7dd8", "collective": "#d8733b", "waiting": "#b9a13a", "idle": "#c8c8c8"}
_STYLE = """
body { font: 14px/1.4 system-ui, sans-serif; margin: 2em auto; max-width: 70em; padding: 0 1em; color: #222 }
table { border-collapse: collapse; width: 100%; margin: .5em 0 1.5em } th { text-align: left; font-weight: 600 }
td, th { padding: .15em .6em; border-bottom: 1px solid #e4e4e4 } td.n, th.n { text-align: right; white-space: nowrap }
td.name { font-family: ui-monospace, monospace; overflow-wrap: anywhere }
.bar { display: flex; height: 1.2em; margin: .4em 0 } .bar span { display: block }
.key { margin-right: 1.2em } .key i { display: inline-block; width: .8em; height: .8em; margin-right: .3em }
"""


def _row(cells, tag="td") -> str:
  kinds = ["name"] + ["n"] * (len(cells) - 1)
  return "<tr>" + "".join(f'<{tag} class="{kind}">{html.escape(str(cell))}</{tag}>'
                          for kind, cell in zip(kinds, cells)) + "</tr>"


def _table(head, rows) -> str:
  return f"<table>{_row(head, 'th')}{''.join(map(_row, rows))}</table>"


def _bar(program: dict) -> str:
  whole = report.whole(program) or 1
  parts = [(what, program[what]) for what in _COLOURS if program[what] > 0]
  bar = "".join(f'<span style="width:{100 * time / whole:.2f}%;background:{_COLOURS[what]}"></span>'
                for what, time in parts)
  keys = "".join(f'<span class="key"><i style="background:{_COLOURS[what]}"></i>{what}'
                 f" {report.share(time, whole)}</span>" for what, time in parts)
  return f'<div class="bar">{bar}</div><div>{keys}</div>'


def _program(described: dict, program: dict, mesh, tokens) -> str:
  parts = [f"<h2>{html.escape(report.title(program))}</h2>",
           f"<p>{html.escape('; '.join(report.facts(described, program, tokens)))}</p>", 
           *(f"<p>{html.escape(line)}</p>" for line in report.guesses(program)), _bar(program)]
  for by in report.GROUPS:
    each = max(1, program["runs"])
    rows = [(name, what, report.seconds(time / each), report.share(time, report.whole(program)))
            for name, what, time in report.table(program, by, mesh)]
    parts.append(_table((f"by {by}", "spent in", "of a device in a launch", "share"), rows))
  return "".join(parts)


def page(described: dict, mesh=None, tokens: float | None = None) -> str:
  """The page of one client's report; arguments as those of `report.summary`."""
  known = report.axes_of(mesh) if mesh is not None else None
  whole = sum(program["seconds"] for program in described["programs"])
  head = html.escape(f"{described['pod']}: {described['num_devices']} devices,"
                     f" {report.seconds(described['seconds'])} of virtual time")
  programs = _table(("program", "launches", "each", "in all", "share"), [
      (program["name"], program["launches"], report.seconds(report.each_launch(program)),
       report.seconds(program["seconds"]), report.share(program["seconds"], whole))
      for program in described["programs"]])
  shown = "".join(_program(described, program, known, tokens)
                  for program in described["programs"][:report.PROGRAMS])
  return (f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{head}</title><style>{_STYLE}</style>'
          f"<h1>{head}</h1>{programs}{shown}</html>\n")

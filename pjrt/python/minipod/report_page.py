"""The time report as one HTML page without other files: for each program a picture, and one table at a time."""

import html

from minipod import findings
from minipod import report
from minipod import report_eager
from minipod import step_picture

_COLOURS = {"work": "#3b7dd8", "collective": "#d8733b", "waiting": "#b9a13a", "idle": "#c8c8c8"}
# Tables are chosen without scripts: the checked radio button of a group shows the table that follows its label.
_STYLE = """
.minipod { font: 14px/1.4 system-ui, sans-serif; margin: 2em auto; max-width: 70em; padding: 0 1em; color: #222; background: #fff }
.minipod table { border-collapse: collapse; width: 100%; table-layout: fixed; margin: .5em 0 1.5em }
.minipod th { text-align: left; font-weight: 600 } .minipod td, .minipod th { padding: .15em .6em; border-bottom: 1px solid #e4e4e4 }
.minipod td.n, .minipod th.n { text-align: right; white-space: nowrap; width: 9em }
.minipod td.name { font-family: ui-monospace, monospace; overflow-wrap: anywhere; text-align: left }
.minipod .bar { display: flex; height: 1.2em; margin: .4em 0 } .minipod .bar span { display: block }
.minipod .key { margin-right: 1.2em } .minipod .key i { display: inline-block; width: .8em; height: .8em; margin-right: .3em }
.minipod summary { font-size: 1.25em; font-weight: 600; margin: .8em 0 .3em; cursor: pointer }
.minipod .tabs { display: flex; flex-wrap: wrap } .minipod .tabs > input { position: absolute; opacity: 0 }
.minipod .tabs > label { padding: .2em .9em; border: 1px solid #d0d7de; margin-right: -1px; cursor: pointer }
.minipod .tabs > input:checked + label { background: #3b7dd8; color: #fff }
.minipod .tabs > input:focus-visible + label { outline: 2px solid #222 }
.minipod .tabs > div { display: none; order: 1; width: 100% } .minipod .tabs > input:checked + label + div { display: block }
.minipod svg { max-width: 100%; height: auto }
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


def _inline(svg: str) -> str:
  """A picture as a part of the page; inside HTML it needs no XML namespace."""
  return svg.replace(' xmlns="http://www.w3.org/2000/svg"', "")


def _tabs(number: str, tabs: list[tuple[str, str]]) -> str:
  parts = []
  for i, (name, content) in enumerate(tabs):
    key = f"tab-{number}-{i}"
    parts.append(f'<input type="radio" name="tabs-{number}" id="{key}"{" checked" if i == 0 else ""}>'
                 f'<label for="{key}">{html.escape(name)}</label><div>{content}</div>')
  return f'<div class="tabs">{"".join(parts)}</div>'


def _table_by(program: dict, by: str, mesh) -> str:
  each = max(1, program["runs"])
  rows = [(name, what, report.seconds(time / each), report.share(time, report.whole(program)))
          for name, what, time in report.table(program, by, mesh)]
  return _table((f"by {by}", "spent in", "per device and launch", "share"), rows)


def _roofline(described: dict, program: dict) -> str:
  kernels = step_picture.kernels_of_report(program)
  if not kernels:
    return ""
  return step_picture.roofline(kernels, described["flops"].get("bf16"), described.get("memory_bandwidth"))


def _program(described: dict, program: dict, mesh, tokens, number: str, step: str | None) -> str:
  tabs = [(by, _table_by(program, by, mesh)) for by in report.GROUPS]
  if step:
    tabs.insert(0, ("step", _inline(step)))
  if picture := _roofline(described, program):
    tabs.append(("roofline", _inline(picture)))
  parts = [f"<p>{html.escape('; '.join(report.facts(described, program, tokens)))}</p>",
           *(f"<p>{html.escape(line)}</p>" for line in report.guesses(program)), _bar(program),
           findings.page(program, mesh), _tabs(number, tabs)]
  opened = " open" if program is described["programs"][0] else ""
  return f"<details{opened}><summary>{html.escape(report.title(program))}</summary>{''.join(parts)}</details>"


def body(described: dict, mesh=None, tokens: float | None = None, steps: dict[str, str] | None = None, key: str = "0") -> str:
  """The part of a page about one client's report, for use in any page; arguments as for `page`.

  With `key`, the tabs of several reports in one page stay independent.
  """
  known = report.axes_of(mesh) if mesh is not None else None
  described = report_eager.gather(described)
  head = html.escape(report.head(described))
  programs = _table(("program", "launches", "each", "in all", "share"), report.program_rows(described))
  shown = "".join(_program(described, program, known, tokens, f"{key}-{i}", (steps or {}).get(program["name"]))
                  for i, program in enumerate(report.split(described)[0]))
  notes = "".join(f"<p>{html.escape(line)}</p>" for line in report.notes(described))
  return f'<div class="minipod"><style>{_STYLE}</style><h1>{head}</h1>{notes}{programs}{shown}</div>'


def page(described: dict, mesh=None, tokens: float | None = None, steps: dict[str, str] | None = None) -> str:
  """The page of one client's report.  Arguments as for `report.summary`, and pictures of steps by program."""
  return (f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{html.escape(report.head(described))}</title>'
          f"{body(described, mesh, tokens, steps)}</html>\n")

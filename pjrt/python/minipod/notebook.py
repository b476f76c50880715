"""What notebooks show: reports as web pages, pods as pictures, and lines by their cells."""

import os
import sys

from minipod import report


class Report(str):
  """A report as text, which notebooks show as a web page."""

  _make_page = None

  @classmethod
  def of(cls, text: str, make_page) -> "Report":
    made = cls(text)
    made._make_page = make_page
    return made

  def _repr_html_(self) -> str | None:
    return self._make_page() if self._make_page else None

  def _repr_pretty_(self, printer, cycle) -> None:
    printer.text(str(self))

  def __reduce__(self):  # the user's process keeps the function that makes the page
    return str, (str(self),)


class Topology:
  """The pod that a line, a file or the environment describes: a table as text, and a picture in notebooks."""

  def __init__(self, pod: str | None = None, loads=None):
    self._words = [] if pod is None else [str(pod)]
    self._loads = [] if loads is None else ["--loads", os.fspath(loads)]
    self._text = self._ask()

  def _ask(self, *words: str) -> str:
    from minipod import command

    done = command.ask_library("topo", *words, *self._words)
    if done.returncode:
      raise ValueError(done.stderr.strip().removeprefix("minipod topo: "))
    return done.stdout

  @property
  def svg(self) -> str:
    """The picture, with coloured links if loads were given."""
    return self._ask("--svg", *self._loads)

  def __repr__(self) -> str:
    return self._text.rstrip("\n")

  def _repr_svg_(self) -> str:
    return self.svg


def used_pod() -> str | None:
  """The pod that `minipod.use` has chosen; None: the pod of the environment."""
  if "jax" not in sys.modules:
    return None
  options = getattr(sys.modules["jax"].config, "jax_pjrt_client_create_options", None)
  return options.get("topology") if isinstance(options, dict) else None


def _cells() -> dict[str, str]:
  """Maps the names of files that a notebook makes of its cells to names such as "In [3]"."""
  if "IPython" not in sys.modules:
    return {}
  shell = sys.modules["IPython"].get_ipython()
  known = getattr(getattr(shell, "compile", None), "_filename_map", None)  # IPython's own; nothing where it is gone
  return {str(file): f"In [{number}]" for file, number in known.items()} if isinstance(known, dict) else {}


def name_cells(value, cells: dict[str, str] | None = None):
  """A report in which lines of cells have the cells' names."""
  cells = _cells() if cells is None else cells
  if not cells:
    return value
  if isinstance(value, str):
    for file, cell in cells.items():
      value = value.replace(f"{file}:", f"{cell}:")
    return value
  if isinstance(value, list):
    return [name_cells(each, cells) for each in value]
  if isinstance(value, dict):
    return {key: name_cells(each, cells) for key, each in value.items()}
  return value


def html(reports: list[dict], mesh=None, tokens: float | None = None) -> str:
  """The reports of all clients, as parts of a page."""
  from minipod import report_page

  return "".join(report_page.body(each, mesh, tokens, key=f"r{os.urandom(4).hex()}{i}") for i, each in enumerate(reports))


def summary(reports: list[dict], by: str, mesh, tokens: float | None) -> Report:
  text = "\n\n".join(report.summary(each, by, mesh, tokens) for each in reports)
  return Report.of(text, lambda: html(reports, mesh, tokens))

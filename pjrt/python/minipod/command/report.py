"""`minipod report`: prints the time report of a run, or compares two runs."""

import contextlib
import pathlib

from minipod import command
from minipod import report
from minipod import report_file
from minipod import report_page
from minipod import step_picture
from minipod import timeline
from minipod.command import arguments
from minipod.command import loads


def _read(path: pathlib.Path) -> dict:
  try:
    return report.read_one(report_file.read_bytes(path))
  except ValueError as error:
    raise ValueError(f"{report.visible(str(path))}: no time report as JSON: {report.visible(str(error))}") from error


def _steps(described: dict, path: str, device: int) -> dict[str, str]:
  """A picture of a step of each program that computes anything in the timeline, where its name is not that of others."""
  roofs = described["flops"].get("bf16"), described.get("memory_bandwidth")

  def draw(events: list[dict]) -> dict[str, str]:
    found = {}
    for program in report.split(described)[0]:
      with contextlib.suppress(timeline.Nothing):
        if "number" not in program:
          found[program["name"]] = step_picture.draw(*timeline.step_of(events, program["name"], device), *roofs)
    return found

  return loads.read(path, draw)


def main(words: list[str]) -> int:
  parser = arguments.parser("report", "Prints the time report of a run (MINIPOD_DUMP=folder writes"
                            " <pid>.time.json), or compares two runs.")
  parser.add_argument("file", type=pathlib.Path, help="<pid>.time.json of a run")
  parser.add_argument("after", type=pathlib.Path, nargs="?", help="<pid>.time.json of another run, to compare it with the first")
  parser.add_argument("--by", choices=report.GROUPS, default="line", help="what a row is; default: line")
  parser.add_argument("--html", action="store_true", help="print the first as an HTML page with all groupings")
  parser.add_argument("--timeline", help="a timeline of the same run (MINIPOD_TRACE); the page then shows the last launch of each program")
  parser.add_argument("--device", type=int, default=0, help="device of the timeline; default: 0")
  parser.add_argument("--tokens", type=float, help="tokens per launch of the longest program, for tokens/s")
  asked = parser.parse_args(words)
  try:
    reports = [_read(path) for path in (asked.file, asked.after) if path]
    steps = _steps(reports[0], asked.timeline, asked.device) if asked.html and asked.timeline else None
  except ValueError as error:
    return command.complain("report", str(error))
  if len(reports) == 2:
    print(report.difference(*reports))
  elif asked.html:
    print(report_page.page(reports[0], tokens=asked.tokens, steps=steps), end="")
  else:
    print(report.summary(reports[0], asked.by, tokens=asked.tokens))
  return 0

"""`minipod report`: a time report that a run has left, for people; or two beside each other."""

import pathlib

from minipod import command
from minipod import report
from minipod import report_file
from minipod import report_page
from minipod.command import arguments


def _read(path: pathlib.Path) -> dict:
  try:
    return report.read_one(report_file.read_bytes(path))
  except ValueError as error:
    raise ValueError(f"{report.visible(str(path))}: no time report as JSON: {report.visible(str(error))}") from error


def main(words: list[str]) -> int:
  parser = arguments.parser("report", "A time report that a run has left (MINIPOD_DUMP=folder writes"
                            " <pid>.time.json), for people; or two of them beside each other.")
  parser.add_argument("file", type=pathlib.Path)
  parser.add_argument("after", type=pathlib.Path, nargs="?", help="another run, to compare it with")
  parser.add_argument("--by", choices=report.GROUPS, default="line")
  parser.add_argument("--html", action="store_true", help="the first as a page with all groupings")
  parser.add_argument("--tokens", type=float, help="that a launch of the longest program takes, for tokens/s")
  asked = parser.parse_args(words)
  try:
    reports = [_read(path) for path in (asked.file, asked.after) if path]
  except ValueError as error:
    return command.complain("report", str(error))
  if len(reports) == 2:
    print(report.difference(*reports))
  elif asked.html:
    print(report_page.page(reports[0], tokens=asked.tokens), end="")
  else:
    print(report.summary(reports[0], asked.by, tokens=asked.tokens))
  return 0

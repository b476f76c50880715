"""`minipod info`: prints versions, the pod, and every option with the source of its value."""

import json
import sys

import minipod
from minipod import command
from minipod.command import arguments
from minipod.command import installation


def options() -> list[dict[str, str]]:
  """The library's table of options, with the values of this environment.

  Raises:
    ValueError: one of them is wrong; the message is the library's.
  """
  asked = command.ask_library("options")
  if asked.returncode:
    raise ValueError(asked.stderr.strip().removeprefix("minipod options: "))
  sys.stderr.write(asked.stderr)
  return json.loads(asked.stdout)


def _facts() -> dict[str, object]:
  native, native_text = installation.native_code()
  mpi, mpi_text = installation.mpi()
  ucx, ucx_text = installation.ucx()
  numa, numa_text = installation.numa()
  return {"minipod": minipod.__version__, "library": minipod.library_path(),
          **installation.system(),
          "native_code": {"is_there": native, "by": native_text},
          "mpi": {"is_there": mpi, "by": mpi_text},
          "ucx": {"is_there": ucx, "by": ucx_text},
          "libnuma": {"is_there": numa, "by": numa_text},
          **{name: version for name, version in installation.packages().items() if version}}


def _show(value: object) -> str:
  if isinstance(value, dict):
    return ("yes: " if value["is_there"] else "no: ") + str(value["by"])
  return str(value)


def main(words: list[str]) -> int:
  parser = arguments.parser("info", "P" + __doc__.partition(": p")[2])
  parser.add_argument("pod", nargs="?", help="a line or file that describes a pod, instead of MINIPOD_TOPOLOGY")
  parser.add_argument("--json", action="store_true", help="print JSON")
  asked = parser.parse_args(words)
  try:
    table = options()
  except ValueError as error:
    return command.complain("info", str(error))
  pod = command.ask_library("topo", *(["--json"] if asked.json else []), *filter(None, [asked.pod]))
  if pod.returncode:
    return command.complain("info", pod.stderr.strip().removeprefix("minipod topo: "))
  if asked.json:
    print(json.dumps({**_facts(), "pod": json.loads(pod.stdout), "options": table}, indent=1))
    return 0
  print(arguments.columns([(name, _show(value)) for name, value in _facts().items()], ""))
  print(f"\n{pod.stdout.rstrip()}\n\noptions")
  print(arguments.columns([
      (row["variable"], row["value"] or "-", row["source"]) for row in table]))
  return 0

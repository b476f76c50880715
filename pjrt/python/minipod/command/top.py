"""`minipod top`: what the devices of running processes are doing.

Processes with a pod answer on a socket (pjrt/package/pjrt_top.h); those of other users do not.
"""

import json
import pathlib
import re
import socket
import sys
import time

from minipod import command
from minipod import report
from minipod.command import arguments

_SECONDS = 2.0  # that a process has for its answer
_ROWS = 16  # of one pod; more devices than these are folded where they do the same
_CLEAR = "\x1b[H\x1b[2J"


def processes() -> list[int]:
  """The processes that answer, of all users."""
  names = pathlib.Path("/proc/net/unix").read_text()
  return sorted({int(pid) for pid in re.findall(r"@minipod-top-(\d+)", names)})


def ask(pid: int) -> dict | None:
  """What a process says; None: it is gone, another user's, or does not answer."""
  said = b""
  try:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
      asking.settimeout(_SECONDS)
      asking.connect(f"\0minipod-top-{pid}")
      while part := asking.recv(1 << 16):
        said += part
    return report.only_visible(json.loads(said))
  except (OSError, ValueError):
    return None


def _size(count: int) -> str:
  return f"{count / 2**30:.1f} GiB" if count >= 2**30 else f"{count / 2**20:.1f} MiB"


def _does(device: dict) -> tuple[str, ...]:
  waits = f" at {device['at']}" if device["at"] else ""
  since = f" for {device['seconds']:.0f} s" if device.get("seconds", 0) >= 1 else ""
  return device["state"] + waits + since, device["program"]


class Memory:
  """Since when devices do what they do, of looks at them: as long as their program, place and count of launches stay."""

  def __init__(self):
    self._seen: dict[tuple, tuple[tuple, float]] = {}

  def note(self, said: dict, now: float) -> None:
    """Adds `seconds` to each device that was found busy with the same thing before."""
    for number, client in enumerate(said["clients"]):
      for device in client["devices"]:
        key = said["pid"], number, device["id"]
        does = device["state"], device["program"], device["at"], device["launches"]
        if self._seen.get(key, (None,))[0] != does:
          self._seen[key] = does, now
        elif device["state"] != "idle":
          device["seconds"] = now - self._seen[key][1]


def _folded(devices: list[dict]) -> list[list[dict]]:
  """Neighbours that do the same, together where there are many."""
  groups: list[list[dict]] = []
  for device in devices:
    if len(devices) > _ROWS and groups and _does(groups[-1][0]) == _does(device):
      groups[-1].append(device)
    else:
      groups.append([device])
  return groups


def _row(group: list[dict]) -> tuple[str, ...]:
  first, last = group[0], group[-1]
  most = max(group, key=lambda device: device["bytes"])
  name = str(first["id"]) if len(group) == 1 else f"{first['id']}-{last['id']}"
  peak = max(device["peak"] for device in group)
  does, program = _does(first)
  return (name, f"{_size(most['bytes'])} of {_size(most['limit'])}", _size(peak),
          str(max(device["launches"] for device in group)), str(max(device["queued"] for device in group)),
          program or "-", does)


def table(said: dict) -> str:
  """The answer of one process for people."""
  try:
    words = pathlib.Path(f"/proc/{said['pid']}/cmdline").read_bytes().split(b"\0")
    name = report.visible(b" ".join(words).decode(errors="replace").strip())
  except OSError:
    name = "?"
  clock = f", virtual time {said['virtual_seconds']:.3f} s" if "virtual_seconds" in said else ""
  lines = [f"process {said['pid']}: {name[:70]}{clock}"]
  for client in said["clients"]:
    part = f", process {client['process']} of {client['processes']}" if client["processes"] > 1 else ""
    faults = ", faults in force" if client["faults"] else ""
    lines.append(f"  {client['pod']}{part}{faults}")
    head = ("device", "memory", "peak", "launches", "queued", "program", "")
    lines.append(arguments.columns([head, *map(_row, _folded(client["devices"]))], "    "))
  return "\n".join(lines)


def main(words: list[str]) -> int:
  parser = arguments.parser("top", "Shows what the devices of your running processes are doing: the program that each runs,\n"
                            "the operation that it waits at, and its memory use.")
  parser.add_argument("pid", type=int, nargs="*", help="show only these processes; default: all of yours on this host")
  parser.add_argument("--once", action="store_true", help="print once and exit")
  parser.add_argument("--json", action="store_true", help="print once, as a JSON list of the processes' answers")
  parser.add_argument("--seconds", type=float, default=1.0, help="seconds between updates; default: 1")
  asked = parser.parse_args(words)
  memory = Memory()
  while True:
    found = [said for said in map(ask, asked.pid or processes()) if said is not None]
    for said in found:
      memory.note(said, time.monotonic())
    if asked.json:
      print(json.dumps(found))
    elif found:
      print("\n\n".join(map(table, found)))
    if asked.once or asked.json:
      return 0 if found else command.complain("top", "no process here has a pod, or none of them answers")
    if not found:
      print("no process here has a pod")
    sys.stdout.flush()
    time.sleep(max(asked.seconds, 0.1))
    print(_CLEAR, end="")

"""Reads timelines (MINIPOD_TRACE): how busy links were, and what a device did in a step."""

import json
import zlib

from minipod import report_file


class Nothing(ValueError):
  """The timeline contains nothing of what was requested."""


def _inflate(data: bytes) -> bytes:
  """The contents of a gzip file, even if its end is missing."""
  parts, size = [], 0
  while data[:2] == b"\x1f\x8b":  # a file may have several members
    packed = zlib.decompressobj(31)
    try:
      parts.append(packed.decompress(data, report_file.MOST_BYTES + 1 - size))
    except zlib.error as error:
      raise ValueError(f"it cannot be decompressed: {error}") from error
    size += len(parts[-1])
    if size > report_file.MOST_BYTES:
      raise ValueError("it has more than 1 GiB")
    data = packed.unused_data
  return b"".join(parts)


def read_events(path) -> list[dict]:
  """The events of a timeline, also of one that goes on or was cut off: an array without its end.

  Raises:
    ValueError: it is none.
  """
  data = report_file.read_raw(path)
  if data[:2] == b"\x1f\x8b":
    data = _inflate(data)
  text = data.decode(errors="replace").rstrip()
  if not text.startswith("["):
    raise ValueError("it is not a timeline of MINIPOD_TRACE")
  for whole in (text, text.rstrip(",") + "]", text[:text.rfind("\n") + 1].rstrip().rstrip(",") + "]"):
    try:
      events = report_file.read_json(whole)
      break
    except ValueError as error:
      why = error
  else:
    raise ValueError(f"it is not a timeline of MINIPOD_TRACE: {why}")
  if not isinstance(events, list) or not all(isinstance(e, dict) and "ph" in e and "name" in e for e in events):
    raise ValueError("it is not a timeline of MINIPOD_TRACE: events are expected")
  return events


def _slices(events: list[dict]) -> list[dict]:
  return [e for e in events if e["ph"] == "X" and isinstance(e.get("dur"), (int, float))]


def _missing(program: str | None, where: str = "") -> Nothing:
  return Nothing(f"no launches{f' of {program}' if program else ''}{where} in this timeline")


def loads_of(events: list[dict], program: str | None = None) -> dict[str, float]:
  """The mean load of each link, by name, from the first launch (of the program) to the end of the last one."""
  names = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
  process = {e["args"]["name"]: e["pid"] for e in events if e["name"] == "process_name"}
  slices = _slices(events)
  launches = [e for e in slices if e.get("cat") == "launch" and program in (None, e["name"])]
  if not launches:
    raise _missing(program)
  begin = min(e["ts"] for e in launches)
  end = max(e["ts"] + e["dur"] for e in launches)
  busy: dict[str, float] = {}
  for e in slices:
    if e["pid"] != process.get("links") or not begin <= e["ts"] < end:
      continue
    name = names[e["pid"], e["tid"]]
    busy[name] = busy.get(name, 0) + e["args"]["load"] * e["dur"]
  return {name: time / (end - begin) for name, time in busy.items()}


def step_of(events: list[dict], program: str | None, device: int) -> tuple[dict, list[dict]]:
  """The last launch of the program on a device, and the device's events in it, with times from the launch's start."""
  rows = {(e["pid"], e["tid"]) for e in events
          if e["name"] == "thread_name" and e["args"]["name"].split(",")[0] == f"device {device}"}
  own = [e for e in _slices(events) if (e["pid"], e["tid"]) in rows]
  launches = [e for e in own if e["cat"] == "launch" and program in (None, e["name"])]
  if not launches:
    raise _missing(program, f" on device {device}")
  launch = max(launches, key=lambda e: e["ts"])
  inside = [e for e in own if e["cat"] != "launch" and launch["ts"] <= e["ts"] <= launch["ts"] + launch["dur"]]
  return launch, [{**e, "ts": e["ts"] - launch["ts"]} for e in inside]


def write_loads(loads: dict[str, float]) -> str:
  """Formats loads as `minipod topo --loads` reads them."""
  return "".join(f"{name}: {load:.4f}\n" for name, load in sorted(loads.items()))

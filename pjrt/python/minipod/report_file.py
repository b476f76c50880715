"""Reads time reports and timelines from files.  They may come from anywhere, so reading is checked and bounded."""

import gzip
import io
import json
import math
import pathlib
import stat
import zlib

MOST_BYTES = 1 << 30  # bytes of a file, after decompression

# The members that a report must have, with their types.  `float`: a number that is not negative; `int`: a whole number
# that is not negative; a list: a list of such objects; "?": the member may be missing.
_LINK = {"busiest_link?": str, "link_bytes?": float, "link_seconds?": float}
_PROGRAM = {
    "name": str, "number?": int, "devices": int, "launches": int, "runs": int, "seconds": float, "available": float,
    "work": float, "collective": float, "waiting": float, "idle": float, "hidden": float,
    "other_work": float, "other_collective": float, "unsure?": float,
    "memory": {"bytes": float},
    "collectives": [{"kind": str, "at": str, "members": int, "first_members": [int], "axes?": str, "exposed": float}],
    "ops": [{"name": str, "at": str, "class": str, "time": float, "flops?": float,
             "bytes?": float, "count?": int}],
    "classes": [{"class": str, "flops": float, "recomputed?": float, "time": float}],
    "layers": [{"name": str, "work": float, "collective": float}],
    "callers?": [{"at": str, "launches": int, "runs": int, "seconds": float, "available": float}],
    "guessed": [{"at": str, "count": int, "taken": int, "branches": int}],
}
_REPORT = {"pod": str, "num_devices": int, "flops": {"": float}, "device_memory?": float, "memory_bandwidth?": float, "seconds": float, "launches": int,
           "pending": int, "programs": [_PROGRAM | _LINK]}


def read_raw(path) -> bytes:
  """The bytes of a file.

  Raises:
    ValueError: it is a device, or too large.
  """
  path = pathlib.Path(path)
  with open(path, "rb") as file:
    if stat.S_ISCHR(path.stat().st_mode) and not file.isatty():
      raise ValueError("it is a device, and no file")
    data = file.read(MOST_BYTES + 1)
  if len(data) > MOST_BYTES:
    raise ValueError("it has more than 1 GiB")
  return data


def read_bytes(path) -> bytes:
  """The bytes of a file, decompressed where it is gzip's.

  Raises:
    ValueError: it is a device, too large, or damaged.
  """
  data = read_raw(path)
  if data[:2] == b"\x1f\x8b":
    try:
      with gzip.GzipFile(fileobj=io.BytesIO(data)) as packed:
        data = packed.read(MOST_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
      raise ValueError(f"it cannot be decompressed: {error}") from error
  if len(data) > MOST_BYTES:
    raise ValueError("it has more than 1 GiB")
  return data


def read_json(data: bytes | str):
  """What a text of JSON says.

  Raises:
    ValueError: it is none, or is nested too deep.
  """
  try:
    return json.loads(data)
  except RecursionError as error:
    raise ValueError("it is nested too deep") from error
  except UnicodeDecodeError as error:
    raise ValueError("it is not text") from error


def _is_number(value, kind) -> bool:
  if isinstance(value, bool) or not isinstance(value, int if kind is int else (int, float)):
    return False
  return 0 <= value <= 1e300 and math.isfinite(value)


def _check(value, wanted, where: str) -> None:
  if isinstance(wanted, list):
    if not isinstance(value, list):
      raise ValueError(f"{where}: a list is expected")
    for i, each in enumerate(value):
      _check(each, wanted[0], f"{where}[{i}]")
  elif isinstance(wanted, dict):
    _check_members(value, wanted, where)
  elif wanted is str:
    if not isinstance(value, str):
      raise ValueError(f"{where}: a text is expected")
  elif not _is_number(value, wanted):
    raise ValueError(f"{where}: {'a whole number' if wanted is int else 'a number'} from 0 on is expected")


def _check_members(value, wanted: dict, where: str) -> None:
  if not isinstance(value, dict):
    raise ValueError(f"{where}: an object is expected")
  for name, kind in wanted.items():
    if name == "":  # all members
      for each in value:
        _check(value[each], kind, f"{where}.{each}")
    elif name.rstrip("?") in value:
      _check(value[name.rstrip("?")], kind, f"{where}.{name.rstrip('?')}".lstrip("."))
    elif not name.endswith("?"):
      raise ValueError(f"{where}.{name}: it is missing".lstrip("."))


def check(report: dict) -> dict:
  """The report.

  Raises:
    ValueError: something is missing, or is not what it has to be; says what.
  """
  _check_members(report, _REPORT, "")
  return report

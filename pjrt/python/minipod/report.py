"""The time report as text: at most 100 columns wide, and the rows of every table sum to the total.

It is made from the library's JSON (sim/model/report/report_table.h).
"""

import itertools
import json
import math
import re
import textwrap

from minipod import report_eager
from minipod import report_file

GROUPS = ("line", "layer", "kind", "class", "axis")
COLUMNS = 100
ROWS = 20
PROGRAMS = 8
LEAST = 0.01  # of the time of all programs; several programs below are one line


# Control characters, which could control a terminal: names come from programs, and files from anywhere.
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def visible(text: str) -> str:
  """A name with its control characters escaped, as in "\\x1b"."""
  return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def only_visible(value):
  """The same report with all of its texts escaped."""
  if isinstance(value, str):
    return visible(value)
  if isinstance(value, list):
    return [only_visible(each) for each in value]
  if isinstance(value, dict):
    return {visible(key): only_visible(each) for key, each in value.items()}
  return value


def title(program: dict) -> str:
  """The name of a program, with its number if others have the same name: "jit_f #2"."""
  return program["name"] + (f" #{program['number']}" if program.get("number") else "")


def read(text: str) -> list[dict]:
  return json.loads(text)


def read_one(text: bytes | str) -> dict:
  """A report as JSON: what MINIPOD_DUMP has left, or `time_report("json")`, which is a list with one for each pod.

  Raises:
    ValueError: it is neither, or has several pods.
  """
  try:
    report = only_visible(report_file.read_json(text))
  except RecursionError as error:
    raise ValueError("it is nested too deep") from error
  if isinstance(report, list):
    if len(report) != 1:
      raise ValueError(f"it has {len(report)} pods; write the one that is meant")
    report = report[0]
  if not isinstance(report, dict) or "programs" not in report:
    raise ValueError("it has no programs")
  return report_file.check(report)


def seconds(value: float) -> str:
  """Three digits and a unit."""
  for unit, size in (("s", 1), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9)):
    if value >= size or unit == "ns":
      scaled = value / size
      return f"{scaled:.{0 if scaled >= 100 else 1 if scaled >= 10 else 2}f} {unit}"
  raise AssertionError


def is_nothing(part: float, whole: float) -> bool:
  """Whether a share would be shown as 0.0 %, so that it needs no row."""
  return part < 0.0005 * whole or part <= 0


def share(part: float, whole: float) -> str:
  return f"{100 * part / whole:.1f} %" if whole > 0 else "-"


def _count(number: int, what: str) -> str:
  return f"{number} {what}{'' if number == 1 else 'es' if what.endswith('h') else 's'}"


def all_seconds(report: dict) -> float:
  return sum(program["seconds"] for program in report["programs"])


def split(report: dict) -> tuple[list[dict], list[dict]]:
  """Programs that have a line and tables, and the others, which are one line: never only one because it is short.

  A program with guesses is never too short, because all times depend on its guesses.
  """
  first, others = report["programs"][:PROGRAMS], report["programs"][PROGRAMS:]
  least = LEAST * all_seconds(report)
  long = [program for program in first if program["seconds"] >= least or program["guessed"]]
  short = [program for program in first if program["seconds"] < least and not program["guessed"]]
  return (first, others) if len(short) + len(others) < 2 else (long, short + others)


def _others_row(others: list[dict], whole: float) -> tuple[str, int, str, str, str]:
  """The line of those others: name, launches, time of a launch, time, share."""
  time = sum(program["seconds"] for program in others)
  number = sum(launches(program) for program in others)
  name = "(1 other program)" if len(others) == 1 else f"({len(others)} other programs)"
  return name, number, seconds(time / max(1, number)), seconds(time), share(time, whole)


def program_rows(report: dict) -> list[tuple[str, int, str, str, str]]:
  """The table of programs: name, launches, time of a launch, time, share; the shares add up."""
  whole = all_seconds(report)
  shown, others = split(report)
  rows = [(title(program), launches(program), seconds(each_launch(program)), seconds(program["seconds"]),
           share(program["seconds"], whole)) for program in shown]
  return rows + ([_others_row(others, whole)] if others else [])


def launches(program: dict) -> int:
  """Of eager ops, those of all ops."""
  return program.get("eager_launches", program["launches"])


def each_launch(program: dict) -> float:
  """Mean seconds of a launch."""
  return program["seconds"] / max(1, launches(program))


def partners(program: dict) -> float:
  """Mean number of devices that take part in a launch.  Clients without SPMD make one launch per device."""
  return program["runs"] / max(1, program["launches"])


def whole(program: dict) -> float:
  """Seconds of all devices; each device is busy with a launch until the slowest device ends it."""
  return max(program["available"], program["seconds"] * partners(program))


def _part(program: dict, time: float) -> float:
  return time / program["available"] if program["available"] else 0.0


def work(program: dict) -> float:
  """The part of a program's time in which its devices compute."""
  return _part(program, program["work"])


def exposed(program: dict) -> float:
  """The part of a program's time that its devices spend in collectives or waiting for them."""
  return _part(program, program["collective"] + program["waiting"])


def operations(program: dict) -> float:
  """Operations of matmuls, over all devices and launches."""
  return sum(each["flops"] for each in program["classes"] if each["class"] in ("matmul", "convolution"))


def utilisation(report: dict, program: dict) -> float | None:
  """Matmul operations as a share of those at peak rate; None: the description has no peak rate."""
  rate = report["flops"].get("bf16") or max(report["flops"].values(), default=0)
  if not rate or not program["available"]:
    return None
  return operations(program) / (rate * program["available"])


def mfu(report: dict, program: dict, model_flops: float | None = None) -> float | None:
  """Model FLOPs utilisation, from the given operations per launch, or from the matmuls that no checkpoint recomputes.
  """
  rate = report["flops"].get("bf16") or max(report["flops"].values(), default=0)
  if not rate or not program["available"]:
    return None
  recomputed = sum(each.get("recomputed", 0) for each in program["classes"] if each["class"] in ("matmul", "convolution"))
  done = operations(program) - recomputed if model_flops is None else model_flops * program["launches"]
  return done / (rate * whole(program))


# Parts of a name stack that JAX puts around and between the user's names.
_WRAPPED = re.compile(r"^(?:jit|pjit|jvp|transpose|vmap|pmap|checkpoint|remat|custom_jvp|custom_vjp)\((.*)\)$")
_BRANCH = re.compile(r"branch_\d+_fun$")
_BETWEEN = {"", "while", "body", "cond", "branch", "closed_call", "core_call", "checkpoint", "remat",
            "rematted_computation", "shard_map", "shmap_body", "custom_jvp_call", "custom_vjp_call", "pjit", "scan"}


def layer(path: str) -> str:
  """The names that users gave, of a name stack: "layer0/mlp" of "jit(step)/transpose(jvp(layer0))/while/body/mlp".

  What a checkpoint recomputes for a gradient repeats its names: "transpose(jvp(layer0))/jvp(layer0)/checkpoint/mlp".
  """
  names, transposed = [], set()
  for part in path.split("/"):
    is_function = part.startswith(("jit(", "pjit("))
    if part in transposed:
      names = []
    if part.startswith("transpose("):
      transposed.add(part[len("transpose("):-1])
    while found := _WRAPPED.match(part):
      part = found[1]
    if not is_function and part not in _BETWEEN and not _BRANCH.match(part):
      names.append(part)
  return "/".join(names) or "(no name)"


def axes(row: dict, mesh: dict | None) -> str:
  """The mesh axes of a collective, from the program's mesh or from `mesh`; without a mesh, the distribution of its
  groups.
  """
  if row.get("axes"):
    return row["axes"]
  if not row["members"] or not row["first_members"] or row["kind"] == "collective_permute":
    return "pairs"
  first, *second = row["first_members"]
  stride = second[0] - first if second else 0
  if mesh and (name := mesh.get((row["members"], stride))):
    return name
  return f"groups of {row['members']}" + (f", {stride} apart" if stride else "")


def axes_of(mesh) -> dict[tuple[int, int], str]:
  """The groups along each choice of a mesh's axes, by their size and the distance of their first two members."""
  ids = [device.id for device in mesh.devices.flat]
  names = list(mesh.axis_names)
  shape = [mesh.shape[name] for name in names]
  strides = [math.prod(shape[i + 1:]) for i in range(len(shape))]
  found: dict[tuple[int, int], str] = {}
  for count in range(1, len(names) + 1):
    for chosen in itertools.combinations(range(len(names)), count):
      size = math.prod(shape[i] for i in chosen)
      inner = [i for i in chosen if shape[i] > 1]
      if inner:
        found.setdefault((size, ids[strides[inner[-1]]] - ids[0]), " and ".join(names[i] for i in inner))
  return found


def _key(row: dict, by: str, mesh: dict | None) -> str:
  if by == "layer":
    return layer(row["name"])
  if by == "axis":
    return f"{row['kind']} along {axes(row, mesh)}" if "members" in row else row["class"]
  if by == "class":
    return row.get("class", "collective")
  name = row.get("name") or row.get("kind", "")
  if by == "kind":
    return name
  _, _, place = row["at"].rpartition(" at ")
  return place or row["at"] or name


def _sums(program: dict, by: str) -> list[dict] | None:
  """The rows that have sums of work and of collectives for these groups, if the program has such rows."""
  return program["layers"] if by == "layer" else program.get("lines") if by == "line" else None


def _rows(program: dict, by: str, mesh: dict | None) -> list[tuple[str, str, float]]:
  """Groups, each with the activity and the time of all devices, the longest first."""
  sums: dict[tuple[str, str], float] = {}
  tables = (("work", program["ops"], "time"), ("collective", program["collectives"], "exposed"))
  if (rows := _sums(program, by)) is not None:
    tables = tuple((what, rows, what) for what in ("work", "collective"))
  elif by in ("class", "axis"):
    tables = ("work", program["classes"], "time"), tables[1]
  for what, rows, time in tables:
    for row in rows:
      if row[time] > 0:
        key = _key(row, by, mesh), what
        sums[key] = sums.get(key, 0.0) + row[time]
  return sorted(((key, what, time) for (key, what), time in sums.items()), key=lambda row: -row[2])


def _end(text: str, width: int) -> str:
  return text if len(text) <= width else "…" + text[len(text) - width + 1:] if width > 0 else ""


def shortened(name: str, width: int) -> str:
  """The title of a row; of a long place, the ends of both paths are shown, the user's and the library's."""
  if len(name) <= width or ", in " not in name:
    return _end(name, width)
  user, _, library = name.partition(", in ")
  room = width - len(", in ")
  own = min(len(user), max(room // 2, room - len(library)))
  return f"{_end(user, own)}, in {_end(library, room - own)}"


def _line(name: str, what: str, time: float, program: dict) -> str:
  each = time / max(1, program["runs"])
  width = COLUMNS - 44
  shown = shortened(name, width)
  return f"  {shown:{width}} {what:12} {seconds(each):>12} {share(time, whole(program)):>9}"


def _missing(program: dict, by: str, what: str) -> float:
  """Seconds of all devices that have no row in the tables from which groups are made."""
  if (rows := _sums(program, by)) is not None:
    return max(0.0, program[what] - sum(row[what] for row in rows))
  if by in ("class", "axis") and what == "work":
    return max(0.0, program[what] - sum(row["time"] for row in program["classes"]))
  return program[f"other_{what}"]


def table(program: dict, by: str, mesh: dict | None) -> list[tuple[str, str, float]]:
  """Rows that sum to the whole time of a program, without rows of hidden time."""
  rows = _rows(program, by, mesh)
  kept = [row for row in rows[:ROWS] if not is_nothing(row[2], whole(program))]
  rest = {what: sum(row[2] for row in rows[len(kept):] if row[1] == what) + _missing(program, by, what)
          for what in ("work", "collective")}
  found = kept + [("(others)", what, time) for what, time in rest.items()]
  found += [(f"({what})", what, program[what]) for what in ("waiting", "idle")]
  found = [row for row in found if not is_nothing(row[2], whole(program))]
  if (uneven := whole(program) - program["available"]) > 0.0005 * whole(program):
    found.append(("(the slowest device takes longer)", "uneven", uneven))
  return found + [("all", "", whole(program))]


def _memory(size: int) -> str:
  return f"{size / 2**30:.1f} GiB" if size >= 2**30 else f"{size / 2**20:.1f} MiB"


def facts(report: dict, program: dict, tokens: float | None) -> list[str]:
  """The line about a program; `tokens` belongs to the program that takes longest."""
  found = [f"{_count(launches(program), 'launch')} of {seconds(each_launch(program))}"
           f" on {_count(round(partners(program)), 'device')}"]
  if "eager_launches" in program and report["seconds"] > 0:
    found.append(f"devices are busy {share(all_seconds(report), report['seconds'])} of the time, and wait for the host otherwise")
  if (used := utilisation(report, program)) is not None:
    found.append(f"matmul utilisation {100 * used:.1f} %")
  found.append(f"{_memory(program['memory']['bytes'])} per device")
  if tokens and program is report["programs"][0] and program["seconds"]:
    rate = tokens / each_launch(program)
    found.append(f"{rate:,.0f} tokens/s ({rate / partners(program):,.0f} per device)")
  return found


def guesses(program: dict) -> list[str]:
  """Branches and loops whose condition was not computed (`values: shapes`), and the path that minipod guessed."""
  lines = []
  for guess in program["guessed"]:
    what = (f"branch {guess['taken']} of 0 to {guess['branches'] - 1}" if guess["branches"]
            else _count(guess["taken"], "round"))
    lines.append(f"guessed, because the condition was not computed: {what}, {_count(guess['count'], 'time')}, {guess['at']}")
  return lines


def _program(report: dict, program: dict, by: str, mesh: dict | None, tokens: float | None) -> list[str]:
  lines = [title(program)[-COLUMNS:]]
  lines += textwrap.wrap("; ".join(facts(report, program, tokens)), COLUMNS, initial_indent="  ", subsequent_indent="  ")
  lines += [f"  {line}"[:COLUMNS] for line in guesses(program)]
  lines.append(f"  {'by ' + by:{COLUMNS - 44}} {'spent in':12} {'per device':>12} {'share':>9}")
  lines += [_line(*row, program) for row in table(program, by, mesh)]
  if program["hidden"] > 0:
    lines.append(_line("(overlapped, not in the sum)", "hidden", program["hidden"], program))
  return lines


def head(report: dict) -> str:
  return (f"{report['pod']}: {_count(report['num_devices'], 'device')}, {seconds(report['seconds'])} of virtual time,"
          f" {_count(report['launches'], 'launch')}")


def notes(report: dict) -> list[str]:
  """Notes that readers of the tables need."""
  lines = []
  if not any(report["flops"].values()):
    lines.append("the pod describes no rates: defaults were assumed")
  if report["pending"]:
    lines.append(f"{report['pending']} launches or transfers are still running and not in the tables (jax.block_until_ready)")
  return lines


def summary(report: dict, by: str = "line", mesh=None, tokens: float | None = None) -> str:
  """A report as a text; times are those of one device in one launch, on the average.

  With the mesh of a program, collectives have the names of its axes; `tokens` is how many a launch of
  the program takes that took longest.
  """
  known = axes_of(mesh) if mesh is not None else None
  report = report_eager.gather(report)
  if by not in GROUPS:
    raise ValueError(f"by {by!r} is none of {', '.join(GROUPS)}")
  lines = [head(report)[:COLUMNS], *notes(report)]
  lines.append(f"\n{'program':52} {'launches':>9} {'each':>11} {'in all':>11} {'share':>9}")
  for name, number, *times in program_rows(report):
    lines.append(f"{_end(name, 52):52} {number:9} {times[0]:>11} {times[1]:>11} {times[2]:>9}")
  for program in split(report)[0]:
    lines += ["", *_program(report, program, by, known, tokens)]
  from minipod import findings  # it needs this module

  return "\n".join([*lines, *findings.lines(report, known)])


def difference(before: dict, after: dict) -> str:
  """Two reports beside each other, by program: time of a launch, and what it is spent in.

  Programs of one name (functions without one are all `jit__lambda`) are compared in their order.
  """
  old: dict[str, list[dict]] = {}
  for program in before["programs"]:
    old.setdefault(program["name"], []).append(program)
  lines = [f"{'program':40} {'before':>11} {'after':>11} {'after/before':>13} {'work':>10} {'exposed':>10}"]
  for program in after["programs"]:
    name, each = program["name"], each_launch(program)
    if not old.get(name):
      lines.append(f"{name[:40]:40} {'-':>11} {seconds(each):>11}")
      continue
    was = old[name].pop(0)
    then = each_launch(was)
    parts = [100 * (now(program) - now(was)) for now in (work, exposed)]
    lines.append(f"{name[:40]:40} {seconds(then):>11} {seconds(each):>11}"
                 f" {each / then if then else 0:13.3f} {parts[0]:+8.1f} % {parts[1]:+8.1f} %")
  lines += [f"{name[:40]:40} {seconds(each_launch(was)):>11} {'-':>11}"
            for name, rest in old.items() for was in rest]
  return "\n".join(lines)

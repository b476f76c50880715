"""Gathers the programs of eager ops in a time report: a framework that compiles a program per op has very many.

The launches of such programs have labels (launch_labels.py), so the gathered program has rows by module and by line.
"""

NAME = "(eager ops)"
_SUMS = ("seconds", "available", "work", "collective", "waiting", "idle", "hidden", "other_work", "other_collective")
_PREFIX = "tt_jit_"  # TorchTPU's


def _parse(label: str) -> tuple[str, str]:
  """The module and the line.  A label can be a line alone, or a name alone, which is then in place of the line."""
  name, at, line = label.partition(" at ")
  if at:
    return name, line
  return (label, label) if label.endswith(")") else ("(no module)", label)


def _has_lines(program: dict) -> bool:
  return any(" at " in row["at"] for rows in ("ops", "collectives") for row in program[rows])


def _is_eager(program: dict) -> bool:
  return program["name"].startswith(_PREFIX) and not _has_lines(program)


def _launches(program: dict) -> list[tuple[str, str, float]]:
  """The launches of a program: the module, the line, and the time of all devices.

  Some ops do not say where they are: they have their own name instead.
  """
  rows, rest = [], program["available"]
  for caller in program.get("callers", []):
    rows.append((*_parse(caller["at"]), caller["available"]))
    rest -= caller["available"]
  if rest > 1e-9 * program["available"]:
    name = program["name"].removeprefix(_PREFIX)
    rows.append((name, f"({name})", rest))
  return rows


def _parts(program: dict, time: float) -> tuple[float, float]:
  """What of a time of the program's devices is work and what is collectives: as in the whole program."""
  whole = program["available"] or 1.0
  return time * program["work"] / whole, time * program["collective"] / whole


def _gather_classes(programs: list[dict]) -> list[dict]:
  sums: dict[str, dict] = {}
  for row in (row for program in programs for row in program["classes"]):
    into = sums.setdefault(row["class"], {"class": row["class"], "flops": 0.0, "recomputed": 0.0, "time": 0.0})
    for key in ("flops", "recomputed", "time"):
      into[key] += row.get(key, 0.0)
  return sorted(sums.values(), key=lambda row: -row["time"])


def _gather(programs: list[dict]) -> dict:
  """One program.  Its times are those of all launches together, as if they were one launch."""
  lines, layers = [], []
  for program in programs:
    for name, line, time in _launches(program):
      work, collective = _parts(program, time)
      layers.append({"name": name, "work": work, "collective": collective})
      lines.append({"at": line, "work": work, "collective": collective})
  launches = sum(program["launches"] for program in programs)
  partners = sum(program["runs"] for program in programs) / max(1, launches)
  gathered = {key: sum(program[key] for program in programs) for key in _SUMS}
  gathered |= {key: [row for program in programs for row in program.get(key, [])]
               for key in ("ops", "collectives", "guessed", "findings")}
  return gathered | {
      "name": NAME, "devices": programs[0]["devices"], "launches": 1, "runs": partners, "eager_launches": launches,
      "memory": max((program["memory"] for program in programs), key=lambda memory: memory["bytes"]),
      "classes": _gather_classes(programs), "layers": layers, "lines": lines}


def gather(report: dict) -> dict:
  """The report with one program in place of all eager ops; the same report if there are none."""
  eager = [program for program in report["programs"] if _is_eager(program)]
  if not any(program.get("callers") for program in eager):
    return report
  others = [program for program in report["programs"] if not _is_eager(program)]
  return report | {"programs": sorted([_gather(eager), *others], key=lambda program: -program["seconds"])}

"""The cells of a sweep's table, from a run's report or from its failure (`sweep_failures`)."""

import ast
import operator
import re

from minipod import report

_OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
              ast.FloorDiv: operator.floordiv, ast.Pow: operator.pow, ast.USub: operator.neg}
_MOST = 1e30  # largest value, so that a power cannot take for ever
_WIDTH = 60  # characters of a message in the table


# ---- expressions ----


def value(text: str, names: dict[str, str | float]) -> float:
  """The value of an expression over settings.

  Raises:
    ValueError: the text is not an expression, it names something that is not a setting, or its value is not a number
        from 0 on.
  """
  try:
    found = float(_value(ast.parse(text, mode="eval").body, names))
  except (SyntaxError, ZeroDivisionError, OverflowError, RecursionError, MemoryError) as error:
    raise ValueError(f"'{text}' is not an expression: {error}") from error
  if not 0 <= found <= _MOST:
    raise ValueError(f"'{text}' is {found:g}")
  return found


def _value(node, names):
  if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)) and not isinstance(node.value, bool):
    return float(node.value)
  if isinstance(node, ast.Name):
    if node.id not in names:
      raise ValueError(f"'{node.id}' is not a variable of --set")
    try:
      return float(names[node.id])
    except ValueError:
      raise ValueError(f"{node.id} is '{names[node.id]}', which is not a number") from None
  if isinstance(node, ast.UnaryOp) and type(node.op) in _OPERATORS:
    return _OPERATORS[type(node.op)](_value(node.operand, names))
  if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
    return _OPERATORS[type(node.op)](_value(node.left, names), _value(node.right, names))
  raise ValueError("an expression has numbers, variables of --set, and + - * / // ** ( )")


# ---- failures ----


def _is_message(line: str) -> bool:
  return bool(line.strip()) and not line.startswith((" ", "\t")) and set(line) != {"-"}


def reason(stderr: str, code: int) -> str:
  """The message of the exception that ended a run: the text after the last traceback."""
  lines = stderr.splitlines()
  begin = max((i for i, line in enumerate(lines) if line.startswith("Traceback (most recent call last)")), default=None)
  if begin is None:
    said = [line for line in lines if line.strip() and set(line) != {"-"} and "JAX has removed its internal frames" not in line]
    ended = f"ended by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}, no time report"
    return said[-1].strip() if said and code > 0 else ended
  message: list[str] = []
  for line in lines[begin + 1:]:
    if not message and not _is_message(line):
      continue
    if message and (set(line) == {"-"} or line.startswith(("The above exception", "During handling", "minipod: "))):
      break
    message.append(line)
  first = re.sub(r"^(?:\w+\.)+(\w+)", r"\1", message[0]) if message else f"exit code {code}"
  return "\n".join([first, *message[1:]]).strip()


def failure(message: str) -> dict:
  """The row of a run that failed: the first line of the message, and the memory that the message names."""
  row: dict = {"error": report.visible(message.splitlines()[0])}
  found = _NEEDS.search(message)
  if found and found[2] in _UNITS and found[4] in _UNITS:
    row |= {"memory_bytes": float(found[1]) * _UNITS[found[2]], "device_memory": float(found[3]) * _UNITS[found[4]],
            "fits": False}
  return row


# ---- cells ----


def exposed_most(program: dict) -> dict | None:
  """The kind of collective, with its mesh axes, that devices wait longest for, and its share of the time."""
  sums: dict[str, float] = {}
  for row in program["collectives"]:
    name = f"{row['kind']} along {report.axes(row, None)}"
    sums[name] = sums.get(name, 0.0) + row["exposed"]
  name, time = max(sums.items(), key=lambda item: item[1], default=(None, 0.0))
  return {"name": name, "share": time / report.whole(program)} if time > 0 and report.whole(program) else None


def setting_names(rows: list[dict]) -> dict[str, str]:
  """The variables of the settings with the titles of their columns."""
  return {name: "pod" if name == "MINIPOD_TOPOLOGY" else name for name in rows[0]["settings"]}


def settings_of(row: dict) -> str:
  """"pod=v5e:4x4 BATCH=2"."""
  return " ".join(f"{head}={row['settings'][name] or '-'}" for name, head in setting_names([row]).items()) or "as it is"


def _share(part: float | None) -> str:
  return "-" if part is None else report.share(part, 1)


def _memory(row: dict) -> str:
  if "memory_bytes" not in row:
    return "-"
  if not row.get("device_memory"):
    return f"{row['memory_bytes'] / 2**20:.1f} MiB"
  unit, name = (2**30, "GiB") if row["device_memory"] >= 2**30 else (2**20, "MiB")
  return f"{row['memory_bytes'] / unit:.1f} of {row['device_memory'] / unit:.1f} {name}"


def _cut(text: str) -> str:
  """Shortens the message: removes the exception's class and the status code."""
  text = re.sub(r"^(?:\w+: )?(?:Unable to initialize backend '\w+': )?(?:[A-Z_]{5,}: )?", "", text)
  return text if len(text) <= _WIDTH else text[:_WIDTH - 1] + "…"


def _cells(row: dict, has_tokens: bool) -> list[str]:
  if "error" in row:
    empty = ["-"] * (5 if has_tokens else 4)
    return ["-", *empty, _memory(row), "does not fit" if row.get("fits") is False else _cut(row["error"])]
  tokens = [f"{row['tokens_per_second']:,.0f}"] if has_tokens else []
  most = row["exposed_collective"]
  return [row["program"], report.seconds(row["step_seconds"]), *tokens, _share(row["mfu"]), _share(row["work"]),
          _share(row["exposed"]), _memory(row), f"{most['name']} {_share(most['share'])}" if most else "-"]


def table(rows: list[dict]) -> list[tuple[str, ...]]:
  """The table with its header: a column for each setting, and the needed and available memory."""
  named = setting_names(rows)
  has_tokens = any("tokens_per_second" in row for row in rows)
  head = ["", *named.values(), "program", "each", *(["tokens/s"] if has_tokens else []), "MFU", "work", "exposed", "memory",
          "exposed longest"]
  lines = [["*" if row.get("is_best") else "", *(row["settings"][name] or "-" for name in named), *_cells(row, has_tokens)]
           for row in rows]
  return [tuple(line) for line in [head, *lines]]

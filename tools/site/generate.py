#!/usr/bin/env python3
"""Makes the parts of the site that come from this tree: tables of options, operations and types, READMEs, pictures.

    tools/site/generate.py FOLDER

FOLDER becomes a copy of tools/site/pages with a folder `made` in it.  No file in `made` is written by hand.  The
library (MINIPOD_LIBRARY, or that of build/) decides which types operations accept.
"""

import ast
import collections
import json
import os
import pathlib
import re
import shutil
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

import four_numbers
import op_types
import rooms_picture
from c_lists import ROOT, rows

PAGES = pathlib.Path(__file__).parent / "pages"
ROLES = {
    "KERNEL": "a kernel", "COLLECTIVE": "a collective", "COMMAND": "a command", "CONTROL": "control flow",
    "NOTHING": "nothing to run", "SUGAR": "replaced by other operations", "SHARDING": "a sharding annotation",
}
# Columns of the table of types, each with the types that its name stands for.
COLUMNS = {
    "i1": ["i1"], "i2 i4": ["i2", "i4"], "i8 to i64": ["i8", "i16", "i32", "i64"], "ui2 ui4": ["ui2", "ui4"],
    "ui8 to ui64": ["ui8", "ui16", "ui32", "ui64"], "f4, f6, f8": None, "f16 bf16": ["f16", "bf16"],
    "f32 f64": ["f32", "f64"], "complex": ["complex<f32>", "complex<f64>"],
}
TYPE_OPTIONS = {"INT": "whole number", "BYTES": "size", "STRING": "text", "LOG_LEVEL": "text"}


def table(head: list[str], lines: list[list[str]]) -> str:
  escape = lambda cell: cell.replace("|", "\\|").replace("\n", " ")
  made = ["| " + " | ".join(map(escape, line)) + " |" for line in [head, ["---"] * len(head), *lines]]
  return "\n".join(made) + "\n"


def code(text: str) -> str:
  return f"`{text}`" if text else ""


def options() -> str:
  """Every option that a user can set."""
  lines = []
  for name, kind, least, greatest, default, unit, variable, text in rows("sim/base/options.h", "MP_OPTIONS"):
    if not variable:  # for JAX alone
      continue
    values = TYPE_OPTIONS[kind]
    if kind == "INT":
      values += f", {least} to {greatest}" if greatest.isdigit() else f" from {least}"
    if unit:
      values += f" ({unit})"
    lines.append([code(variable), code(name), values, code(default), text.replace("`", "")])
  return table(["variable", "client option", "value", "default", "what it does"], lines)


def storable() -> list[list[str]]:
  return [row for row in rows("sim/numeric/dtype.h", "MP_DTYPES") if row[9] != "0"]


def types() -> str:
  kinds = {"BOOL": "boolean", "SIGNED": "signed integer", "UNSIGNED": "unsigned integer", "FLOAT": "float",
           "COMPLEX": "complex"}
  return table(["type", "kind", "bits", "bytes of a stored element"],
               [[code(name), kinds[kind], bits, size] for _, name, kind, bits, size, *_ in storable()])


def collectives() -> str:
  names = [row[1] for row in rows("collectives/collective.h", "MP_COLLECTIVES")]
  return table(["kind"], [[code(name)] for name in names])


def cell(column: str, takes: dict) -> str:
  names = COLUMNS[column] or [each for each in takes if re.match(r"f[468]E", each)]
  taken = [each for each in names if takes[each]]
  return "yes" if len(taken) == len(names) else ", ".join(taken) or "–"


def operations(library: str) -> str:
  """How each operation is executed, and the types of those that become kernels or collectives."""
  asked = {name: (said, takes) for name, said, takes in op_types.table(library)}
  what, typed = [], []
  for row in rows("sim/ir/op_list.h", "MP_OPS"):
    name, role = row[1], row[5]
    said, takes = asked.get(name, ("", {}))
    if role == "REFUSED":
      said = re.sub(r"^--commands: \S+: ", "", said).split(" [")[0]
      what.append([code(name), "refused: " + said.replace("<", "\\<")])
      continue
    what.append([code(name), ROLES[role]])
    if role in ("KERNEL", "COLLECTIVE") and takes and name not in ("stablehlo.custom_call", "minipod.fusion",
                                                                   "minipod.exchange"):
      typed.append([code(name.removeprefix("stablehlo."))] + [cell(column, takes) for column in COLUMNS])
  return what, typed


def rewrites() -> str:
  """The rules by which minipod changes values as XLA does."""
  return table(["rule", "rewrite", "why programs rely on it"],
               [[code(name), code(pattern), reason]
                for name, _, _, pattern, reason in rows("sim/passes/xla/xla_values.h", "MP_XLA_RULES")])


def versions() -> str:
  read = lambda name: (ROOT / name).read_text()
  find = lambda pattern, file: re.search(pattern, read(file)).group(1)
  stablehlo = [find(rf"stablehlo_{which}_version\[\] = {{(.*?)}}", "pjrt/pjrt_attributes.c").replace(", ", ".")
               for which in ("minimum", "current")]
  return table(["what", "version"], [
      ["minipod", find(r'project\([^)]*VERSION\s+([\d.]+)', "CMakeLists.txt")],
      ["JAX that runs all tests", find(r"jax==(.*)", "tests/requirements.txt")],
      ["JAX that the package supports", code(find(r'jax = \["jax(.*?)"\]', "pyproject.toml"))],
      ["torch_xla that the package supports", code(find(r'torch = \["torch_xla(.*?)"\]', "pyproject.toml"))],
      ["Python", code(find(r'requires-python = "(.*?)"', "pyproject.toml"))],
      ["PJRT C API", ".".join(find(rf"PJRT_API_{part} (\d+)", "pjrt/c_api/c_api_base.h") for part in ("MAJOR", "MINOR"))],
      ["StableHLO, portable bytecode", f"{stablehlo[0]} to {stablehlo[1]}"],
  ])


def functions(file: str) -> str:
  """The public functions and classes of a module, with their signatures and docstrings."""
  parts = []
  for node in ast.parse((ROOT / file).read_text()).body:
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.name.startswith("_"):
      parts += _described(node, "minipod." if file.endswith("__init__.py") else "", 3)
  return "\n".join(parts)


def _described(node, prefix: str, level: int) -> list[str]:
  text = ast.get_docstring(node)
  if text is None:
    return []
  shown = f"{prefix}{node.name}"
  if isinstance(node, ast.FunctionDef):
    arguments = ast.unparse(node.args).removeprefix("self, ").removeprefix("self")
    is_property = any(ast.unparse(each) in ("property", "pytest.fixture") for each in node.decorator_list)
    shown += "" if is_property else f"({arguments})"
  lines = [f"{'#' * level} `{shown}`", "", "```text", text, "```", ""]
  for inner in getattr(node, "body", []) if isinstance(node, ast.ClassDef) else []:
    if isinstance(inner, ast.FunctionDef) and not inner.name.startswith("_"):
      lines += _described(inner, f"{node.name}.", level + 1)
  return lines


def presets() -> str:
  return " ".join(sorted(code(path.stem) for path in (ROOT / "configs/chips").glob("*.yaml")))


def section(file: str, title: str | None = None, without: tuple = ()) -> str:
  """A README, or a section of it, without its title; links into the tree become the names of their targets."""
  text = (ROOT / file).read_text()
  if title is not None:
    level = re.search(rf"^(#+) {re.escape(title)}$", text, re.MULTILINE)
    depth = len(level.group(1))
    text = re.split(rf"^#{{1,{depth}}} ", text[level.end():], maxsplit=1, flags=re.MULTILINE)[0]
    text = re.sub(rf"^#{{{depth}}}(?=#)", "#", text, flags=re.MULTILINE)
  else:
    text = text.partition("\n")[2]
  for name in without:
    text = re.sub(rf"^(#+) {re.escape(name)}\n.*?(?=^#|\Z)", "", text, flags=re.MULTILINE | re.DOTALL)
  # Pictures of a README are next to it; here they are all in one folder.
  text = re.sub(r"!\[([^\]]*)\]\([^)]*?([\w.-]+\.(?:svg|png))\)", r"![\1](/made/\2)", text)
  text = re.sub(r"(?<!!)\[([^\]]+)\]\((?!https?:)[^)]*\)", r"\1", text)
  return text.strip() + "\n"


def library() -> str:
  path = os.environ.get("MINIPOD_LIBRARY") or str(ROOT / "build/pjrt_c_api_minipod_plugin.so")
  if not os.path.isfile(path):
    sys.exit(f"generate.py: {path} is missing: build minipod, or name a library by MINIPOD_LIBRARY")
  return path


def ratios() -> str:
  """Times of minipod as multiples of those of JAX's CPU backend, by section of the benchmarks."""
  recorded = json.loads((ROOT / "tools/bench/recorded.json").read_text())
  sections = collections.defaultdict(list)
  for name, case in recorded["cases"].items():
    if "wall" not in case:  # measured by memory alone
      continue
    sections[name.partition("/")[0]].append((case["wall"], name.partition("/")[2]))
  rows = []
  for name, cases in [*sorted(sections.items()), ("all", sum(sections.values(), []))]:
    walls = sorted(wall for wall, _ in cases)
    rows.append([name, str(len(walls)), f"{statistics.median(walls):.2f}", f"{walls[int(0.95 * (len(walls) - 1))]:.2f}",
                 "{:.2f} ({})".format(*max(cases))])
  return (f"JAX {recorded['jax']}, {recorded['cores']} cores of an {recorded['processor']}.\n\n" +
          table(["section", "cases", "median", "95th percentile", "worst case"], rows))


def main(out: pathlib.Path) -> None:
  lib = library()
  shutil.rmtree(out, ignore_errors=True)
  shutil.copytree(PAGES, out)
  made = out / "made"
  made.mkdir()
  what, typed = operations(lib)
  texts = {
      "options": options(), "types": types(), "collectives": collectives(), "versions": versions(),
      "rewrites": rewrites(),
      "chips": presets() + "\n",
      "operations": table(["operation", "how minipod runs it"], what),
      "op_types": table(["operation", *COLUMNS], typed),
      "keys": section("configs/README.md", "Keys"),
      "faults": section("configs/README.md", "Faults"),
      "machines": section("configs/README.md", "Known machines"),
      "mesh_order": section("configs/README.md", "A worked example: two orders of a mesh"),
      "ratios": ratios(),
      "numbers": four_numbers.markdown(),
      "package": functions("pjrt/python/minipod/__init__.py"),
      "testing": functions("pjrt/python/minipod/testing.py"),
      "program": section("sim/README.md", "How a program is compiled"),
      "published": section("tools/published/README.md"),
      "overlap": section("sim/chip/schedule/README.md", "Which collectives"),
      "size": section("tools/size/README.md"),
  }
  for name, text in texts.items():
    (made / f"{name}.md").write_text(text)
  for picture in ("configs/mesh_order.svg", "tools/size/size.png"):
    shutil.copy(ROOT / picture, made)
  (made / "rooms.svg").write_text(rooms_picture.picture())
  for name in ("conf.py", "site.css"):
    shutil.copy(pathlib.Path(__file__).parent / name, out)


if __name__ == "__main__":
  if len(sys.argv) != 2:
    sys.exit(__doc__)
  main(pathlib.Path(sys.argv[1]))

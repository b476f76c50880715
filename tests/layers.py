#!/usr/bin/env python3
"""Checks the plan of the C tree: which room may include and call which, and that every file has its place.

    tests/layers.py [ROOT] [--objects BUILD]

A room is a folder of C files.  The table below names every room and what it may include and call
besides its own files.  The check fails when

- an include is not in the table, or the table has a circle;
- a folder with C files is not in the table, has no README, or holds too many files;
- the README of a room does not name each of its files, or it names a C file or folder that is not in the tree;
- two C files of the tree have the same name;
- the top level holds anything but its fixed names;
- a file-level function of a C file does not begin with the file's name;
- the chip model compares a chip's compiler, instead of asking for a property (sim/chip/rules/chip_policy.h).

With the objects of a build (tests/layers_objects.py) also when

- a file calls one of a room that is not in the table;
- a header of one room declares what another one defines;
- rooms call each other in a circle, or files do whose circle is not listed with its reason.

Prints each finding and exits 1, or a count and exits 0.
"""

import argparse
import collections
import pathlib
import re
import subprocess
import sys

CORE = ["sim/base", "sim/base/containers", "sim/base/os"]
BASE = [*CORE, "sim/numeric"]
IR = [*BASE, "sim/ir"]
KERNELS = [*IR, "sim/native", "sim/kernels"]
RUNTIME = ["sim/runtime/memory", "sim/runtime/devices", "sim/runtime/workers"]
COLLECTIVES = ["collectives", "collectives/transport"]
NETWORK = ["sim/model/network", "sim/model/network/algorithms", "sim/model/network/traffic"]

# Room: the rooms it may include besides its own.  Arrows go one way only.
KNOWS = {
    "sim/base": [],
    "sim/base/containers": ["sim/base"],
    "sim/base/os": ["sim/base"],
    "sim/numeric": CORE,
    "topology/machine": CORE,
    "topology/presets": ["sim/base"],
    "topology": [*BASE, "topology/machine", "topology/presets"],
    "topology/processes": [*BASE, "topology/machine", "topology"],
    "topology/faults": [*BASE, "topology"],
    "collectives/transport/mpi": [],
    "collectives/transport/ucx": CORE,
    "collectives/transport": CORE,
    "collectives/transport/hosts": [*CORE, "collectives/transport/mpi", "collectives/transport/ucx",
                                    "collectives/transport"],
    "collectives/transport/store": [*CORE, "collectives/transport"],
    "collectives/transport/tpu": [*CORE, "collectives/transport"],
    "collectives/transport/bootstrap": [*CORE, "collectives/transport/tpu", "collectives/transport/mpi", "collectives/transport/ucx",
                                        "collectives/transport", "collectives/transport/store",
                                        "collectives/transport/hosts"],
    "collectives": [*BASE, "collectives/transport"],
    "sim/ir": BASE,
    "sim/ir/compare": [*IR, "sim/ir/print"],
    "sim/ir/print": IR,
    "sim/ir/verify": IR,
    "sim/readers/bytecode": IR,
    "sim/readers/hlo/message": IR,
    "sim/readers/hlo": [*IR, "sim/readers/hlo/message", "sim/readers/text", "sim/spmd/sharding"],
    "sim/readers/options": CORE,
    "sim/readers/text": IR,
    "sim/readers": [*IR, "sim/readers/bytecode", "sim/readers/hlo", "sim/readers/text"],
    "sim/mosaic/ir": [*IR, "sim/ir/print"],
    "sim/mosaic/read": [*IR, "sim/readers/bytecode", "sim/readers/text", "sim/mosaic/ir"],
    "sim/passes": [*IR, "sim/ir/verify", "sim/passes/desugar", "sim/passes/rewrite"],
    "sim/passes/desugar": [*IR, "sim/passes/rewrite"],
    "sim/passes/attention": [*IR, "sim/passes/rewrite", "sim/work"],
    "sim/passes/rewrite": IR,
    "sim/passes/xla": [*IR, "sim/passes/rewrite"],
    "sim/spmd/sharding": IR,
    "sim/spmd/gspmd": [*IR, "sim/spmd/sharding"],
    "sim/spmd/rules": [*IR, "sim/spmd/sharding"],
    "sim/spmd/propagation": [*IR, "sim/spmd/sharding", "sim/spmd/rules"],
    "sim/spmd/build": IR,
    "sim/spmd/local": [*IR, "sim/spmd/sharding", "sim/spmd/rules", "sim/spmd/propagation", "sim/spmd/build"],
    "sim/spmd/reshard": [*IR, "sim/spmd/sharding", "sim/spmd/build"],
    "sim/spmd/partition": [*IR, "sim/spmd/sharding", "sim/spmd/gspmd", "sim/spmd/propagation",
                           "sim/spmd/build", "sim/spmd/local", "sim/spmd/reshard"],
    "sim/native": IR,
    "sim/native/module": [*IR, "sim/native"],
    "sim/kernels": IR,
    "sim/kernels/elementwise": KERNELS,
    "sim/kernels/reduction": [*KERNELS, "sim/kernels/elementwise"],
    "sim/kernels/windows": [*KERNELS, "sim/kernels/elementwise", "sim/kernels/reduction"],
    "sim/kernels/movement": [*KERNELS, "sim/kernels/elementwise"],
    "sim/kernels/contraction": [*KERNELS, "sim/kernels/elementwise"],
    "sim/kernels/linalg": [*KERNELS, "sim/kernels/elementwise", "sim/kernels/contraction"],
    "sim/kernels/fft": KERNELS,
    "sim/kernels/fused/tile": [*KERNELS, "sim/kernels/elementwise", "sim/kernels/reduction"],
    "sim/kernels/fused": [*KERNELS, "sim/kernels/reduction", "sim/kernels/movement", "sim/kernels/fused/tile"],
    "sim/kernels/random": KERNELS,
    "sim/kernels/table": [*KERNELS, "sim/kernels/elementwise", "sim/kernels/reduction",
                          "sim/kernels/windows", "sim/kernels/movement", "sim/kernels/contraction",
                          "sim/kernels/linalg", "sim/kernels/fft", "sim/kernels/fused",
                          "sim/kernels/random"],
    "sim/foreign": [*IR, "sim/work"],
    "sim/fuse": [*IR, "sim/passes", "sim/passes/rewrite", "sim/native", "sim/kernels", "sim/kernels/elementwise",
                 "sim/kernels/fused", "sim/kernels/fused/tile", "sim/kernels/table"],
    "sim/mosaic/vectors": [*IR, "sim/mosaic/ir", "sim/passes/rewrite"],
    "sim/mosaic/run": [*KERNELS, "sim/mosaic/ir"],
    "sim/mosaic/check": [*KERNELS, "sim/mosaic/ir", "sim/mosaic/run"],
    "sim/mosaic/price": [*KERNELS, "sim/mosaic/ir", "sim/mosaic/run"],
    "sim/mosaic/compile": [*KERNELS, "sim/mosaic/ir", "sim/mosaic/vectors", "sim/mosaic/run", "sim/passes",
                           "sim/passes/desugar", "sim/passes/rewrite", "sim/fuse", "sim/kernels/table"],
    "sim/mosaic/kernel": [*KERNELS, "sim/mosaic/ir", "sim/mosaic/read", "sim/mosaic/run", "sim/mosaic/check", "sim/mosaic/compile"],
    "sim/loops": [*KERNELS, "sim/kernels/elementwise", "sim/kernels/reduction", "sim/kernels/fused/tile"],
    "topology/figures": [*BASE, "topology", "topology/presets"],
    "sim/work": IR,
    "sim/plan/partitioners": [*IR, "sim/ir/verify", "sim/readers", "sim/passes", "sim/foreign", "sim/spmd/sharding",
                              "sim/spmd/partition"],
    "sim/plan": [*IR, "sim/fuse", "sim/mosaic/kernel", "sim/loops", "sim/foreign", "sim/ir/print", "sim/ir/verify", "sim/readers", "sim/passes",
                 "sim/passes/attention", "sim/passes/rewrite", "sim/passes/xla", "sim/spmd/gspmd", "sim/spmd/partition", "sim/kernels",
                 "sim/kernels/elementwise", "sim/kernels/table", "sim/work", "sim/plan/partitioners", "topology",
                 "collectives"],
    "sim/chip/rules": [*BASE, "topology/figures"],
    "sim/chip/layout": [*IR, "sim/work"],
    "sim/chip/fuse": [*IR, "sim/plan", "topology/figures", "sim/work", "sim/chip/rules", "sim/chip/layout"],
    "sim/chip/spaces": [*IR, "topology/figures", "sim/work", "sim/chip/rules", "sim/chip/layout", "sim/chip/fuse"],
    "sim/chip/cost": [*IR, "topology", "topology/figures", "sim/work", "sim/chip/rules", "sim/chip/layout",
                      "sim/chip/fuse"],
    "sim/chip/mosaic": [*IR, "sim/mosaic/ir", "sim/mosaic/read", "sim/mosaic/price", "topology", "topology/figures", "sim/work",
                        "sim/chip/rules", "sim/chip/cost"],
    "sim/chip/basis": [*IR, "topology", "topology/figures", "sim/work", "sim/chip/rules", "sim/chip/layout", "sim/chip/fuse",
                       "sim/chip/cost"],
    "sim/chip/memory": [*IR, "sim/plan", "topology/figures", "sim/work", "sim/chip/rules", "sim/chip/layout",
                        "sim/chip/fuse"],
    "sim/chip/schedule": [*IR, "sim/plan", "topology/figures", "collectives", "sim/work", "sim/chip/rules", "sim/chip/layout",
                          "sim/chip/fuse", "sim/chip/cost", "sim/chip/memory"],
    "sim/chip/steps": [*IR, "sim/mosaic/price", "sim/mosaic/ir", "sim/chip/mosaic", "sim/plan", "topology", "topology/figures", "collectives", "sim/work", "sim/chip/rules",
                       "sim/chip/layout", "sim/chip/fuse", "sim/chip/cost", "sim/chip/basis", "sim/chip/memory",
                       "sim/chip/schedule"],
    "sim/chip": [*IR, "sim/mosaic/price", "sim/mosaic/ir", "sim/chip/mosaic", "sim/plan", "topology", "topology/figures", "collectives", "sim/work", "sim/chip/rules",
                 "sim/chip/layout", "sim/chip/fuse", "sim/chip/spaces", "sim/chip/cost", "sim/chip/basis",
                 "sim/chip/memory", "sim/chip/schedule", "sim/chip/steps"],
    "sim/chip/print": [*IR, "sim/mosaic/price", "sim/mosaic/ir", "sim/plan", "topology", "topology/figures", "collectives", "sim/work", "sim/chip",
                       "sim/chip/layout", "sim/chip/fuse", "sim/chip/spaces", "sim/chip/cost", "sim/chip/basis", "sim/chip/memory", "sim/chip/schedule"],
    "sim/model/network": [*BASE, "topology", "topology/figures", "collectives"],
    "sim/model/network/algorithms": [*BASE, "topology", "topology/figures", "collectives", "sim/model/network"],
    "sim/model/network/traffic": [*BASE, "collectives", "sim/model/network", "sim/model/network/algorithms"],
    "sim/model/faults": [*IR, "sim/plan", "topology", "topology/faults", "collectives", *NETWORK],
    "sim/model/clock/replay": [*CORE, "collectives", "sim/chip", "sim/model/network", "sim/model/network/traffic"],
    "sim/model/clock": [*IR, "sim/plan", "topology", "topology/figures", "collectives", "sim/work", "sim/chip", "sim/chip/cost", "sim/chip/mosaic", "sim/chip/rules", "sim/chip/steps", "sim/mosaic/price", "sim/mosaic/ir", *NETWORK,
                        "sim/model/faults", "sim/model/clock/replay"],
    "sim/model/report/events": [*IR, "sim/plan", "topology", "collectives", "sim/work", "sim/chip", "sim/chip/schedule", "sim/model/network", "sim/model/clock"],
    "sim/model/report": [*IR, "sim/mosaic/price", "sim/mosaic/ir", "sim/plan", "topology", "collectives", "sim/work", "sim/chip", "sim/chip/schedule", "sim/chip/cost", "sim/chip/basis", "sim/model/network", "sim/model/network/traffic",
                         "sim/model/clock", "sim/model/clock/replay", "sim/model/report/events"],
    "sim/model/picture": [*BASE, "topology", "collectives", "sim/model/network"],
    "sim/model/report/profile": [*IR, "sim/plan", "topology", "collectives", "sim/work", "sim/chip", "sim/chip/cost", "sim/chip/memory", "sim/model/network", "sim/model/clock", "sim/model/report",
                                 "sim/model/report/events"],
    "sim/runtime/memory": [*BASE, "topology"],
    "sim/runtime/devices": [*BASE, "topology", "sim/model/clock", "sim/model/network", "sim/model/faults", "sim/runtime/memory", "collectives/transport"],
    "sim/runtime/workers": [*BASE, "topology", "sim/runtime/devices"],
    "sim/runtime/buffers": [*IR, "topology", "sim/kernels", "sim/model/clock", "sim/model/faults", *RUNTIME],
    "sim/runtime/remote": [*BASE, *COLLECTIVES, *RUNTIME],
    "sim/runtime/parcels": [*IR, "collectives/transport", *RUNTIME, "sim/runtime/buffers", "sim/runtime/remote"],
    "sim/runtime/sessions": [*BASE, *COLLECTIVES, *RUNTIME, "sim/kernels", "sim/runtime/remote"],
    "sim/runtime/order": [*BASE, "topology", "sim/model/clock", "sim/model/faults", "sim/runtime/devices", "sim/runtime/remote", "sim/runtime/sessions"],
    "sim/runtime/replicas": [*IR, "sim/plan", "sim/runtime/memory", "sim/runtime/devices", "sim/runtime/buffers"],
    "sim/runtime/runs": [*IR, "sim/kernels", "sim/foreign", "sim/loops", "sim/plan", "sim/chip/memory", "sim/model/clock",
                           "sim/model/clock/replay", "sim/model/faults", "topology", *COLLECTIVES, *RUNTIME,
                           "sim/runtime/buffers", "sim/runtime/remote", "sim/runtime/sessions", "sim/runtime/order", "sim/runtime/replicas"],
    "sim/runtime/launch": [*IR, "sim/foreign", "sim/plan", "sim/model/clock", "sim/model/faults", "topology", *COLLECTIVES, *RUNTIME, "sim/runtime/buffers",
                           "sim/runtime/sessions", "sim/runtime/order", "sim/runtime/replicas", "sim/runtime/runs"],
    "sim/runtime/look": [*RUNTIME, *BASE, "sim/runtime/sessions", "sim/runtime/runs", "collectives"],
    "sim/runtime/circles": [*BASE, *COLLECTIVES, *RUNTIME, "sim/runtime/remote", "sim/runtime/sessions", "sim/runtime/order", "sim/runtime/runs"],
    "sim/runtime/watch": [*BASE, *COLLECTIVES, *RUNTIME, "sim/runtime/remote", "sim/runtime/sessions"],
    "sim/runtime": [*BASE, "topology", "topology/processes", "sim/model/clock", "sim/model/faults", "collectives/transport", "collectives/transport/tpu", "collectives/transport/bootstrap", *RUNTIME,
                    "sim/runtime/remote", "sim/runtime/sessions", "sim/runtime/order", "sim/runtime/runs", "sim/runtime/circles", "sim/runtime/watch"],
    "pjrt/c_api": [],
    "pjrt/compile": [*IR, "sim/ir/print", "sim/readers", "sim/readers/options", "sim/spmd/sharding", "sim/spmd/partition", "sim/plan"],
    "pjrt": [*IR, "sim/readers/options", "sim/native", "sim/foreign", "sim/chip", "sim/chip/cost", "sim/chip/memory", "sim/spmd/sharding", "sim/spmd/partition",
             "sim/plan", "sim/model/clock", "topology", "sim/runtime", "sim/runtime/memory", "sim/runtime/devices", "sim/runtime/buffers",
             "sim/runtime/parcels", "sim/runtime/runs", "sim/runtime/launch",
             "pjrt/c_api", "pjrt/compile"],
    "pjrt/package": [*CORE, "topology", "sim/ir", "sim/plan", "sim/foreign", "sim/model/clock", "sim/model/report", "sim/runtime", "sim/runtime/devices", "sim/runtime/workers", "sim/runtime/order", "sim/runtime/remote", "sim/runtime/parcels", "sim/runtime/runs", "sim/runtime/look",
                     "collectives/transport", "collectives/transport/bootstrap", "pjrt", "pjrt/compile"],
    "pjrt/extensions": [*BASE, "sim/foreign", "sim/model/report", "sim/model/report/profile", "sim/ir", "topology", "sim/runtime/devices", "sim/runtime/buffers",
                        "sim/runtime/parcels", "sim/runtime/runs", "pjrt/c_api", "pjrt", "pjrt/package"],
    "pjrt/command": [*IR, "sim/mosaic/ir", "sim/mosaic/read", "sim/ir/print", "sim/ir/verify", "sim/ir/compare", "sim/readers", "sim/readers/text", "sim/passes", "sim/spmd/gspmd",
                     "sim/spmd/propagation", "sim/spmd/rules", "sim/plan", "collectives", "topology", "topology/figures", *NETWORK, "sim/model/faults",
                     "sim/model/picture", "sim/model/clock", "sim/chip", "sim/chip/print", "sim/chip/rules",
                     "sim/runtime/buffers", "sim/runtime/devices", "pjrt/c_api", "pjrt", "pjrt/compile", "pjrt/package",
                     "pjrt/plugin"],
    "pjrt/plugin": [*CORE, "pjrt/c_api", "pjrt", "pjrt/extensions", "pjrt/package"],
}
TOPS = ("sim", "topology", "collectives", "pjrt")
TOP_LEVEL = {"CHANGELOG.md", "CMakeLists.txt", "CMakePresets.json", "CONTRIBUTING.md", "LICENSE", "NOTICE",
             "README.md", "SECURITY.md", "pyproject.toml",
             *TOPS, "configs", "tests", "tools"}
# What building and testing leave there, where no git says that it is not the tree's (.gitignore).
LEFT = re.compile(r"build.*|dist|__pycache__|.*\.egg-info|.*\.pyc|compile_commands\.json")
MAX_FILES = 26  # of a room: a longer list is hard to read
# Functions that macros and templates use by these names, which cannot have their file's.
NAMED_BY_MACROS = {("elementwise_complex.c", "multiply"), ("elementwise_complex.c", "negate")}
TYPE = re.compile(r"^\} (mp_\w+_t);", re.MULTILINE)
COMPARED = re.compile(r"\bcompiler\s*[!=]=")
FUNCTION = re.compile(r"^(?:MP_\w+ )*static\s[^;={}()]*?\b(\w+)\(", re.MULTILINE)
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')


def files_of(root: pathlib.Path, room: str):
  return sorted((root / room).glob("*.[ch]"))


def wrong_includes(root: pathlib.Path):
  """Includes that the table does not allow."""
  for room, known in KNOWS.items():
    for file in files_of(root, room):
      for number, line in enumerate(file.read_text().splitlines(), 1):
        match = INCLUDE.match(line)
        if match and match.group(1).rpartition("/")[0] not in (room, *known):
          yield (f"{file.relative_to(root)}:{number}: {room}/ may not include {match.group(1)}"
                 f" (it knows {', '.join(known) or 'nothing else'})")


def circles():
  """Rooms that know themselves by way of others."""
  for room in KNOWS:
    seen, todo = set(), list(KNOWS[room])
    while todo:
      other = todo.pop()
      if other not in seen:
        seen.add(other)
        todo.extend(KNOWS.get(other, ()))
    if room in seen:
      yield f"{room}/ stands in a circle of rooms that know each other"


def unknown_rooms(root: pathlib.Path):
  """Folders with C files that the table does not name."""
  for top in TOPS:
    for folder in sorted({file.parent for file in (root / top).rglob("*.[ch]")}):
      if str(folder.relative_to(root)) not in KNOWS:
        yield f"{folder.relative_to(root)}/ is no room of the table in tests/layers.py"


def repeated_names(root: pathlib.Path):
  """C files of one name, which look the same in a backtrace, and types of one name."""
  places = collections.defaultdict(list)
  for top in (*TOPS, "tests", "tools"):
    for file in sorted((root / top).rglob("*.[ch]")):
      types = TYPE.findall(file.read_text()) if top in TOPS else []
      for name in (file.name, *types):
        places[name].append(str(file.relative_to(root)))
  for name, paths in places.items():
    if len(paths) > 1:
      yield f"{name} is named in several files: {', '.join(paths)}"


def full_rooms(root: pathlib.Path):
  """Rooms, and folders of tests, that hold too much; rooms that do not say what they hold."""
  for folder in (*KNOWS, *sorted({str(file.parent.relative_to(root)) for file in (root / "tests").rglob("*.[chp]*")})):
    count = sum(1 for file in (root / folder).iterdir() if file.suffix in (".c", ".h", ".py"))
    if count > MAX_FILES:
      yield f"{folder}/ holds {count} files of code, more than {MAX_FILES}"
  for room in KNOWS:
    if not (root / room / "README.md").exists():
      yield f"{room}/ has no README.md"


def unnamed_files(root: pathlib.Path):
  """Files that the README of their room does not name, with or without the ending."""
  for room in KNOWS:
    readme = root / room / "README.md"
    words = set(re.findall(r"\w+", readme.read_text())) if readme.exists() else set()
    for stem in sorted({file.stem for file in files_of(root, room)} - words):
      yield f"{room}/README.md does not name {stem}"


def stale_names(root: pathlib.Path):
  """C files and paths that a README names, and that are not in the tree."""
  names = {file.name for top in (*TOPS, "tests", "tools") for file in (root / top).rglob("*.[ch]")}
  for room in KNOWS:
    readme = root / room / "README.md"
    text = readme.read_text() if readme.exists() else ""
    for span in re.findall(r"`([^`\n]*)`", text):
      for path in re.findall(r"(?<![\w./])((?:sim|topology|collectives|pjrt)/[\w./]*\w|\w+\.[ch]\b)", span):
        folder, _, name = path.rpartition("/")
        is_there = name in names if not folder else any(
            (root / (path + ending)).exists() for ending in ("", ".c", ".h"))
        if not is_there:
          yield f"{room}/README.md names {path}, which is not in the tree"


def strange_top_level(root: pathlib.Path):
  """What stands beside the folders of the tree: the top level is read first, and stays short."""
  names = {path.name for path in root.iterdir() if not LEFT.fullmatch(path.name)}
  if (root / ".git").exists():
    listed = subprocess.run(["git", "-C", str(root), "ls-files"], capture_output=True, text=True, check=True).stdout
    names = {path.partition("/")[0] for path in listed.splitlines()}
  for name in sorted(names - TOP_LEVEL):
    if not name.startswith("."):
      yield f"{name} is no name of the top level: {', '.join(sorted(TOP_LEVEL))}"


def nameless_functions(root: pathlib.Path):
  """File-level functions that do not say which file they are of."""
  for room in KNOWS:
    for file in files_of(root, room):
      if file.suffix != ".c":
        continue
      for match in FUNCTION.finditer(file.read_text()):
        name = match.group(1)
        if (name != file.stem and not name.startswith(file.stem + "_") and name.islower()
            and not name.startswith("_") and (file.name, name) not in NAMED_BY_MACROS):
          line = file.read_text().count("\n", 0, match.start(1)) + 1
          yield f"{file.relative_to(root)}:{line}: {name} does not begin with {file.stem}_"


def compared_compilers(root: pathlib.Path):
  """Where the chip model asks which compiler a chip has, instead of what that does."""
  for room in KNOWS:
    for file in files_of(root, room) if room.startswith("sim/chip") else []:
      text = file.read_text()
      for match in COMPARED.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        yield f"{file.relative_to(root)}:{line}: compares the compiler: ask for a property (sim/chip/rules/chip_policy.h)"


def main() -> int:
  parser = argparse.ArgumentParser(description="Checks the plan of the C tree.")
  parser.add_argument("root", nargs="?", type=pathlib.Path, default=pathlib.Path(__file__).parents[1])
  parser.add_argument("--objects", metavar="BUILD", type=pathlib.Path, help="also checks the objects of this build")
  args = parser.parse_args()
  root = args.root.resolve()
  wrong = [*wrong_includes(root), *circles(), *unknown_rooms(root), *full_rooms(root),
           *unnamed_files(root), *stale_names(root), *repeated_names(root), *strange_top_level(root), *nameless_functions(root),
           *compared_compilers(root)]
  if args.objects is not None:
    import layers_objects  # only here: the tables above serve scripts in other folders, too
    wrong += layers_objects.findings(root, args.objects.resolve(), KNOWS)
  for finding in wrong:
    print(finding)
  files = sum(len(files_of(root, room)) for room in KNOWS)
  print(f"layers: {files} files in {len(KNOWS)} rooms, {len(wrong)} findings")
  return 1 if wrong else 0


if __name__ == "__main__":
  sys.exit(main())

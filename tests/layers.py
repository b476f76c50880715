#!/usr/bin/env python3
"""Checks that the layers of the C tree include only what they may know.

    tests/layers.py [ROOT]

Prints each include that points the wrong way and exits 1, or a count and exits 0.
"""

import pathlib
import re
import sys

# Layer: the layers it may include besides its own.  Arrows go one way only.
KNOWS = {
    "sim/base": [],
    "topology": ["sim/base"],
    "collectives": ["sim/base", "topology", "collectives/mpi"],
    "collectives/mpi": [],
    "sim/ir": ["sim/base"],
    "sim/readers": ["sim/base", "sim/ir"],
    "sim/passes": ["sim/base", "sim/ir"],
    "sim/spmd": ["sim/base", "sim/ir"],
    "sim/kernels": ["sim/base", "sim/ir"],
    "sim/plan": ["sim/base", "sim/ir", "sim/readers", "sim/passes", "sim/spmd", "sim/kernels",
                 "topology", "collectives"],
    "sim/runtime": ["sim/base", "sim/ir", "sim/readers", "sim/passes", "sim/spmd", "sim/kernels",
                    "sim/plan", "topology", "collectives"],
    "pjrt": ["sim/base", "sim/ir", "sim/readers", "sim/passes", "sim/spmd", "sim/plan",
             "sim/runtime", "topology"],
}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')


def layer_of(path: str) -> str | None:
  """The layer a path from the root lies in; the innermost one."""
  folder = path.rpartition("/")[0]
  return folder if folder in KNOWS else None


def violations(root: pathlib.Path):
  """Yields (file:line, layer, included) for each include that a layer may not have."""
  for layer, known in KNOWS.items():
    for file in sorted((root / layer).glob("*.[ch]")):
      for number, line in enumerate(file.read_text().splitlines(), 1):
        match = INCLUDE.match(line)
        if match and layer_of(match.group(1)) not in (layer, *known):
          yield f"{file.relative_to(root)}:{number}", layer, match.group(1)


def main() -> int:
  root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else __file__).resolve()
  root = root if root.is_dir() else root.parents[1]
  wrong = list(violations(root))
  for where, layer, included in wrong:
    print(f"{where}: {layer}/ may not include {included}"
          f" (it knows {', '.join(KNOWS[layer]) or 'nothing else'})")
  files = sum(1 for layer in KNOWS for _ in (root / layer).glob("*.[ch]"))
  print(f"layers: {files} files, {len(wrong)} includes that point the wrong way")
  return 1 if wrong else 0


if __name__ == "__main__":
  sys.exit(main())

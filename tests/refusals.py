#!/usr/bin/env python3
"""Checks that the library asks the system only through the functions that tests can make fail.

    tests/refusals.py [ROOT]

What can be refused (memory, mappings, threads, files) is asked for through sim/base/alloc.h and
sim/base/os/system.h.  Prints each call of an original elsewhere and exits 1, or a count and exits 0.
"""

import pathlib
import re
import sys

FOLDERS = ["sim", "topology", "collectives", "pjrt"]
# These are the doors; the modules are libraries of their own, which know nothing of ours.
EXEMPT = ["sim/base/alloc.c", "sim/base/os/system.c"]
EXEMPT_FOLDERS = ["collectives/transport/mpi", "sim/native/module"]
CALLS = {
    "sim/base/alloc.h": "malloc calloc realloc reallocarray free cfree strdup strndup asprintf vasprintf"
                        " open_memstream fmemopen posix_memalign aligned_alloc memalign valloc getline getdelim"
                        " scandir realpath",
    "sim/base/os/system.h": "mmap mmap64 munmap mremap memfd_create shm_open pthread_create thrd_create open open64"
                         " openat creat fopen fopen64 fdopen freopen opendir fdopendir eventfd timerfd_create"
                         " epoll_create1 pipe pipe2 tmpfile mkstemp",
}
DOOR_OF = {name: door for door, names in CALLS.items() for name in names.split()}
# Not a member (x.open, x->open), not part of a longer name, not a declaration of our own.
CALL = re.compile(r"(?<![\w.>])(" + "|".join(DOOR_OF) + r")\s*\(")
NOISE = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.S)


def blank(match: re.Match) -> str:
  """Keeps the lines of what is left out."""
  return "\n" * match.group(0).count("\n")


def is_exempt(file: pathlib.Path, root: pathlib.Path) -> bool:
  path = file.relative_to(root)
  return path.as_posix() in EXEMPT or path.parent.as_posix() in EXEMPT_FOLDERS


def main() -> int:
  root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else __file__).resolve()
  root = root if root.is_dir() else root.parents[1]
  files = [f for folder in FOLDERS for f in sorted((root / folder).rglob("*.[ch]")) if not is_exempt(f, root)]
  wrong = 0
  for file in files:
    text = NOISE.sub(blank, file.read_text())
    for match in CALL.finditer(text):
      wrong += 1
      line = text.count("\n", 0, match.start()) + 1
      print(f"{file.relative_to(root)}:{line}: {match.group(1)}() is called directly;"
            f" {DOOR_OF[match.group(1)]} has a function for it that tests can make fail")
  print(f"refusals: {len(files)} files, {wrong} direct calls")
  return 1 if wrong else 0


if __name__ == "__main__":
  sys.exit(main())

#!/usr/bin/env python3
"""Runs the examples of the site's pages, and compares their output with the output on the page.

    tools/site/blocks.py [--write] PAGE ...

A `code-block` with a caption is a file of that name.  A `code-block` of the console has commands, which begin with `$
`, and their output on either stream.  `...` stands for any text, within a line or for lines.  With `:class: times`
numbers may differ by half: they are predicted times, which change with the model's parameters.  All blocks of a page
run in one folder, one after the other.

`--write` replaces the output on the page by that of the commands, in blocks without `...`.
"""

import dataclasses
import difflib
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator

FENCE = re.compile(r"^(?P<fence>```+)\{code-block\} (?P<kind>\w+)\n(?P<options>(?::[\w-]+:[^\n]*\n)*)\n?(?P<text>.*?)^(?P=fence)$",
                   re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?")
TIMES_DIFFER = 0.5


@dataclasses.dataclass
class Block:
  kind: str
  text: str
  options: dict[str, str]
  start: int  # where its text is in the page

  @property
  def file(self) -> str | None:
    return self.options.get("caption")

  @property
  def has_times(self) -> bool:
    return "times" in self.options.get("class", "")

  def commands(self) -> Iterator[tuple[str, str]]:
    """Each command, and the output printed below it."""
    for part in re.split(r"^\$ ", self.text, flags=re.MULTILINE)[1:]:
      lines = part.splitlines(keepends=True)
      count = 1 + next(i for i, line in enumerate(lines) if not line.endswith("\\\n"))
      yield "".join(lines[:count]), "".join(lines[count:])


def read(page: str) -> list[Block]:
  made = []
  for match in FENCE.finditer(page):
    options = dict(re.findall(r"^:([\w-]+): *(.*)$", match["options"], re.MULTILINE))
    made.append(Block(match["kind"], match["text"], options, match.start("text")))
  return made


def words(text: str, has_times: bool) -> str:
  """The text that is compared: lines without trailing blanks; with `times`, also without columns."""
  lines = (re.sub(r"\s+", " ", line).strip() if has_times else line.rstrip() for line in text.splitlines())
  return "\n".join(lines).strip("\n")


def near(told: str, printed: str) -> bool:
  a, b = (float(text.replace(",", "")) for text in (told, printed))
  return abs(a - b) <= TIMES_DIFFER * max(abs(a), abs(b)) or max(abs(a), abs(b)) < 1


def agree(told: str, printed: str, has_times: bool = False) -> bool:
  """Whether a command has printed what the page shows."""
  told, printed = words(told, has_times) + "\n", words(printed, has_times) + "\n"
  pattern, at, numbers = "", 0, []
  for match in re.finditer(rf"(?P<lines>^\.\.\.\n)|(?P<any>\.\.\.)|(?P<number>{NUMBER.pattern})", told, re.MULTILINE):
    pattern += re.escape(told[at:match.start()])
    at = match.end()
    if match["lines"]:
      pattern += r"(?:[^\n]*\n)*?"
    elif match["any"]:
      pattern += ".*?"
    elif has_times:
      numbers.append(match["number"])
      pattern += f"({NUMBER.pattern})"
    else:
      pattern += re.escape(match["number"])
  found = re.fullmatch(pattern + re.escape(told[at:]), printed, re.DOTALL)
  return found is not None and all(map(near, numbers, found.groups()))


def run(blocks: list[Block], folder: pathlib.Path, execute: Callable[[str, pathlib.Path], str]
        ) -> Iterator[tuple[Block, str, str, str]]:
  """Runs the blocks of a page in a folder.  Yields each command with its block, the output that the page shows, and the
  output that it has printed.
  """
  for block in blocks:
    if block.file is not None:
      (folder / block.file).parent.mkdir(parents=True, exist_ok=True)
      (folder / block.file).write_text(block.text)
    elif block.kind == "console":
      for command, told in block.commands():
        yield block, command, told, execute(command, folder)


def difference(told: str, printed: str) -> str:
  return "\n".join(difflib.unified_diff(told.splitlines(), printed.splitlines(), "told", "printed", lineterm=""))


def environment() -> dict[str, str]:
  """The variables of this process, without settings of minipod or JAX."""
  env = {name: value for name, value in os.environ.items()
         if not name.startswith(("MINIPOD_", "JAX_", "XLA_")) or name == "MINIPOD_LIBRARY"}
  return env | {"JAX_PLATFORMS": "minipod", "PATH": f"{pathlib.Path(sys.executable).parent}:{env['PATH']}"}


def execute(command: str, folder: pathlib.Path) -> str:
  """The output of a command."""
  return subprocess.run(["bash", "-c", command], cwd=folder, env=environment(), stdin=subprocess.DEVNULL, text=True,
                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout


def main(names: list[str]) -> int:
  wrong, write = 0, "--write" in names
  for name in (each for each in names if each != "--write"):
    page, text = pathlib.Path(name), pathlib.Path(name).read_text()
    new = text
    with tempfile.TemporaryDirectory() as folder:
      for block, command, told, printed in run(read(text), pathlib.Path(folder), execute):
        if agree(told, printed, block.has_times):
          continue
        wrong += 1
        print(f"{name}: $ {command}{difference(told, printed)}")
        if "..." not in told:
          new = new.replace(f"$ {command}{told}", f"$ {command}{printed}", 1)
    if write and new != text:
      page.write_text(new)
  return 1 if wrong else 0


if __name__ == "__main__":
  if "--help" in sys.argv:
    print(__doc__)
  else:
    sys.exit(main(sys.argv[1:]) if len(sys.argv) > 1 else __doc__)

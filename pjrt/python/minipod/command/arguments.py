"""What the parsers of verbs share."""

import argparse
import sys

import minipod


def parser(verb: str, about: str, **keywords) -> argparse.ArgumentParser:
  """A parser whose mistakes are exit code 2 and one line behind its usage."""
  made = argparse.ArgumentParser(prog=f"minipod {verb}", description=about,
                                 formatter_class=argparse.RawDescriptionHelpFormatter, **keywords)
  made.add_argument("--version", action="version", version=f"minipod {minipod.__version__}")
  return made


def words(made: argparse.ArgumentParser, rest: list[str], what: str) -> list[str]:
  """The command (`what` it is to be) that ends a verb's arguments, behind a `--` or not."""
  command = rest[1:] if rest[:1] == ["--"] else rest
  if not command:
    made.error(f"a {what} is missing")
  return command


def as_command(command: list[str]) -> list[str]:
  """A script, or -m MODULE, is for this Python."""
  is_python = command[0].endswith(".py") or command[0] == "-m"
  return [sys.executable, *command] if is_python else command


def columns(rows: list[tuple[str, ...]], indent: str = "  ") -> str:
  """Rows of words as a table without lines."""
  if not rows:
    return ""
  widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
  return "\n".join(
      (indent + "  ".join(word.ljust(width) for word, width in zip(row, widths))).rstrip()
      for row in rows)

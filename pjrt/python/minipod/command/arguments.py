"""Functions that the parsers of all verbs share."""

import argparse
import sys

import minipod


def parser(verb: str, about: str, **keywords) -> argparse.ArgumentParser:
  """A parser that reports a usage error in one line after the usage, with exit code 2."""
  made = argparse.ArgumentParser(prog=f"minipod {verb}", description=about,
                                 formatter_class=argparse.RawDescriptionHelpFormatter, **keywords)
  made.add_argument("--version", action="version", version=f"minipod {minipod.__version__}")
  return made


def words(made: argparse.ArgumentParser, rest: list[str], what: str) -> list[str]:
  """The command that ends a verb's arguments, with or without `--` before it; `what` describes it in the error."""
  command = rest[1:] if rest[:1] == ["--"] else rest
  if not command:
    made.error(f"a {what} is missing")
  return command


def as_command(command: list[str]) -> list[str]:
  """Makes a command line of a script or `-m MODULE`, which this Python runs."""
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

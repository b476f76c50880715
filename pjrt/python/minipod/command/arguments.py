"""What the parsers of verbs share."""

import argparse

import minipod


def parser(verb: str, about: str, **keywords) -> argparse.ArgumentParser:
  """A parser whose mistakes are exit code 2 and one line behind its usage."""
  made = argparse.ArgumentParser(prog=f"minipod {verb}", description=about,
                                 formatter_class=argparse.RawDescriptionHelpFormatter, **keywords)
  made.add_argument("--version", action="version", version=f"minipod {minipod.__version__}")
  return made


def columns(rows: list[tuple[str, ...]], indent: str = "  ") -> str:
  """Rows of words as a table without lines."""
  if not rows:
    return ""
  widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
  return "\n".join(
      (indent + "  ".join(word.ljust(width) for word, width in zip(row, widths))).rstrip()
      for row in rows)

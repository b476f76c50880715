"""Reads the lists in the C code: macros whose rows are X(...), as in sim/base/table.h."""

import ast
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
# A string literal with its escapes, or a character that separates columns or rows.
TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|[(),]|[^"(),]+')


def body(file: str, name: str) -> str:
  """The body of a macro with one parameter."""
  text = (ROOT / file).read_text()
  match = re.search(rf"^#define {name}\(X\)((?:.*\\\n)*.*)$", text, re.MULTILINE)
  if match is None:
    raise LookupError(f"{file} has no list {name}")
  return match.group(1).replace("\\\n", "\n")


def cut(row: str) -> list[str]:
  """The columns of a row; adjacent string literals are one."""
  columns, depth = [[]], 0
  for token in TOKEN.findall(row):
    depth += {"(": 1, ")": -1}.get(token, 0)
    if token == "," and depth == 0:
      columns.append([])
    elif token.strip():
      columns[-1].append(ast.literal_eval(token) if token[0] == '"' else token.strip())
  return ["".join(parts) for parts in columns]


def rows(file: str, name: str) -> list[list[str]]:
  """The rows of a list, including the rows of the lists that it names."""
  made, text, at = [], body(file, name), 0
  for match in re.finditer(r"\b(X|MP_\w+)\(", text):
    if match.start() < at:
      continue
    depth, end = 1, match.end()
    for token in TOKEN.finditer(text, match.end()):
      depth += {"(": 1, ")": -1}.get(token.group(), 0)
      end = token.end()
      if depth == 0:
        break
    inner = text[match.end():end - 1]
    made += rows(file, match.group(1)) if inner == "X" else [cut(inner)]
    at = end
  return made

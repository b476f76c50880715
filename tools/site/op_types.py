"""Finds which element types each operation accepts, by compiling a small program of the operation
(tests/fixtures/op_samples.txt) with every type in place of its own.
"""

import ctypes
import os
import pathlib
import re
import tempfile

from c_lists import ROOT, rows

SAMPLES = ROOT / "tests/fixtures/op_samples.txt"
# How a program states its number of devices: some count replicas, some partitions.
CONTEXTS = [("--devices", "4"), ("--devices", "2"), (4,), (2,)]
ZERO = {"SIGNED": "0", "UNSIGNED": "0", "BOOL": "false", "FLOAT": "0.0", "COMPLEX": "(0.0, 0.0)"}
# How values of a type are compared.
COMPARISON = {"SIGNED": "SIGNED", "UNSIGNED": "UNSIGNED", "BOOL": "UNSIGNED", "FLOAT": "FLOAT", "COMPLEX": "FLOAT"}
TENSOR = re.compile(r"tensor<(?:\d+x)*(\w+)>")


class Compiler:
  """`minipod partition --commands` in this process, without its output."""

  def __init__(self, library: str, folder: pathlib.Path):
    os.environ["MINIPOD_LOG_LEVEL"] = "off"
    self._library = ctypes.CDLL(library)
    self._c = ctypes.CDLL(None)
    self._folder = folder

  def takes(self, program: str, context: tuple) -> str | None:
    """None if the library makes commands of it; else the message."""
    words = ["--commands"]
    if isinstance(context[0], int):
      program = f"module attributes {{mhlo.num_replicas = {context[0]} : i32}} {{\n{program}}}\n"
    else:
      words += context
    file = self._folder / "program.mlir"
    file.write_text(program)
    words = [word.encode() for word in (*words, str(file))]
    with open(self._folder / "said", "w+b") as said:
      kept = os.dup(1), os.dup(2)
      for number in (1, 2):
        os.dup2(said.fileno(), number)
      code = self._library.minipod_command(b"partition", len(words), (ctypes.c_char_p * len(words))(*words))
      self._c.fflush(None)
      for number, old in zip((1, 2), kept):
        os.dup2(old, number)
        os.close(old)
      said.seek(0)
      return None if code == 0 else said.read().decode().strip()


def own_type(program: str) -> str | None:
  """The type that a sample is about: the type of its first result or operand that is not boolean."""
  head = program[program.find("func.func @main"):].partition("\n")[0]
  operands, _, results = head.partition("->")
  found = TENSOR.findall(results) + TENSOR.findall(operands)
  return next((name for name in found if name != "i1"), found[0] if found else None)


def with_type(program: str, old: str, name: str, kind: str) -> str:
  """The program with a type in place of another one, with constants and comparisons for the new type."""
  program = re.sub(rf"dense<-?[\d.]+(?:e[+-]?\d+)?>(?= : tensor<(?:\d+x)*{old}>)", f"dense<{ZERO[kind]}>", program)
  program = re.sub(r", FLOAT(?= :)", f", {COMPARISON[kind]}", program)
  if kind == "COMPLEX":  # the type has no order
    program = re.sub(r"(?<=compare )(LT|GE)\b", "EQ", program)
  return re.sub(rf"(?<=[<x]){old}\b|(?<=: ){old}\b", name, program)


def table(library: str) -> list[tuple[str, str, dict]]:
  """For each operation: its name, the message if it is refused (or ""), and whether it accepts each type.

  Operations whose sample has no tensor have no types.
  """
  types = [(name, kind) for _, name, kind, *rest in rows("sim/numeric/dtype.h", "MP_DTYPES") if rest[7] != "0"]
  made = []
  with tempfile.TemporaryDirectory() as folder:
    compiler = Compiler(library, pathlib.Path(folder))
    for name, program in re.findall(r"^=== (.*)\n((?:(?!===).*\n?)*)", SAMPLES.read_text(), re.MULTILINE):
      for context in CONTEXTS:
        said = compiler.takes(program, context)
        if said is None:
          break
      takes = {}
      if said is None and (own := own_type(program)):
        takes = {each: compiler.takes(with_type(program, own, each, kind), context) is None
                 for each, kind in types}
      made.append((name, said or "", takes))
  return made


"""Runs a piece of Python with torch_xla in a process of its own."""

import os
import textwrap

import scenario

HERE = os.path.dirname(os.path.abspath(__file__))
PRELUDE = """\
import sys; sys.path.insert(0, {here!r})
import numpy as np, torch, torch_xla
import torch_xla.core.xla_model as xm, torch_xla.runtime as xr
"""
# How programs come to the plugin: as HLO protos, unless this variable asks for StableHLO.
FORMS = {"hlo": {}, "stablehlo": {"XLA_STABLEHLO_COMPILE": "1"}}


def run(code, devices=4, form="hlo", timeout=120, fails=False, **variables):
  """The output of the code; with `fails`, its standard error."""
  settings = {"PJRT_DEVICE": "MINIPOD", **FORMS[form], **variables}
  return scenario.run(textwrap.dedent(code), devices, timeout, fails,
                      prelude=PRELUDE.format(here=HERE), **settings)


def run_file(code, folder, **options):
  """The same for code that starts processes, which import it from a file in the folder."""
  (folder / "launched.py").write_text(PRELUDE.format(here=HERE) + textwrap.dedent(code))
  return run(f"""
      sys.path.insert(0, {str(folder)!r})
      import launched
      launched.main()
      """, **options)


def numbers(output):
  """The numbers of the line that begins with "numbers"."""
  line = next(line for line in output.splitlines() if line.startswith("numbers "))
  return [float(word) for word in line.split()[1:]]


def library():
  import minipod
  return minipod.library_path()

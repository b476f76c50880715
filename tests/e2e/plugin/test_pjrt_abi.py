"""Our declarations of the PJRT C API against those that other projects ship.

build/tests/dump_abi prints our layout. pypjrt brings ctypes structs of minor 114; the wheels of
xla-cpu-pjrt and tensorflow-cpu bring older headers, which a small generated program prints in the
same form (only with `tools/test --full`: MINIPOD_TEST_FULL=1; they are big downloads).
"""

import ctypes
import os
import pathlib
import re
import shutil
import subprocess
import sys
import zipfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
BUILD = pathlib.Path(os.environ.get("MINIPOD_BUILD", ROOT / "build"))
FACT = re.compile(r"^(SLOT|STRUCT|FIELD|ENUM|VERSION)\((.*)\)$")

# Fields and values that are newer than a header's minor version may be missing in it.  Minor 68 changed without a new
# field: its Plugin_Attributes ended its size one field early.
CHANGED = {"PJRT_Plugin_Attributes_Args"}
# minipod keeps the layout from before minor 114 on purpose (c_api_profiler.h).
OLDER = {"PLUGIN_Profiler_Api"}
# Structs that have grown since minor 114, with their new fields.
NEWER = {"PJRT_ExecuteOptions": {"custom_options", "num_custom_options"},
         "PJRT_Client_CreateErrorBuffer_Args": {"device_layout"}}


def parse(text):
  """{(kind, name, field or None): tuple of numbers}"""
  facts = {}
  for line in text.splitlines():
    match = FACT.match(line)
    if not match:
      continue
    words = [word.strip() for word in match.group(2).split(",")]
    names = tuple(word for word in words if not word.lstrip("-").isdigit())
    facts[(match.group(1), *names)] = tuple(int(w) for w in words[len(names) :])
  return facts


@pytest.fixture(scope="module")
def ours():
  program = BUILD / "tests" / "dump_abi"
  if not program.exists():
    pytest.skip(f"{program} is not built")
  return parse(subprocess.run([program], check=True, capture_output=True, text=True).stdout)


def test_the_dump_is_what_the_fixture_says(ours):
  fixture = parse((ROOT / "tests/fixtures/pjrt_abi.txt").read_text())
  assert ours.pop(("VERSION",)) == (0, 117)
  assert ours == fixture


def test_pypjrt_agrees(ours):
  abi = pytest.importorskip("pypjrt._abi.pjrt_0_114")
  # pypjrt numbers the slots; minor 114 already has slot 137 and everything else of minipod's.
  wrong = []
  compared = 0
  for (kind, name, *field), numbers in ours.items():
    if kind == "SLOT":
      theirs = (abi.SLOT.get(name), 40 + 8 * abi.SLOT.get(name, -100))
    elif kind == "ENUM":
      theirs = (getattr(abi, name, None),)
    elif kind == "VERSION" or not hasattr(abi, name) or kind == "STRUCT" and name in OLDER | NEWER.keys():
      continue
    elif field and field[0] in NEWER.get(name, ()):
      continue
    elif kind == "STRUCT":
      theirs = (ctypes.sizeof(getattr(abi, name)), numbers[1])
    else:
      descriptor = getattr(getattr(abi, name), field[0], None)
      theirs = descriptor and (descriptor.offset, descriptor.size)
    compared += 1
    if theirs != numbers:
      wrong.append((kind, name, *field, numbers, theirs))
  assert not wrong
  assert compared > 1300


def fetch_header(package, directory):
  """The pjrt_c_api.h inside a wheel, and a folder to include it from."""
  command = [sys.executable, "-m", "pip", "download", "--no-deps", "-q", "-d", directory, package]
  result = subprocess.run(command, capture_output=True, text=True, timeout=900)
  if result.returncode != 0:
    pytest.skip(f"pip cannot download {package}: {result.stderr.strip().splitlines()[-1:]}")
  for wheel in pathlib.Path(directory).glob("*.whl"):
    with zipfile.ZipFile(wheel) as archive:
      for name in archive.namelist():
        if name.endswith("pjrt_c_api.h"):
          target = pathlib.Path(directory) / "pjrt_c_api.h"
          target.write_bytes(archive.read(name))
          return target
  pytest.skip(f"{package} ships no pjrt_c_api.h")


def lines_for(header, facts):
  """printf lines for what the old header declares of our facts."""
  text = re.sub(r"//.*", "", header.read_text())
  lines = []
  for kind, name, *field in facts:
    known = re.search(rf"\b{name}\b", text)
    if kind == "VERSION" or not known:
      continue
    if kind == "SLOT":
      lines.append(f'printf("SLOT({name}, %zu, %zu)\\n", '
                         f"(offsetof(PJRT_Api, {name}) - 40) / 8, offsetof(PJRT_Api, {name}));")
    elif kind == "ENUM":
      lines.append(f'printf("ENUM({name}, %d)\\n", (int){name});')
    elif kind == "FIELD":
      struct = re.search(rf"struct {name} \{{(.*?)\n\}};", text, re.S)
      if struct and re.search(rf"\b{field[0]}(\[\w*\])?;|\*{field[0]}\)", struct.group(1)):
        lines.append(f'printf("FIELD({name}, {field[0]}, %zu, %zu)\\n", '
                             f"offsetof({name}, {field[0]}), sizeof((({name} *)0)->{field[0]}));")
  return lines


@pytest.mark.skipif(not os.environ.get("MINIPOD_TEST_FULL"), reason="only with tools/test --full")
@pytest.mark.parametrize("package", ["xla-cpu-pjrt", "tensorflow-cpu"])
def test_older_headers_agree(ours, package, tmp_path):
  compiler = shutil.which("cc") or pytest.skip("no C compiler")
  header = fetch_header(package, str(tmp_path))
  lines = lines_for(header, ours)
  source = tmp_path / "dump.c"
  source.write_text('#include <stdio.h>\n#include "pjrt_c_api.h"\nint main(void) {\n'
                      + "\n".join(lines) + "\n}\n")
  program = tmp_path / "dump"
  subprocess.run([compiler, "-w", "-o", program, source], check=True)
  theirs = parse(subprocess.run([program], check=True, capture_output=True, text=True).stdout)
  wrong = {key: (ours[key], value) for key, value in theirs.items()
             if ours[key] != value and key[1] not in CHANGED}
  assert not wrong
  assert len(theirs) > 700

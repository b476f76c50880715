"""Compares minipod's declarations of XLA's FFI (sim/foreign/foreign_abi.h) with the header in jaxlib."""

import pathlib
import re
import shutil
import subprocess

import jax
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
OURS = ROOT / "sim/foreign/foreign_abi.h"
THEIRS = pathlib.Path(jax.ffi.include_dir()) / "xla/ffi/api/c_api.h"

MINOR = int(re.search(r"XLA_FFI_API_MINOR (\d+)", THEIRS.read_text()).group(1))
# minipod's declarations are those of 0.5, with the older names of things that 0.4 has renamed.
if MINOR < 4:
  OUR_NAMES = {"XLA_FFI_Error_GetMessage_Args": "XLA_FFI_Error_GetDetails_Args",
               "XLA_FFI_Handler_Register_Args": "XLA_FFI_Handler_Register_Args_V03"}
  OUR_SLOTS = {"XLA_FFI_Error_GetMessage": "XLA_FFI_Error_GetDetails"}
else:
  OUR_NAMES = {"XLA_FFI_InternalExtension": "XLA_FFI_Extension_Base",
               "XLA_FFI_InvokeContext_Get_Args": "XLA_FFI_ExecutionContext_Get_Args"}
  OUR_SLOTS = {"XLA_FFI_InvokeContext_Get": "XLA_FFI_ExecutionContext_Get"}
# minipod's contexts have no extensions; members that a bundle has since 0.4 follow them.
NO_FIELDS = {("XLA_FFI_Extension", "struct_size"), ("XLA_FFI_Extension", "id"),
             ("XLA_FFI_Extension", "next"), ("XLA_FFI_ExtensionId", "extension_type"),
             ("XLA_FFI_ExtensionId", "major_version"), ("XLA_FFI_ExtensionId", "minor_version"),
             ("XLA_FFI_Handler_Bundle", "record")}
if MINOR >= 4:
  NO_FIELDS.add(("XLA_FFI_Handler_Register_Args", "bundle"))
# minipod's declarations list all codes from 0 to 16.
NOT_OURS = re.compile(r"XLA_FFI_Error_Code_|XLA_FFI_DataType_[SU]1$")


def facts_of(header: pathlib.Path):
  """Struct fields as (struct, field), and enumerators, that a header declares."""
  text = re.sub(r"//.*|/\*.*?\*/", "", header.read_text())
  text = text.replace("XLA_FFI_HEAD;", "size_t struct_size; XLA_FFI_Extension_Base *extension_start;")
  text = re.sub(r"_XLA_FFI_API_STRUCT_FIELD\((\w+)\);", r"int *\1;", text)
  functions = re.findall(r"^  X\([^,]+, (\w+)\)", text, re.MULTILINE)
  text = re.sub(r"#define XLA_FFI_SLOT.*\n.*\n#undef.*", "".join(f"int *{f};" for f in functions), text)
  fields = set()
  for name, body in re.findall(r"struct (XLA_FFI_\w+) \{(.*?)\n\}", text, re.DOTALL):
    for declaration in body.split(";"):
      found = re.search(r"\(\*(\w+)\)\(|(\w+)\s*$", declaration.strip())
      if found:
        fields.add((name, found.group(1) or found.group(2)))
  enumerators = set(re.findall(r"\b(XLA_FFI_\w+) = ", text))
  return fields, enumerators


def values(header: pathlib.Path, fields, enumerators, folder):
  """The constants and sizes that a C compiler computes from the declarations."""
  lines = [f'printf("%zu %zu\\n", offsetof({s}, {f}), sizeof((({s} *)0)->{f}));' for s, f in fields]
  lines += [f'printf("%lld\\n", (long long){e});' for e in enumerators]
  source = folder / f"{header.stem}.c"
  # The header declares some structs without a typedef, so they need the word `struct`.
  types = "".join(f"typedef struct {n} {n};\n" for n in sorted({s for s, _ in fields}))
  source.write_text(f'#include <stdio.h>\n#include "{header}"\n{types}int main(void) {{\n'
                    + "\n".join(lines) + "\nreturn 0; }\n")
  compiler = shutil.which("cc") or pytest.skip("no C compiler")
  program = folder / header.stem
  subprocess.run([compiler, "-std=c17", "-w", "-o", program, source], check=True)
  return subprocess.run([program], check=True, capture_output=True, text=True).stdout.splitlines()


def ours_of(field):
  return OUR_NAMES.get(field[0], field[0]), OUR_SLOTS.get(field[1], field[1])


def test_declarations_are_the_same(tmp_path):
  fields, enumerators = facts_of(OURS)
  their_fields, their_enumerators = facts_of(THEIRS)
  their_fields = sorted(their_fields - NO_FIELDS)
  assert {ours_of(f) for f in their_fields} <= fields and len(their_fields) > 100
  common = sorted(e for e in their_enumerators if not NOT_OURS.match(e))
  assert set(common) <= enumerators and len(common) > 40
  ours = values(OURS, [ours_of(f) for f in their_fields], common, tmp_path)
  theirs = values(THEIRS, their_fields, common, tmp_path)
  named = [*their_fields, *common]
  assert len(ours) == len(named)
  assert [(n, o, t) for n, o, t in zip(named, ours, theirs) if o != t] == []


def test_sizes_that_structs_declare():
  """XLA's struct_size of each struct is the end of the field that our code names."""
  text = "".join((ROOT / "sim/foreign" / name).read_text()
                 for name in ("foreign_api.c", "foreign_call.c"))
  theirs = dict(re.findall(r"XLA_FFI_DEFINE_STRUCT_TRAITS\((\w+),\s*(\w+)\)", THEIRS.read_text()))
  ours = dict(re.findall(r"(?:CHECK|XLA_FFI_SIZE)\((XLA_FFI_\w+),\s*(\w+)\)", text))
  ours = {name: last for name, last in ours.items() if name in theirs}
  # minipod accepts these two in two sizes.
  for name in ("XLA_FFI_Type_Register_Args", "XLA_FFI_Handler_Register_Args"):
    ours.pop(name, None)
  assert len(ours) > 15
  assert {name: theirs[name] for name in ours} == ours

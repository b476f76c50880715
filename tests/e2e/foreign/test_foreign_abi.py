"""Our declarations of XLA's FFI (sim/foreign/foreign_abi.h) against the header that jaxlib ships."""

import pathlib
import re
import shutil
import subprocess

import jax
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
OURS = ROOT / "sim/foreign/foreign_abi.h"
THEIRS = pathlib.Path(jax.ffi.include_dir()) / "xla/ffi/api/c_api.h"

# What only one of the headers has. We spell out that all codes between are those of a status.
ONLY_OURS = {"XLA_FFI_State_Args_V02"}
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
  """What a C compiler makes of the declarations."""
  lines = [f'printf("{s}.{f} %zu %zu %zu\\n", offsetof({s}, {f}), sizeof((({s} *)0)->{f}), sizeof({s}));'
           for s, f in sorted(fields)]
  lines += [f'printf("{e} %lld\\n", (long long){e});' for e in sorted(enumerators)]
  source = folder / f"{header.stem}.c"
  # Older structs are types of theirs only with the word `struct`.
  names = sorted({s for s, _ in fields})
  types = "".join(f"typedef struct {n} {n};\n" for n in names)
  source.write_text(f'#include <stdio.h>\n#include "{header}"\n{types}int main(void) {{\n'
                    + "\n".join(lines) + "\nreturn 0; }\n")
  compiler = shutil.which("cc") or pytest.skip("no C compiler")
  program = folder / header.stem
  subprocess.run([compiler, "-std=c17", "-w", "-o", program, source], check=True)
  return subprocess.run([program], check=True, capture_output=True, text=True).stdout.splitlines()


def test_declarations_are_the_same(tmp_path):
  fields, enumerators = facts_of(OURS)
  their_fields, their_enumerators = facts_of(THEIRS)
  fields = {(s, f) for s, f in fields if s not in ONLY_OURS}
  assert fields == their_fields and len(fields) > 100
  assert {e for e in their_enumerators if not NOT_OURS.match(e)} <= enumerators
  common = enumerators & their_enumerators
  assert len(common) > 40
  assert values(OURS, fields, common, tmp_path) == values(THEIRS, fields, common, tmp_path)


def test_sizes_that_structs_declare(tmp_path):
  """XLA's struct_size of each struct is the end of the field that our code names."""
  ours = dict(re.findall(r"XLA_FFI_SIZE\((XLA_FFI_\w+), (\w+)\)", "".join(
      (ROOT / "sim/foreign" / name).read_text() for name in ("foreign_api.c", "foreign_call.c"))))
  theirs = dict(re.findall(r"XLA_FFI_DEFINE_STRUCT_TRAITS\((\w+),\s*(\w+)\)", THEIRS.read_text()))
  ours.update(re.findall(r"CHECK\((XLA_FFI_\w+), (\w+)\)",
                         (ROOT / "sim/foreign/foreign_api.c").read_text()))
  del ours["XLA_FFI_State_Args_V02"]
  del ours["XLA_FFI_Type_Register_Args"]  # both its sizes are in use
  assert len(ours) > 15
  assert {name: theirs[name] for name in ours} == ours

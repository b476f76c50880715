#!/usr/bin/env python3
"""Makes libraries without code that have the symbols of an older glibc, for a linker.

    glibc_interface.py --compiler CC --out FOLDER [--processor x86_64] [--version 2.28]

A shared object that is linked on a new system requires the newest version of each function, which older systems
lack.  The new glibc also has the older versions, but a linker does not choose them by itself.  With `-L FOLDER` the
linker sees only the functions that the machine's own glibc had in that version.  If code needs a newer function,
linking fails, and no user meets the error.

Writes libc.so, libm.so, libdl.so, libpthread.so, librt.so and the loader, and `done`.
"""

import argparse
import pathlib
import re
import subprocess

# The names that the linker looks for, with the names at run time.
LIBRARIES = {"libc.so": "libc.so.6", "libm.so": "libm.so.6", "libdl.so": "libdl.so.2",
             "libpthread.so": "libpthread.so.0", "librt.so": "librt.so.1"}
LOADERS = {"x86_64": "ld-linux-x86-64.so.2", "aarch64": "ld-linux-aarch64.so.1"}
#   Num: Value Size Type Bind Vis Ndx Name@Version
SYMBOL = re.compile(r"\s*\d+: [0-9a-f]+\s+(\w+) (\w+)\s+(\w+)\s+DEFAULT\s+(\w+) (\S+?)@@?(GLIBC_[\d.]+)$")


def key(version: str) -> tuple:
  return tuple(int(part) for part in version.removeprefix("GLIBC_").split("."))


def symbols(path: str, newest: tuple) -> dict:
  """For each name, the newest version that is old enough, with its type and size."""
  listing = subprocess.run(["readelf", "--dyn-syms", "--wide", path], check=True, text=True,
                           capture_output=True).stdout
  found = {}
  for line in listing.splitlines():
    match = SYMBOL.match(line)
    if not match or match[4] in ("UND", "ABS") or key(match[6]) > newest:
      continue
    size, kind, _, _, name, version = match.groups()
    if name not in found or key(version) > key(found[name][0]):
      found[name] = version, kind, int(size, 0)
  return found


def write_library(compiler: str, out: pathlib.Path, soname: str, found: dict) -> None:
  lines = []
  for number, (name, (version, kind, size)) in enumerate(sorted(found.items())):
    section, type_ = {"OBJECT": (".data", "object"), "TLS": (".section .tbss,\"awT\",@nobits", "tls_object"),
                      }.get(kind, (".text", "function"))
    label = f"minipod_stub_{number}"
    lines += [section, f".globl {label}", f".type {label}, @{type_}", f".size {label}, {max(size, 1)}",
              f"{label}: .skip {max(size, 1) if type_ != 'function' else 1}",
              f".symver {label}, {name}@@{version}"]
  lines.append('.section .note.GNU-stack,"",@progbits')
  versions = sorted({version for version, _, _ in found.values()}, key=key)
  script = "".join(f"{version} {{ }};\n" for version in versions) or "{ local: *; };\n"
  if versions:
    script = script.replace("{ }", "{ local: minipod_stub_*; }", 1)
  source, map_ = out.with_suffix(".s"), out.with_suffix(".map")
  source.write_text("\n".join(lines) + "\n")
  map_.write_text(script)
  subprocess.run([compiler, "-shared", "-nostdlib", f"-Wl,-soname,{soname}",
                  f"-Wl,--version-script={map_}", str(source), "-o", str(out)], check=True)


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--compiler", required=True)
  parser.add_argument("--out", type=pathlib.Path, required=True)
  parser.add_argument("--processor", choices=LOADERS, default="x86_64")
  parser.add_argument("--version", default="2.28")
  arguments = parser.parse_args()
  arguments.out.mkdir(parents=True, exist_ok=True)
  newest, loader = key(arguments.version), LOADERS[arguments.processor]

  def real(name: str) -> str:
    return subprocess.run([arguments.compiler, f"-print-file-name={name}"], check=True, text=True,
                          capture_output=True).stdout.strip()

  for file, soname in LIBRARIES.items():
    write_library(arguments.compiler, arguments.out / file, soname, symbols(real(soname), newest))
  # Libraries name functions of the loader (`__tls_get_addr`).  The stub of libc refers the linker to it.
  write_library(arguments.compiler, arguments.out / loader, loader, symbols(real(loader), newest))
  libc = arguments.out / "libc.so"
  libc.rename(arguments.out / "libc.so.6")
  nonshared = real("libc_nonshared.a")
  libc.write_text(f"GROUP ( {arguments.out / 'libc.so.6'} {nonshared} AS_NEEDED ( {arguments.out / loader} ) )\n")
  (arguments.out / "done").write_text("")


if __name__ == "__main__":
  main()

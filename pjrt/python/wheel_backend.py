"""Builds minipod's wheel: the PEP 517 backend that pyproject.toml names.

The wheel is the package `minipod` and the plugin library that CMake builds.  It uses the
standard library alone, so that building it needs no network, and CMake's `build/`, so that
nothing is compiled twice.
"""

import base64
import hashlib
import os
import pathlib
import re
import subprocess
import sysconfig
import tomllib
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "pjrt" / "python" / "minipod"
BUILD = ROOT / "build"
LIBRARY = "pjrt_c_api_minipod_plugin.so"
# The library does not depend on a Python version, only on the machine.
TAG = "py3-none-" + sysconfig.get_platform().replace("-", "_").replace(".", "_")
# What a message about something missing ends with.
NEEDS = ("All it takes, on Debian: apt install cmake ninja-build gcc pkg-config libhwloc-dev"
         " libyaml-dev libnuma-dev; llvm-19-dev, libzstd-dev and zlib1g-dev for machine code, libopenmpi-dev for"
         " pods over several processes")
# The oldest date a zip file can hold: the same sources give the same wheel.
EPOCH = (1980, 1, 1, 0, 0, 0)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
  """PEP 517: writes the wheel into the directory and returns its file name."""
  library = _build_library()
  project = _project()
  # Beside the package: what Python runs as it starts.
  start = {name: (PACKAGE.parent / name).read_bytes()
           for name in ("minipod.pth", "_minipod_start.py")}
  files = {f"minipod/{path.relative_to(PACKAGE)}": path.read_bytes()
           for path in sorted(PACKAGE.rglob("*.py"))} | start
  files[f"minipod/{LIBRARY}"] = library.read_bytes()
  # What the library opens when it is wanted: one for each MPI that was there when it was built, and
  # the one that makes machine code.
  for path in sorted(library.parent.glob("minipod_*.so")):
    files[f"minipod/{path.name}"] = path.read_bytes()
  for path in sorted((ROOT / "configs").glob("*.yaml")):
    files[f"minipod/configs/{path.name}"] = path.read_bytes()
  info = f"minipod-{project['version']}.dist-info"
  files[f"{info}/METADATA"] = _metadata(project)
  files[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: minipod\n" \
                           f"Root-Is-Purelib: false\nTag: {TAG}\n".encode()
  files[f"{info}/entry_points.txt"] = _entry_points(project)
  files[f"{info}/licenses/LICENSE"] = (ROOT / "LICENSE").read_bytes()
  name = f"minipod-{project['version']}-{TAG}.whl"
  _write(pathlib.Path(wheel_directory) / name, files, f"{info}/RECORD")
  return name


def build_sdist(sdist_directory, config_settings=None):
  """PEP 517 asks for it; a clone is the source distribution."""
  raise NotImplementedError("minipod has no source archive: build the wheel from a clone")


def _build_library() -> pathlib.Path:
  """The library, brought up to date by CMake."""
  if not (BUILD / "build.ninja").exists():
    # The C tests want a library of their own, which who only wants the wheel need not have.
    _cmake("--preset", "release", "-B", str(BUILD), "-DMINIPOD_TESTS=OFF")
  _cmake("--build", str(BUILD), "--target", pathlib.Path(LIBRARY).stem)
  return BUILD / LIBRARY


def _cmake(*arguments: str) -> None:
  """Runs CMake, which says itself what it lacks; that the message is its, we say."""
  try:
    subprocess.run(["cmake", *arguments], cwd=ROOT, check=True)
  except FileNotFoundError:
    raise SystemExit(f"minipod's wheel needs cmake. {NEEDS}") from None
  except subprocess.CalledProcessError:
    raise SystemExit(f"minipod's wheel cannot be built: cmake says why, above. {NEEDS}") from None


def _project() -> dict:
  """The [project] table, with the version that CMakeLists.txt gives."""
  project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
  found = re.search(r"project\(minipod VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())
  if not found:
    raise SystemExit("CMakeLists.txt: no line `project(minipod VERSION …` to take the version from")
  project["version"] = found.group(1)
  return project


def _metadata(project: dict) -> bytes:
  lines = ["Metadata-Version: 2.4", f"Name: {project['name']}", f"Version: {project['version']}",
           f"Summary: {project['description']}", f"License-Expression: {project['license']}",
           "License-File: LICENSE", f"Requires-Python: {project['requires-python']}"]
  for extra, requirements in project.get("optional-dependencies", {}).items():
    lines.append(f"Provides-Extra: {extra}")
    lines += [f"Requires-Dist: {each}; extra == '{extra}'" for each in requirements]
  lines += ["Description-Content-Type: text/markdown", "", (ROOT / project["readme"]).read_text()]
  return "\n".join(lines).encode()


def _entry_points(project: dict) -> bytes:
  lines = []
  for group, entries in project["entry-points"].items():
    lines.append(f"[{group}]")
    lines += [f"{name} = {value}" for name, value in entries.items()]
  return ("\n".join(lines) + "\n").encode()


def _write(path: pathlib.Path, files: dict, record_name: str) -> None:
  """The zip file, with the RECORD of every file's hash; in place only when complete."""
  record = []
  partial = path.with_suffix(".partial")
  with zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
    for name, data in files.items():
      digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
      record.append(f"{name},sha256={digest},{len(data)}")
      _add(archive, name, data)
    _add(archive, record_name, "\n".join(record + [f"{record_name},,", ""]).encode())
  os.replace(partial, path)


def _add(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
  entry = zipfile.ZipInfo(name, date_time=EPOCH)
  entry.external_attr = (0o755 if name.endswith(".so") else 0o644) << 16
  entry.compress_type = zipfile.ZIP_DEFLATED
  archive.writestr(entry, data)

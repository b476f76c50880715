"""Builds minipod's wheel: the PEP 517 backend that pyproject.toml names.

The wheel is the package `minipod` and the libraries that CMake builds.  It uses the standard
library alone, so that building it needs no network where CMake is installed, and CMake's `build/`,
so that nothing is compiled twice.  MINIPOD_BUILD names another build folder, such as that of a cross
compiler (tools/release); CMake reads CMAKE_TOOLCHAIN_FILE.
"""

import base64
import glob
import gzip
import hashlib
import io
import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "pjrt" / "python" / "minipod"
BUILD = pathlib.Path(os.environ.get("MINIPOD_BUILD") or ROOT / "build").absolute()
LIBRARY = "pjrt_c_api_minipod_plugin.so"
# The licences, for the metadata.
LICENSES = ("LICENSE", "NOTICE")
# Requirements of a build: how they are found, their names, and their Debian packages.  hwloc and libyaml are in
# tools/portable/sources/ for machines that lack them.
COMMANDS = ((("cmake",), "cmake", "cmake"),
            (("cc", "gcc", "clang"), "a C compiler", "gcc"),
            (("ninja", "make"), "ninja or make", "ninja-build"))
# Optional packages: their purpose, their names, and a file that shows whether they are installed (a pattern).
OPTIONAL = (("machine code", ("llvm-19-dev", "libzstd-dev", "zlib1g-dev"), "/usr/lib/llvm-19/include/llvm-c/Core.h"),
            ("pods over the processes of an mpirun", ("pkg-config", "libopenmpi-dev"), "/usr/lib/*/pkgconfig/ompi-c.pc"))
NEEDS = ("All it takes, on Debian: apt install cmake ninja-build gcc; llvm-19-dev, libzstd-dev and zlib1g-dev for machine"
         " code, pkg-config and libopenmpi-dev for pods over several processes")
# The libraries that every Linux of a manylinux tag has (PEP 600), as far as minipod's libraries need them.
SYSTEM_LIBRARIES = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1",
                    "libgcc_s.so.1", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
OLDEST_GLIBC = 28  # 2.28, which the linker enforces (tools/portable/)
PROCESSORS = {62: "x86_64", 183: "aarch64"}  # by e_machine of ELF
# Not in a source archive: the fixtures of tests, which are most of a clone.
NOT_IN_SDIST = ("tests/", ".ci/", ".github/")
# The oldest date a zip file can hold: the same sources give the same wheel.
EPOCH = (1980, 1, 1, 0, 0, 0)
Files = dict[str, bytes]


def get_requires_for_build_wheel(config_settings=None) -> list[str]:
  """PEP 517: the requirements that come from PyPI."""
  requires = [] if shutil.which("cmake") else ["cmake>=3.25"]
  return requires if shutil.which("ninja") or shutil.which("make") else [*requires, "ninja"]


def get_requires_for_build_editable(config_settings=None) -> list[str]:
  return get_requires_for_build_wheel(config_settings)


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None) -> str:
  """PEP 517: the metadata, which needs no compiling."""
  project = _project()
  info = _info(project)
  for name, data in _metadata_files(project).items():
    path = pathlib.Path(metadata_directory) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
  return info


prepare_metadata_for_build_editable = prepare_metadata_for_build_wheel


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None) -> str:
  """PEP 517: writes the wheel into the directory and returns its file name."""
  folder = _build_library().parent
  # Modules that the library opens on demand: one for each MPI that was installed during the build, and the one that
  # makes machine code.
  libraries = [folder / LIBRARY, *sorted(folder.glob("minipod_*.so"))]
  # Next to the package: the module that Python runs when it starts.
  start = {name: (PACKAGE.parent / name).read_bytes()
           for name in ("minipod.pth", "_minipod_start.py")}
  files = {f"minipod/{path.relative_to(PACKAGE)}": path.read_bytes()
           for path in sorted((*PACKAGE.rglob("*.py"), *PACKAGE.glob("py.typed")))} | start
  files |= {f"minipod/{path.name}": path.read_bytes() for path in libraries}
  files |= _manual(folder / LIBRARY)
  files |= {f"minipod/configs/{path.name}": path.read_bytes()
            for path in sorted((ROOT / "configs").glob("*.yaml"))}
  return _write_wheel(wheel_directory, files, _tag(libraries))


def _manual(library: pathlib.Path) -> Files:
  """The manual page, printed by the command; none if the library is for another machine."""
  if _processor(library) != os.uname().machine:
    return {}
  made = subprocess.run([sys.executable, "-m", "minipod", "man"], capture_output=True,
                        env=os.environ | {"PYTHONPATH": str(PACKAGE.parent), "MINIPOD_LIBRARY": str(library)})
  project = _project()
  folder = f"{project['name']}-{project['version']}.data/data/share/man/man1"
  return {f"{folder}/minipod.1": made.stdout} if made.returncode == 0 else {}


def build_editable(wheel_directory, config_settings=None, metadata_directory=None) -> str:
  """PEP 660: a wheel that refers to the package and the library in this tree."""
  _build_library()
  lines = f"{PACKAGE.parent}\n{(PACKAGE.parent / 'minipod.pth').read_text()}"
  return _write_wheel(wheel_directory, {"minipod.pth": lines.encode()}, _platform_tag())


def build_sdist(sdist_directory, config_settings=None) -> str:
  """PEP 517: the sources that a wheel is built from."""
  project = _project()
  name = f"{project['name']}-{project['version']}"
  raw = io.BytesIO()
  with tarfile.open(fileobj=raw, mode="w") as archive:
    for path in _sources():
      _add_source(archive, f"{name}/{path}", (ROOT / path).read_bytes(),
                  os.access(ROOT / path, os.X_OK))
    _add_source(archive, f"{name}/PKG-INFO", _metadata(project), False)
  path = pathlib.Path(sdist_directory) / f"{name}.tar.gz"
  path.write_bytes(gzip.compress(raw.getvalue(), mtime=0))
  return path.name


def _sources() -> list[str]:
  """The files of the tree: those that git knows; in an unpacked archive, all except build outputs."""
  try:
    listing = subprocess.run(["git", "-C", str(ROOT), "ls-files", "-z"], capture_output=True,
                             check=True).stdout.decode().split("\0")
  except (FileNotFoundError, subprocess.CalledProcessError):
    listing = [str(path.relative_to(ROOT)) for path in ROOT.rglob("*") if path.is_file()]
    listing = [path for path in listing
               if not re.match(r"build|\.venv|dist/|PKG-INFO", path) and "__pycache__" not in path]
  return sorted(path for path in listing
                if path and not path.startswith(NOT_IN_SDIST) and (ROOT / path).is_file())


def _add_source(archive: tarfile.TarFile, name: str, data: bytes, is_program: bool) -> None:
  entry = tarfile.TarInfo(name)
  entry.size = len(data)
  entry.mode = 0o755 if is_program else 0o644
  archive.addfile(entry, io.BytesIO(data))


def _build_library() -> pathlib.Path:
  """The library, brought up to date by CMake."""
  _check_needs()
  if not (BUILD / "CMakeCache.txt").exists():
    # The C tests need the library cmocka, which a build of the wheel does not require.
    generator = "Ninja" if shutil.which("ninja") else "Unix Makefiles"
    _cmake("-S", str(ROOT), "-B", str(BUILD), "-G", generator, "-DCMAKE_BUILD_TYPE=Release",
           "-DMINIPOD_TESTS=OFF")
  _cmake("--build", str(BUILD), "--target", pathlib.Path(LIBRARY).stem, "--parallel",
         str(os.cpu_count() or 1))
  return BUILD / LIBRARY


def _check_needs() -> None:
  """Exits with one line that names everything that is missing and the Debian packages.  Optional packages that are
  missing are named on standard error.
  """
  missing = [(what, package) for commands, what, package in COMMANDS
             if not any(map(shutil.which, (*commands, *_compiler(commands))))]
  better = [(what, packages) for what, packages, shown in OPTIONAL if not glob.glob(shown)]
  more = " ".join(package for _, packages in better for package in packages)
  if missing:
    raise SystemExit(f"minipod's wheel needs {', '.join(what for what, _ in missing)} (Debian:"
                     f" apt install {' '.join(package for _, package in missing)}"
                     + (f"; with {more} it has more)" if more else ")"))
  if better:
    print(f"minipod is built without {' and '.join(what for what, _ in better)} (Debian: apt install {more})",
          file=sys.stderr)


def _compiler(commands: tuple[str, ...]) -> tuple[str, ...]:
  """The user's own choice (`CC`), if a compiler is needed."""
  chosen = os.environ.get("CC", "").split()[:1] if "cc" in commands else []
  return tuple(chosen)


def _cmake(*arguments: str) -> None:
  """Runs CMake.  CMake prints what it lacks; this function adds that the message is CMake's."""
  try:
    subprocess.run(["cmake", *arguments], cwd=ROOT, check=True)
  except subprocess.CalledProcessError:
    raise SystemExit(f"minipod's wheel cannot be built: cmake says why, above. {NEEDS}") from None


def _platform_tag() -> str:
  return "py3-none-" + sysconfig.get_platform().replace("-", "_").replace(".", "_")


def _tag(libraries: list[pathlib.Path]) -> str:
  """The platform tag of these libraries, for any Python, from the symbols and libraries that they require."""
  newest, machine = OLDEST_GLIBC, _processor(libraries[0])
  for path in libraries:
    needed, versions = _dynamic(path)
    if not needed <= SYSTEM_LIBRARIES:
      return f"py3-none-linux_{machine}"
    newest = max([newest, *versions])
  return f"py3-none-manylinux_2_{newest}_{machine}"


def _processor(library: pathlib.Path) -> str:
  """The processor that a library was built for."""
  with library.open("rb") as file:
    number = int.from_bytes(file.read(20)[18:], "little")
  if number not in PROCESSORS:
    raise SystemExit(f"{library}: no wheel's tag is known for a processor with the ELF number {number}")
  return PROCESSORS[number]


def _dynamic(path: pathlib.Path) -> tuple[set[str], list[int]]:
  """The libraries that a library is linked to, and the versions 2.x of glibc that it requires.

  Without readelf the result is a library that no system has, which means: unknown.
  """
  try:
    listing = subprocess.run(["readelf", "--dynamic", "--version-info", "--wide", str(path)],
                             check=True, capture_output=True, text=True,
                             env={**os.environ, "LC_ALL": "C"}).stdout
  except (FileNotFoundError, subprocess.CalledProcessError):
    return {"unknown"}, []
  return (set(re.findall(r"\(NEEDED\).*\[(.+)\]", listing)),
          [int(minor) for minor in re.findall(r"Name: GLIBC_2\.(\d+)", listing)])


def _project() -> dict:
  """The [project] table, with the version that CMakeLists.txt gives."""
  project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
  found = re.search(r"project\(minipod VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())
  if not found:
    raise SystemExit("CMakeLists.txt: no line `project(minipod VERSION …` to take the version from")
  project["version"] = found.group(1)
  return project


def _info(project: dict) -> str:
  return f"{project['name']}-{project['version']}.dist-info"


def _metadata_files(project: dict) -> Files:
  info = _info(project)
  files = {f"{info}/METADATA": _metadata(project),
           f"{info}/entry_points.txt": _entry_points(project)}
  return files | {f"{info}/licenses/{name}": (ROOT / name).read_bytes() for name in LICENSES}


def _metadata(project: dict) -> bytes:
  lines = ["Metadata-Version: 2.4", f"Name: {project['name']}", f"Version: {project['version']}",
           f"Summary: {project['description']}", f"License-Expression: {project['license']}",
           *(f"License-File: {name}" for name in LICENSES),
           f"Requires-Python: {project['requires-python']}"]
  lines += [f"Classifier: {each}" for each in project.get("classifiers", ())]
  for extra, requirements in project.get("optional-dependencies", {}).items():
    lines.append(f"Provides-Extra: {extra}")
    lines += [f"Requires-Dist: {each}; extra == '{extra}'" for each in requirements]
  lines += ["Description-Content-Type: text/markdown", "", (ROOT / project["readme"]).read_text()]
  return "\n".join(lines).encode()


def _entry_points(project: dict) -> bytes:
  lines = []
  groups = {"console_scripts": project.get("scripts", {})} | project["entry-points"]
  for group, entries in groups.items():
    lines.append(f"[{group}]")
    lines += [f"{name} = {value}" for name, value in entries.items()]
  return ("\n".join(lines) + "\n").encode()


def _write_wheel(wheel_directory: str, files: Files, tag: str) -> str:
  project = _project()
  info = _info(project)
  files = files | _metadata_files(project)
  files[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: minipod\n" \
                           f"Root-Is-Purelib: false\nTag: {tag}\n".encode()
  name = f"{project['name']}-{project['version']}-{tag}.whl"
  _write(pathlib.Path(wheel_directory) / name, files, f"{info}/RECORD")
  return name


def _write(path: pathlib.Path, files: Files, record_name: str) -> None:
  """The zip file, with a RECORD of the hashes of all files; it gets its name only when it is complete."""
  record = []
  partial = path.with_suffix(".partial")
  with zipfile.ZipFile(partial, "w") as archive:
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
  archive.writestr(entry, data, compresslevel=4)

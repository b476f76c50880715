"""Finds out what is installed.  `info` prints it and `doctor` judges it.  This module imports none of it."""

import ctypes
import importlib.metadata
import os
import pathlib
import platform
import re
import shutil

import minipod

# The module for each MPI, and the libraries that it finds at run time (mpi_start.c).
MPI = {"ompi": ("libmpi.so.40",), "mpich": ("libmpich.so.12", "libmpi.so.12")}
LAUNCHERS = {"ompi": ("orterun", "prte", "openmpi"), "mpich": ("hydra", "mpich")}
UCX = "libucp.so.0"
PACKAGES = ("jax", "jaxlib", "torch", "torch_xla", "numpy")


def version_of(package: str) -> str | None:
  try:
    return importlib.metadata.version(package)
  except importlib.metadata.PackageNotFoundError:
    return None


def packages() -> dict[str, str | None]:
  return {package: version_of(package) for package in PACKAGES}


def tested_jax() -> tuple[str, str]:
  """The range of JAX versions that the package was tested with: from the first, up to but without the second."""
  for requirement in importlib.metadata.requires("minipod") or ():
    if found := re.match(r"jax>=([\d.]+),<([\d.]+)|jax<([\d.]+),>=([\d.]+)", requirement):
      return (found[1] or found[4]), (found[2] or found[3])
  return "0.9", "0.13"


def opens(path: str) -> str | None:
  """Why the loader cannot open a library; None if it can."""
  try:
    ctypes.CDLL(path)
  except OSError as error:
    return str(error)
  return None


def native_code() -> tuple[bool, str]:
  """Whether minipod compiles to machine code, with the compiler's name or the reason."""
  path = pathlib.Path(minipod.library_path()).with_name("minipod_native.so")
  if os.environ.get("MINIPOD_NATIVE") == "0":
    return False, "MINIPOD_NATIVE=0"
  if not path.exists():
    return False, f"there is no {path}: it is built where llvm-19-dev is"
  if why := opens(str(path)):
    return False, why
  return True, f"LLVM, {path.name}"


def _mpi_of(launcher: str) -> str | None:
  """Which MPI the mpirun belongs to, from the program that its symbolic link leads to; None: unknown."""
  name = pathlib.Path(launcher).resolve().name
  return next((kind for kind, names in LAUNCHERS.items() if any(each in name for each in names)), None)


def mpi() -> tuple[bool, str]:
  """Whether an mpirun can start processes of one pod, with its name or the reason."""
  folder = pathlib.Path(minipod.library_path()).parent
  modules = sorted(path.stem.removeprefix("minipod_mpi_") for path in folder.glob("minipod_mpi_*.so"))
  if not modules:
    return False, "this build has no module for MPI: it is built where libopenmpi-dev is"
  launcher = shutil.which("mpirun")
  if not launcher:
    return False, "there is no mpirun"
  kind = _mpi_of(launcher)
  if kind is not None and kind not in modules:
    return False, f"this build has no module for the MPI of {launcher}, only for {', '.join(modules)}"
  why = None
  for name in [kind] if kind is not None else modules:
    for library in MPI.get(name, ()):
      why = opens(library)
      if why is None:
        return True, f"{library} and {launcher}"
  return False, why or "no library of MPI is known"


def ucx() -> tuple[bool, str]:
  """Whether processes on several hosts can share a pod without mpirun, with the library's name or the reason."""
  os.environ.setdefault("UCX_HANDLE_ERRORS", "none")  # Python handles signals, not UCX (ucx_library.c)
  if why := opens(UCX):
    return False, why
  version = ctypes.CDLL(UCX).ucp_get_version_string
  version.restype = ctypes.c_char_p
  found = version().decode()
  first = tuple(int(part) for part in re.findall(r"\d+", found)[:2])
  if not (1, 11) <= first < (2, 0):
    return False, f"UCX {found}, not 1.11 or later"
  return True, f"UCX {found}, {UCX}"


def numa() -> tuple[bool, str]:
  """Whether and how minipod binds memory to NUMA nodes, as the library reports it."""
  if why := opens(minipod.library_path()):
    return False, why
  name = ctypes.CDLL(minipod.library_path()).minipod_numa_name
  name.restype = ctypes.c_char_p
  found = name().decode()
  return found.startswith("libnuma"), found


def system() -> dict[str, str]:
  return {"python": platform.python_version(), "system": platform.platform(),
          "libc": " ".join(platform.libc_ver())}

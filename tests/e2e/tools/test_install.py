"""`cmake --install` for clients outside Python: the examples are built with the installed files, and run."""

import os
import pathlib
import shutil
import subprocess

import pytest
import scenario

ROOT = pathlib.Path(__file__).parents[3]
EXAMPLES = ROOT / "tools" / "examples"
SECONDS = 600  # seconds after which a process counts as hung
WARNINGS = ("-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Werror")


def run(*words, code=0, **variables):
  """The output of a command that has ended with the exit code; otherwise its errors."""
  done = subprocess.run([*map(str, words)], env=scenario.environment(devices=None, **variables),
                        capture_output=True, text=True, timeout=SECONDS)
  assert done.returncode == code, f"{words}: {done.stdout}{done.stderr}"
  return done.stderr if code else done.stdout


def needs(*programs):
  for program in programs:
    if not shutil.which(program):
      pytest.skip(f"no {program} here")


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
  """A build that is installed and then moved."""
  needs("cmake")
  library = os.environ.get("MINIPOD_LIBRARY")
  build = pathlib.Path(library).resolve().parent if library else ROOT / "build"
  if not (build / "cmake_install.cmake").exists():
    pytest.skip(f"{build} is no build folder")
  folder = tmp_path_factory.mktemp("install")
  run("cmake", "--install", build, "--prefix", folder / "first")
  return (folder / "first").rename(folder / "moved")


@pytest.fixture(scope="module")
def pkg_config(prefix):
  needs("pkg-config")

  def ask(*options):
    return run("pkg-config", *options, "minipod", PKG_CONFIG_PATH=prefix / "lib" / "pkgconfig").split()
  return ask


def is_right(output):
  return output.count("y = [168") == 4 and output.endswith("right\n")


def test_what_is_there(prefix):
  libraries = {path.name for path in (prefix / "lib" / "minipod").iterdir()}
  modules = libraries - {"pjrt_c_api_minipod_plugin.so"}
  assert modules < libraries and all(name.startswith("minipod_") for name in modules)
  assert (prefix / "share" / "minipod" / "v5e-16.yaml").exists()
  for path in prefix.rglob("*"):  # no installed file contains the path where it was made
    assert not path.is_file() or path.suffix == ".so" or str(ROOT) not in path.read_text()


def test_a_client_by_cmake(prefix, tmp_path):
  run("cmake", "-S", EXAMPLES / "c", "-B", tmp_path, f"-Dminipod_ROOT={prefix}",
      f"-DCMAKE_C_FLAGS={' '.join(WARNINGS)}")
  run("cmake", "--build", tmp_path)
  assert is_right(run(tmp_path / "sharded_matvec"))
  wrong = run(tmp_path / "sharded_matvec", code=1, MINIPOD_FUSE="perhaps")
  assert wrong == "environment variable MINIPOD_FUSE: expected a whole number, got 'perhaps'\n"


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_a_client_by_pkg_config(pkg_config, compiler, tmp_path):
  needs(compiler)
  run(compiler, "-std=c17", *WARNINGS, EXAMPLES / "c" / "sharded_matvec.c", *pkg_config("--cflags", "--libs"),
      "-o", tmp_path / "matvec")
  assert is_right(run(tmp_path / "matvec", *pkg_config("--variable=plugin")))
  assert "no.so" in run(tmp_path / "matvec", "./no.so", code=1)


@pytest.mark.parametrize("compiler", ["g++", "clang++"])
def test_the_declarations_are_cxx_too(pkg_config, compiler, tmp_path):
  needs(compiler)
  (tmp_path / "client.cc").write_text('#include "pjrt/c_api/c_api_ext.h"\n#include "pjrt/c_api/c_api_profiler.h"\n'
                                      '#include "pjrt/plugin/pjrt_api.h"\n'
                                      "PJRT_Error_Destroy *destroy() { return GetPjrtApi()->PJRT_Error_Destroy; }\n")
  run(compiler, "-std=c++17", "-Wall", "-Werror", "-fsyntax-only", *pkg_config("--cflags"), tmp_path / "client.cc")


def test_a_client_in_rust(pkg_config, tmp_path):
  needs("rustc")
  run("rustc", EXAMPLES / "rust" / "main.rs", "-o", tmp_path / "matvec")
  plugin = pkg_config("--variable=plugin")
  assert is_right(run(tmp_path / "matvec", *plugin))
  wrong = run(tmp_path / "matvec", *plugin, code=1, MINIPOD_FUSE="perhaps")
  assert wrong == "environment variable MINIPOD_FUSE: expected a whole number, got 'perhaps'\n"

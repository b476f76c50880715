"""What building takes: the wheel without what only tests need, and words for what is not there."""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[3]
# Builds the wheel's library in a tree of its own, but for compiling: what is asked here is what it
# needs.
CONFIGURE = """
import pathlib, sys
sys.path.insert(0, sys.argv[1])
import wheel_backend
wheel_backend.BUILD = pathlib.Path(sys.argv[2])
run = wheel_backend.subprocess.run
def configure(command, **keywords):
  if "--build" not in command: run(command, **keywords)
wheel_backend.subprocess.run = configure
wheel_backend._build_library()
"""


def configure(folder, hidden=(), path=None):
  """Configures as pip would, with pkg-config blind for the hidden packages."""
  folders = subprocess.run(["pkg-config", "--variable", "pc_path", "pkg-config"],
                           capture_output=True, text=True, check=True).stdout.strip().split(":")
  seen = folder / "pkgconfig"
  seen.mkdir()
  for file in (file for each in folders for file in pathlib.Path(each).glob("*.pc")):
    if file.stem not in hidden and not (seen / file.name).exists():
      (seen / file.name).symlink_to(file)
  env = {**os.environ, "PKG_CONFIG_LIBDIR": str(seen), **({"PATH": path} if path else {})}
  return subprocess.run(
      [sys.executable, "-c", CONFIGURE, str(ROOT / "pjrt" / "python"), str(folder / "tree")], env=env,
      capture_output=True, text=True, timeout=120)


@pytest.fixture(autouse=True)
def cmake():
  if not shutil.which("cmake"):
    pytest.skip("no cmake here")


def test_the_wheel_needs_nothing_of_the_tests(tmp_path):
  done = configure(tmp_path, hidden=("cmocka",))
  assert done.returncode == 0, done.stderr
  assert "MINIPOD_TESTS:BOOL=OFF" in (tmp_path / "tree" / "CMakeCache.txt").read_text()


@pytest.mark.parametrize("package, words", [
    ("hwloc", "minipod needs hwloc with its headers (Debian: libhwloc-dev)"),
    ("numa", "minipod needs libnuma with its headers (Debian: libnuma-dev)"),
    ("yaml-0.1", "minipod needs libyaml with its headers (Debian: libyaml-dev)"),
])
def test_what_it_needs_is_named(tmp_path, package, words):
  done = configure(tmp_path, hidden=(package,))
  assert done.returncode != 0
  assert words in " ".join(done.stderr.split()), done.stderr
  assert "minipod's wheel cannot be built: cmake says why, above" in done.stderr
  assert "Traceback" not in done.stderr


def test_without_cmake_it_says_so(tmp_path):
  (tmp_path / "bin").mkdir()
  (tmp_path / "bin" / "pkg-config").symlink_to(shutil.which("pkg-config"))
  done = configure(tmp_path, path=str(tmp_path / "bin"))
  assert done.returncode != 0 and "minipod's wheel needs cmake" in done.stderr
  assert "Traceback" not in done.stderr


@pytest.mark.parametrize("tool", ["test", "demo"])
def test_help_from_another_folder(tool):
  """By a path that is relative to the folder it is called from."""
  done = subprocess.run([f"{ROOT.name}/tools/{tool}", "--help"], cwd=ROOT.parent, capture_output=True,
                        text=True, timeout=60)
  assert done.returncode == 0 and "Sets up" in done.stdout, done.stdout + done.stderr

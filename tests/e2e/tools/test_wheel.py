"""What building takes: the wheel without what only tests need, and words for what is not there; and
what a wheel is: that of any machine, in an environment of its own."""

import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import zipfile

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
  if "--build" not in command: return run(command, **keywords)
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
    ("hwloc", "minipod's wheel needs hwloc with its headers (Debian: apt install libhwloc-dev)"),
    ("yaml-0.1", "minipod's wheel needs libyaml with its headers (Debian: apt install libyaml-dev)"),
])
def test_what_it_needs_is_named(tmp_path, package, words):
  done = configure(tmp_path, hidden=(package,))
  assert done.returncode != 0
  assert done.stderr == words + "\n"


def test_without_cmake_it_says_so(tmp_path):
  (tmp_path / "bin").mkdir()
  (tmp_path / "bin" / "pkg-config").symlink_to(shutil.which("pkg-config"))
  done = configure(tmp_path, path=str(tmp_path / "bin"))
  assert done.returncode != 0 and "minipod's wheel needs cmake" in done.stderr
  assert "Traceback" not in done.stderr


def pip(*arguments, **keywords):
  return subprocess.run([sys.executable, "-m", "pip", "--disable-pip-version-check", *map(str, arguments)],
                        check=True, timeout=300, **keywords)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
  folder = tmp_path_factory.mktemp("wheel")
  pip("wheel", "-q", "--no-deps", "--no-index", "-w", folder, ROOT)
  (file,) = folder.glob("minipod-*.whl")
  return file


def test_the_wheel_is_for_any_linux(wheel):
  assert wheel.name.endswith("-py3-none-manylinux_2_28_x86_64.whl")
  assert wheel.stat().st_size < 45e6
  shown = subprocess.run([sys.executable, "-m", "auditwheel", "show", str(wheel)], check=True,
                         capture_output=True, text=True).stdout
  assert 'is consistent with\nthe following platform tag: "manylinux_2_2' in shown, shown
  with zipfile.ZipFile(wheel) as archive:
    names = archive.namelist()
  assert {f"minipod-{wheel.name.split('-')[1]}.dist-info/licenses/{each}"
          for each in ("LICENSE", "NOTICE")} <= set(names)


@pytest.fixture(scope="module")
def elsewhere(wheel, tmp_path_factory):
  """An environment outside of the tree that has the wheel, and JAX from this one."""
  folder = tmp_path_factory.mktemp("elsewhere")
  subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
  (packages,) = folder.glob("lib/python*/site-packages")
  pip("--python", folder / "bin" / "python", "install", "-q", "--no-deps", "--no-index", wheel)
  (packages / "zz_jax.pth").write_text(os.path.dirname(os.path.dirname(pytest.__file__)) + "\n")
  return folder


SEED = """
import jax, numpy as np, minipod
f = jax.pmap(lambda x: x + jax.lax.psum(x, "i"), axis_name="i")
x = f(np.array([device.id for device in jax.local_devices()]))
print(minipod.library_path(), x, x.mean())
"""


def test_it_runs_in_an_environment_of_its_own(elsewhere):
  env = {name: value for name, value in os.environ.items()
         if not name.startswith(("MINIPOD_", "JAX_", "PYTHON"))}
  done = subprocess.run([str(elsewhere / "bin" / "python"), "-c", SEED],
                        env={**env, "MINIPOD_DEVICES": "4"}, cwd=elsewhere, capture_output=True,
                        text=True, timeout=120)
  assert done.returncode == 0, done.stderr
  assert done.stdout.startswith(str(elsewhere)) and done.stdout.endswith("[6 7 8 9] 7.5\n")
  assert "minipod" not in done.stderr


def backend(call):
  """What a function of the backend returns."""
  return subprocess.run(
      [sys.executable, "-c", f"import sys; sys.path.insert(0, sys.argv[1]); import wheel_backend\n"
       f"print(wheel_backend.{call})", str(ROOT / "pjrt" / "python")],
      check=True, capture_output=True, text=True, timeout=120).stdout.splitlines()[-1]


def test_an_editable_install_leads_to_the_tree(tmp_path):
  with zipfile.ZipFile(tmp_path / backend(f"build_editable({str(tmp_path)!r})")) as archive:
    lines = archive.read("minipod.pth").decode().splitlines()
  assert lines == [str(ROOT / "pjrt" / "python"), "import _minipod_start"]


def test_a_source_archive_has_what_a_wheel_is_built_from(tmp_path):
  with tarfile.open(tmp_path / backend(f"build_sdist({str(tmp_path)!r})")) as archive:
    names = {name.partition("/")[2] for name in archive.getnames()}
  assert {"PKG-INFO", "CMakeLists.txt", "tools/portable/shims.c", "pjrt/plugin/plugin.map",
          "pjrt/python/wheel_backend.py"} <= names
  assert not any(name.startswith(("tests/", "build/")) for name in names)


def test_metadata_needs_no_build(tmp_path):
  info = backend(f"prepare_metadata_for_build_wheel({str(tmp_path)!r})")
  assert "Name: minipod" in (tmp_path / info / "METADATA").read_text()


@pytest.mark.parametrize("tool", ["test", "demo"])
def test_help_from_another_folder(tool):
  """By a path that is relative to the folder it is called from."""
  done = subprocess.run([f"{ROOT.name}/tools/{tool}", "--help"], cwd=ROOT.parent, capture_output=True,
                        text=True, timeout=60)
  assert done.returncode == 0 and "Sets up" in done.stdout, done.stdout + done.stderr

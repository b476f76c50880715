"""Builds the wheel without packages that only tests need, and checks the messages about missing packages.

The wheel runs on any machine, in an environment of its own.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import zipfile

import pytest

ROOT = pathlib.Path(__file__).parents[3]
# Configures the wheel's library in a separate tree, but compiles nothing: the test asks only what the build requires.
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
  """Configures as pip would, but hides packages from pkg-config."""
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
      capture_output=True, text=True, timeout=400)


@pytest.fixture(autouse=True)
def cmake():
  if not shutil.which("cmake"):
    pytest.skip("no cmake here")


def test_the_wheel_needs_nothing_of_the_tests(tmp_path):
  done = configure(tmp_path, hidden=("cmocka",))
  assert done.returncode == 0, done.stderr
  assert "MINIPOD_TESTS:BOOL=OFF" in (tmp_path / "tree" / "CMakeCache.txt").read_text()


def test_without_their_packages_hwloc_and_libyaml_come_from_the_tree(tmp_path):
  done = configure(tmp_path, hidden=("hwloc", "yaml-0.1"))
  assert done.returncode == 0, done.stderr
  rules = tmp_path / "tree"
  rules = (rules / "build.ninja" if (rules / "build.ninja").exists() else rules / "Makefile").read_text()
  assert "minipod_bundled_hwloc" in rules and "minipod_bundled_yaml" in rules
  header = (tmp_path / "tree/bundled/hwloc-2.9.0/include/private/autogen/config.h").read_text()
  assert "#define HWLOC_LINUX_SYS 1" in header and "#define HWLOC_SIZEOF_UNSIGNED_LONG 8" in header


# The bundled libraries give the same answers as the machine's: for a machine, a described one, and a file.
USE = r"""#include <hwloc.h>
#include <stdio.h>
#include <yaml.h>
int main(void) {
  hwloc_topology_t topology;
  hwloc_topology_init(&topology);
  if (hwloc_topology_set_synthetic(topology, "numa:2 core:4 pu:2") != 0 || hwloc_topology_load(topology) != 0) return 1;
  printf("%d %d", hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_NUMANODE), hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PU));
  hwloc_topology_destroy(topology);
  hwloc_topology_init(&topology);
  if (hwloc_topology_load(topology) != 0) return 2;
  printf(" %d", hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PU));
  hwloc_topology_destroy(topology);
  printf(" %s\n", yaml_get_version_string());
  return 0;
}
"""
PROJECT = """cmake_minimum_required(VERSION 3.25)
project(use LANGUAGES C)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
add_compile_definitions(_GNU_SOURCE)
include({root}/tools/portable/bundled.cmake)
minipod_bundle_hwloc()
minipod_bundle_yaml()
add_executable(use use.c)
target_link_libraries(use PRIVATE minipod_bundled_hwloc minipod_bundled_yaml)
"""


def test_bundled_libraries_work(tmp_path):
  text = (ROOT / "tools/portable/bundled.cmake").read_text().replace("${CMAKE_SOURCE_DIR}", str(ROOT))
  (tmp_path / "bundled.cmake").write_text(text)
  (tmp_path / "CMakeLists.txt").write_text(PROJECT.format(root=ROOT).replace(f"{ROOT}/tools/portable", "."))
  (tmp_path / "use.c").write_text(USE)
  subprocess.run(["cmake", "-S", tmp_path, "-B", tmp_path / "tree"], check=True, capture_output=True)
  subprocess.run(["cmake", "--build", tmp_path / "tree", "--target", "use", "--parallel", "2"], check=True,
                 capture_output=True, timeout=300)
  out = subprocess.run([tmp_path / "tree/use"], check=True, capture_output=True, text=True).stdout.split()
  assert out == ["2", "16", str(os.sysconf("SC_NPROCESSORS_ONLN")), "0.2.5"]


def test_all_that_is_missing_is_named_at_once(tmp_path):
  (tmp_path / "bin").mkdir()
  (tmp_path / "bin" / "pkg-config").symlink_to(shutil.which("pkg-config"))
  done = configure(tmp_path, path=str(tmp_path / "bin"))
  assert done.returncode != 0
  assert done.stderr.startswith("minipod's wheel needs cmake, a C compiler, ninja or make"
                                " (Debian: apt install cmake gcc ninja-build"), done.stderr
  assert done.stderr.count("\n") == 1 and "Traceback" not in done.stderr


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
  """An environment outside the tree that has the wheel, and JAX from this one."""
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
  """The result of a function of the backend."""
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
  """With a path relative to the current folder."""
  done = subprocess.run([f"{ROOT.name}/tools/{tool}", "--help"], cwd=ROOT.parent, capture_output=True,
                        text=True, timeout=60)
  assert done.returncode == 0 and "Sets up" in done.stdout, done.stdout + done.stderr

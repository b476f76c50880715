"""Releases: all files have the version of CMakeLists.txt; what tools/release refuses; the workflow that runs it."""

import pathlib
import re
import shutil
import subprocess
import sys

import minipod
import pytest
import yaml

ROOT = pathlib.Path(__file__).parents[3]
BUILD = pathlib.Path(minipod.library_path()).parent
WORKFLOW = ROOT / ".github/workflows/release.yml"
sys.path.insert(0, str(ROOT / "pjrt/python"))
import wheel_backend

VERSION = re.search(r"^project\(minipod VERSION ([\d.]+) ", (ROOT / "CMakeLists.txt").read_text(), re.MULTILINE).group(1)


def release(*words):
  return subprocess.run([ROOT / "tools/release", *words], capture_output=True, text=True, timeout=60)


def test_the_version_is_everywhere_the_same():
  assert minipod.__version__ == wheel_backend._project()["version"] == VERSION
  said = subprocess.run([sys.executable, "-m", "minipod", "topo", "--version"], capture_output=True, text=True, check=True)
  assert said.stdout.split()[-1] == VERSION  # the library's
  newest = re.search(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE).group(1)
  assert re.findall(r"\d+\.\d+\.\d+", newest) == [VERSION]


def test_the_version_of_the_build():
  made = BUILD / "install" if (BUILD / "install").exists() else ROOT / "build/install"
  if not made.exists():
    pytest.skip("no build folder here")
  assert f"Version: {VERSION}\n" in (made / "minipod.pc").read_text()
  assert f'PACKAGE_VERSION "{VERSION}"' in (made / "minipod-config-version.cmake").read_text()


def test_no_other_file_has_it():
  """Only CMakeLists.txt and CHANGELOG.md contain the version of minipod, and the help of tools/release as an example.
  """
  if not shutil.which("git") or not (ROOT / ".git").exists():
    pytest.skip("no clone here")
  found = subprocess.run(["git", "grep", "-nIwF", VERSION], cwd=ROOT, capture_output=True, text=True).stdout.splitlines()
  others = [line for line in found if re.search(r"minipod|version", line, re.IGNORECASE)
            and not line.startswith(("CMakeLists.txt:", "CHANGELOG.md:"))]
  assert all(re.search(r"v?" + re.escape(VERSION) + r"\b.*(tag|on a tag|publishes)|--tag", line) for line in others), others


def test_a_release_begins_with_its_tag():
  done = release("--tag", "v9.9.9")
  assert done.returncode == 1 and f"the tag is v9.9.9, and the version of this tree is {VERSION}" in done.stderr
  for words in (["--tag"], ["--without", "wheels"], ["--nothing"]):
    done = release(*words)
    assert done.returncode == 1 and words[0] in done.stderr, done.stderr


@pytest.mark.parametrize("number, processor", [(62, "x86_64"), (183, "aarch64"), (8, None)])
def test_a_wheel_is_for_the_processor_of_its_library(number, processor, tmp_path):
  library = tmp_path / "library.so"
  library.write_bytes(b"\x7fELF".ljust(18, b"\0") + number.to_bytes(2, "little") + bytes(44))
  if processor:
    assert wheel_backend._processor(library) == processor
    assert wheel_backend._tag([library]).endswith(processor)
  else:
    with pytest.raises(SystemExit, match="ELF number 8"):
      wheel_backend._processor(library)


def test_the_workflow_runs_what_is_there():
  workflow = yaml.safe_load(WORKFLOW.read_text())
  assert workflow[True]["push"]["tags"] == ["v*"]  # YAML's `on`
  jobs = workflow["jobs"]
  assert [job.get("needs") for job in jobs.values()] == [None, "build", "try"]
  assert "tag" in jobs["publish"]["if"] and jobs["publish"]["permissions"] == {"contents": "write"}
  commands = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
  options = {option for command in commands for option in re.findall(r"--\w+", command) if "tools/release" in command}
  said = release("--help").stdout
  assert options == {"--out", "--tag"} and all(option in said for option in options)
  assert {row["processor"] for row in jobs["try"]["strategy"]["matrix"]["include"]} == {"x86_64", "aarch64"}

"""Every block of commands in a README works as printed, or this file says why it is not run.

Blocks in READMEs are indented by four columns, or are between fences.  They run as printed, in one shell per block, in
a folder that looks like the clone.  Drawings and formulas are not commands.  test_site.py checks the output on the
site's pages; their shell blocks without output are tested here.
"""

import dataclasses
import os
import pathlib
import re
import shutil
import subprocess
import sys

import mpirun
import pytest
import scenario

ROOT = pathlib.Path(__file__).parents[3]
PAGES = "tools/site/pages/"
# Lines that are not commands: lines of drawings, formulas, and a format of files.
DRAWN = re.compile(r"[─│▶▼▲◀┌└]|─▶|──|\| +\||^ *-*> |^ *(\w+ +)?\w* += ", re.MULTILINE)
FENCED = re.compile(r"^```(sh|python|yaml)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INDENTED = re.compile(r"(?:(?<=\n\n)|\A)((?:    [^\n]*\n|\n(?=\n*    ))+)")


@dataclasses.dataclass
class Block:
  file: str
  kind: str
  text: str

  @property
  def name(self):
    """Its first command, by which the lists below identify it."""
    return next((line for line in self.commands()), "")

  def commands(self):
    """Its commands.  If some begin with `$ `, the other lines are their output."""
    lines = self.text.replace("\\\n", "").splitlines()
    marked = [line[2:] for line in lines if line.startswith("$ ")]
    return marked or [line for line in (re.sub(r"(^|\s+)# .*", "", line).rstrip() for line in lines) if line]


def blocks_of(path):
  text = (ROOT / path).read_text()
  for kind, inside in FENCED.findall(text):
    yield Block(path, kind, inside)
  for inside in INDENTED.findall(FENCED.sub("", re.sub(r"^```\{.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL))):
    kind = "drawing" if DRAWN.search(inside) else "sh"
    yield Block(path, kind, re.sub("^    ", "", inside, flags=re.MULTILINE).strip("\n") + "\n")


def documents():
  folders = "collectives configs pjrt sim tests tools topology".split()
  found = [path for folder in folders for path in (ROOT / folder).rglob("*.md")] + list(ROOT.glob("*.md"))
  return sorted(str(path.relative_to(ROOT)) for path in found if "node_modules" not in path.parts)


BLOCKS = [block for path in documents() for block in blocks_of(path)]

SCRIPT = """\
import jax, jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec as P

@jax.jit
def train_step(x):
  return x * 2

mesh = jax.make_mesh((jax.device_count(),), ("x",))
x = jax.device_put(jnp.ones((jax.device_count(), 100)), NamedSharding(mesh, P("x")))
for _ in range(6):
  x = train_step(x)
print(jax.device_count(), "devices:", x.sum())
"""
FAULTS = re.search(r"```yaml\n(faults:.*?)```", (ROOT / "configs/README.md").read_text(), re.DOTALL).group(1)


def page_file(page, caption):
  return re.search(rf":caption: {caption}\n\n(.*?)```", (ROOT / PAGES / page).read_text(), re.DOTALL).group(1)


@dataclasses.dataclass
class Run:
  """How a block is run: its expected output, and files that must exist before."""
  says: str
  code: int = 0
  files: dict = dataclasses.field(default_factory=dict)
  needs: tuple = ()
  variables: dict = dataclasses.field(default_factory=dict)


# A test inside a test: it is found, but not run again.
COLLECT = {"PYTEST_ADDOPTS": "--collect-only -q -p no:cacheprovider"}
HERE = {
  ("CONTRIBUTING.md", "cmake --build build --target test_pod && build/tests/test_pod"):
    Run(r"PASSED.*test_command\.py", needs=("cmake", "build"), variables=COLLECT),
  ("tests/README.md", "ninja -C build && ctest --test-dir build -R ir"):
    Run(r"100% tests passed.*test_ops\.py", needs=("ninja", "build"), variables=COLLECT),
  ("configs/README.md", "MINIPOD_TOPOLOGY=configs/rack.yaml            python script.py"):
    Run(r"devices: .*16 devices: 102400.0\n16 devices: 102400.0\n", files={"script.py": SCRIPT}),
  ("tests/fixtures/chip/README.md", ".venv/bin/python -m zipfile -e tests/fixtures/chip/programs/model.zip /tmp/programs"):
    Run(r"^\w+\.mlir\n"),
  ("configs/README.md", "minipod topo --svg v5e:4x4 > pod.svg"): Run("", files={"loads.txt": "slice 0 (0,0,0) +x: 0.5\n"}),
  ("tools/examples/README.md", "cmake --install build --prefix P"):
    Run(r"(right\n.*){3}", needs=("cmake", "build", "pkg-config", "cc", "rustc")),
  (PAGES + "cookbook/processes.md", "MINIPOD_DEVICES=2 mpirun --bind-to none -n 2 python processes.py"):
    Run(r"2 processes, 2 of 4 devices here, 28.0.*1 processes, 8 of 8 devices here, 28.0", needs=("mpirun",),
        files={"processes.py": page_file("cookbook/processes.md", "processes.py"), "hosts": "localhost slots=1\n"}),
  (PAGES + "processes.md", "minipod run -n 2 script.py"):
    Run(r"(?:.*devices: ){3}", needs=("mpirun",), files={"script.py": SCRIPT, "hosts": "localhost slots=1\n"},
        variables={"devices": 2}),
  (PAGES + "reports.md", "MINIPOD_TIME=model MINIPOD_TOPOLOGY=v5e:2x2 MINIPOD_TRACE=t.json .venv/bin/python train.py"):
    Run(r"^4 devices: 25600.0\n$", files={"train.py": SCRIPT}),
  (PAGES + "reports.md", "MINIPOD_TIME=model MINIPOD_VALUES=shapes MINIPOD_TOPOLOGY=v5e:16x16 .venv/bin/python train.py"):
    Run(r"this array has no values: f32\[\].*train\.py:12", code=1, files={"train.py": SCRIPT}),
}
# The test that runs a block that is not run here; this test must exist.
ELSEWHERE = {
  ("README.md", "JAX_PLATFORMS=minipod MINIPOD_DEVICES=4 python example.py"): "processes/test_readme.py::test_alone",
  ("README.md", "import jax, numpy as np"): "processes/test_readme.py::test_alone",
  ("README.md", "minipod sweep --pod v5e:2x2 -- example.py"): "processes/test_readme.py::test_sweep",
  ("configs/README.md", "export MINIPOD_TOPOLOGY=configs/two-slices.yaml MINIPOD_TIME=model MINIPOD_VALUES=shapes"):
    "model/test_mesh_order.py::test_the_script_prints_what_the_readme_shows",
  ("configs/README.md", "MINIPOD_TRACE=t.json python configs/mesh_order.py model,data 32768"):
    "model/test_mesh_order.py::test_the_picture_shows_the_hot_links",
  ("configs/README.md", "MINIPOD_FAULTS=faults.yaml python script.py"): "tools/test_readmes.py::test_faults",
  ("configs/README.md", "faults:"): "tools/test_readmes.py::test_faults",
  ("tests/fixtures/operands/README.md", "case a name"): "programs/test_operands_oracle.py::test_the_documented_format",
  ("tools/pjrt_log/README.md", "from jax._src import xla_bridge"): "tools/test_pjrt_log.py::test_calls_are_logged",
  ("tools/pjrt_log/README.md",
   "   0.280896  t2       5129.2 us    56  PJRT_Client_Compile mlir of 653 bytes, options of 1001 bytes"):
    "tools/test_pjrt_log.py::test_calls_are_logged",
  (PAGES + "elastic.md", 'jax.config.update("jax_enable_recoverability", True)'): "processes/test_elastic.py::test_a_killed_process_comes_back",
  (PAGES + "processes.md", 'jax.distributed.initialize("localhost:1234", num_processes, process_id)'):
    "processes/test_distributed.py::test_one_pod",
  (PAGES + "processes.md",
   'FAILED_PRECONDITION: the processes disagree on the topology: process 0 (pid 412 on a) has "v5e:4x4"'):
    "processes/test_mpirun_ends.py::test_other_topologies",
  (PAGES + "processes.md",
   "FAILED_PRECONDITION: the processes disagree on which of them share a pod: process 0 chose processes 0,1"):
    "processes/test_presence.py::test_processes_that_disagree_on_their_subset",
  (PAGES + "processes.md",
   "INVALID_ARGUMENT: collectives do not match: process 0: device 0 is at stablehlo.all_reduce (psum at"):
    "processes/test_mpirun_launches.py::test_different_reductions_and_types_do_not_meet",
  (PAGES + "frameworks.md", "pl.pallas_call(kernel, ..., interpret=pltpu.InterpretParams("):
    "pallas/test_pallas.py::test_a_copy_that_nothing_waits_for_shows_in_the_interpreter",
  (PAGES + "processes.md", "export MINIPOD_TIME=model MINIPOD_VALUES=shapes"):
    "processes/test_absent.py::test_times_and_memory_are_those_of_all_processes",
  (PAGES + "torch_tpu.md", "export MINIPOD_TIME=model MINIPOD_VALUES=shapes"): "torch_tpu/test_torch_tpu_only.py::test_256_ranks",
  (PAGES + "cookbook/pytorch.md", "import torch"): "pytorch/test_torch_first_steps.py::test_the_page",
  (PAGES + "cookbook/pytorch.md", "PJRT_DEVICE=MINIPOD python train.py"): "pytorch/test_torch_first_steps.py::test_the_page",
}
# Why a block is run manually.  Its scripts exist, and accept the printed options.
BY_HAND = {
  (PAGES + "torch_tpu.md", "pip install 'torch>=2.11' torch_tpu ."): "3 GB of packages: tools/test --torch-tpu",
  ("tools/torch_tpu/README.md",
   "MINIPOD_TOPOLOGY=v6e:1x1 MINIPOD_DUMP=dump tools/torch_tpu/databases.py run ops.jsonl"):
    "an hour, with the packages of tools/test --torch-tpu",
  ("tools/mosaic/README.md", "pip install flatbuffers"): "minutes; random/test_random_mosaic.py has a small corpus",
  ("tools/mosaic/README.md", "oracle/bin/python tools/mosaic/price/record.py --chips v5e,v6e,7x"):
    "libtpu, and minutes; model/test_kernel_price.py has small kernels",
  ("README.md", "tools/demo"): "sets up a machine; tools/test is what runs this test",
  ("README.md", "pip install '.[jax]'"): "builds a wheel: tools/roots.py does, test_wheel.py has a smaller one",
  (PAGES + "first_steps.md", "apt install gcc cmake ninja-build"): "packages: see test_packages",
  (PAGES + "first_steps.md", "pip install '.[jax]'"): "builds a wheel: tools/roots.py does, test_wheel.py has a smaller one",
  (PAGES + "cookbook/ci.md", "name: test"): "a workflow of GitHub's machines",
  (PAGES + "elastic.md", "export JAX_PLATFORMS=minipod MINIPOD_DEVICES=1"):
    "a script of JAX's own: tools/reliability/guide.py does it, ten times in a row",
  (PAGES + "frameworks.md", "export JAX_PLATFORMS=minipod MINIPOD_TOPOLOGY=v5e:16x16"):
    "MaxText has a hundred packages: tools/foreign/run.py frameworks maxtext",
  ("tests/README.md", "tools/test --jax 0.9.2"): "whole runs on other versions of JAX",
  ("tests/fixtures/chip_text/README.md", ".venv/bin/python tests/e2e/command/test_chip_text.py --write"):
    "writes into the tree what test_chip_text.py compares",
  ("tools/pjrt_log/README.md",
   "PJRT_LOG_PLUGIN=$PWD/build/pjrt_c_api_minipod_plugin.so PJRT_LOG_FILE=calls.%p.txt     "
   "TPU_LIBRARY_PATH=$PWD/build/pjrt_log.so python train.py"): "needs TorchTPU; test_pjrt_log.py does it with JAX",
  ("tools/README.md", ".venv/bin/python tools/bench/table.py reductions --filter softmax"): "measures: wants a quiet machine",
  (PAGES + "new_chip.md", "python3.12 -m venv my_chips/oracle"): "compilers of chips, ten minutes; v3.json is the result",
  (PAGES + "new_chip.md", '"v3": Chip("v3:1x1x1", None, 0.94e9, 450e9, 61.5e12),'): "two lines that the tree has",
  (PAGES + "new_chip.md", '"l40s": Chip(864e9, 362e12, tables=False),'): "lines of a chip that the tree lacks",
  (PAGES + "new_chip.md", ".venv/bin/python tools/chip/fit.py v3 --file my_chips/v3.yaml --write my_chips/v3.yaml"):
    "minutes; configs/chips/v3.yaml is the result",
  ("topology/figures/README.md", "sources:"): "topology/test_figures reads such a key",
  ("tools/chip/README.md", "python3.12 -m venv oracle"): "compilers of chips, and hours; test_chip_texts.py has their texts",
  ("tools/foreign/README.md", "python3 tools/foreign/run.py frameworks"): "10 GB from the network",
  ("tools/foreign/README.md", ".venv/bin/python tools/foreign/run.py documents"): "wants libraries; test_foreign.py has documents",
  ("tools/install/README.md", "cmake --preset release -DMINIPOD_TESTS=OFF && ninja -C build pjrt_c_api_minipod_plugin.so"):
    "builds everything once more; test_install.py installs into a folder of its own",
  ("tools/published/README.md", ".venv/bin/python tools/published/compare.py"): "minutes; test_published.py has a part",
  ("tools/reliability/README.md", "tools/reliability/doors.py"): "hours, as root",
  ("tools/simgrid/README.md", "apt-get install libsimgrid-dev"): "SimGrid is no package that the tests want",
  ("tools/simgrid/README.md", "tools/simgrid/compare.py --filter torus --algorithm halving_doubling"): "the same",
  ("tools/site/README.md", "tools/site/build"): "test_site.py runs the examples, and builds the site in full runs",
  ("tools/size/README.md", ".venv/bin/python tools/size/measure.py --slices 199 --processor --plot tools/size/size.png"):
    "minutes; test_size.py has a small one",
}


def build_folder():
  library = os.environ.get("MINIPOD_LIBRARY")
  return pathlib.Path(library).resolve().parent if library else ROOT / "build"


@pytest.fixture
def clone(tmp_path):
  """A folder with the files of a clone, to which commands may write."""
  folder = tmp_path / "clone"
  folder.mkdir()
  for path in ROOT.iterdir():
    if not path.name.startswith((".", "build")):
      (folder / path.name).symlink_to(path)
  (folder / "build").symlink_to(build_folder())
  (folder / ".venv").symlink_to(sys.prefix)
  return folder


def shell(text, folder, **variables):
  """(exit code, output on either stream) of lines for a shell, which ends at the first line that fails."""
  process = scenario.start_shell(f"set -e\n{text}", folder, mpirun.environment(**variables))
  return scenario.finish(process, timeout=150)[:2]


def find(file, name):
  found = [block for block in BLOCKS if (block.file, block.name) == (file, name)]
  assert len(found) == 1, f"{file}: {name}"
  return found[0]


def test_every_block_is_known():
  known = HERE.keys() | ELSEWHERE.keys() | BY_HAND.keys()
  wanted = {(block.file, block.name) for block in BLOCKS if block.kind != "drawing"}
  assert wanted == known
  assert sum(block.kind == "drawing" for block in BLOCKS) > 60


@pytest.mark.parametrize("name", HERE, ids=lambda name: f"{name[0]}: {name[1][:30]}")
def test_block(name, clone, tmp_path):
  run, block = HERE[name], find(*name)
  for program in run.needs:
    if not (shutil.which(program) if program != "build" else (build_folder() / "cmake_install.cmake").exists()):
      pytest.skip(f"no {program} here")
  for file, text in run.files.items():
    (clone / file).write_text(text)
  text = "\n".join(block.commands()) if block.text.startswith("$ ") else block.text
  code, out = shell(text.replace("/tmp/", f"{tmp_path}/"), clone, **run.variables)
  assert code == run.code and re.search(run.says, out, re.DOTALL), out


def test_faults(clone):
  """minipod accepts the faults of the README, in each form."""
  (clone / "script.py").write_text(SCRIPT)
  (clone / "faults.yaml").write_text(FAULTS)
  by_file, in_line, call = find("configs/README.md", "MINIPOD_FAULTS=faults.yaml python script.py").commands()
  pod = {"MINIPOD_TOPOLOGY": "torus:4x4", "MINIPOD_TIME": "model"}
  code, out = shell(by_file, clone, **pod)
  assert code == 1 and "link 'slice 0 (1,2) +x' is dead (faults.yaml:3)" in out, out
  code, out = shell(in_line, clone, **pod)
  assert code == 1 and "device 3" in out and "train_step" in out, out
  (clone / "call.py").write_text(f"import jax, minipod\njax.devices()\n{call}\nprint('taken')\nminipod.heal()\n")
  assert shell("python call.py", clone, **pod) == (0, "taken\n")


@pytest.mark.parametrize("name", ELSEWHERE, ids=lambda name: f"{name[0]}: {name[1][:30]}")
def test_blocks_that_other_tests_run(name):
  find(*name)
  file, function = ELSEWHERE[name].split("::")
  assert f"def {function}(" in (ROOT / "tests/e2e" / file).read_text()


def scripts_of(block):
  """(script, options) of each command that is a script of the tree."""
  for command in block.commands():
    match = re.search(r"(?:^|\s)(tools/\S+)(.*)", command)
    if match and (ROOT / match[1]).is_file():
      yield match[1], re.findall(r"--[a-z][\w-]*", match[2])


BY_HAND_SCRIPTS = {script: options for name in BY_HAND for script, options in scripts_of(find(*name))}


def test_scripts_exist():
  for name in BY_HAND:
    for command in find(*name).commands():
      for path in re.findall(r"(?<![\w/.-])tools/[\w/.]+", command):
        assert (ROOT / path).exists() or "--plot" in command, f"{name[0]}: {command}"


@pytest.mark.parametrize("script", sorted(BY_HAND_SCRIPTS))
def test_options_of_scripts(script):
  wanted = {option for name in BY_HAND for path, options in scripts_of(find(*name)) if path == script for option in options}
  is_python = script.endswith(".py")
  assert os.access(ROOT / script, os.X_OK) or all(not command.startswith(script) for name in BY_HAND
                                                  for command in find(*name).commands())
  done = subprocess.run([*([sys.executable] if is_python else []), ROOT / script, "--help"], text=True, capture_output=True,
                        env=scenario.environment(None), timeout=100)
  assert done.returncode == 0, done.stderr
  assert wanted <= set(re.findall(r"--[a-z][\w-]*", done.stdout)), done.stdout


def test_packages():
  """The READMEs name the packages that the set-up of the tests installs."""
  installed = (ROOT / "tools/setup.sh").read_text().split() + ["gcc", "libsimgrid-dev"]
  installed = {word.strip("()") .removeprefix("packages=(").removeprefix("native_packages=(") for word in installed}
  told = [command for block in BLOCKS if block.kind != "drawing" for command in block.commands() if re.match("apt(-get)? ", command)]
  assert len(told) == 5
  for command in told:
    assert set(command.split()[2:]) <= installed, command

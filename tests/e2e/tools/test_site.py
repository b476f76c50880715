"""The site: its examples print the output on the pages, its tables are up to date, and Sphinx prints no warning.

Each page has a folder of its own, in which its blocks run one after the other (tools/site/blocks.py).  The commands in
tables of the pages also run, if they need only a pod.
"""

import os
import pathlib
import re
import subprocess
import sys

import pytest
import scenario

ROOT = pathlib.Path(__file__).parents[3]
SITE = ROOT / "tools/site"
sys.path[:0] = [str(SITE), str(ROOT / "tools")]

import blocks
import four_numbers
import front_picture
import generate
import op_types
import shots

PAGES = sorted(path for path in (SITE / "pages").rglob("*.md"))
README = (ROOT / "README.md").read_text()


def execute(command, folder):
  """The output of a command on either stream, in the environment of a test."""
  env = scenario.environment(devices=None)
  env = {name: value for name, value in env.items() if name not in ("XLA_FLAGS", "PYTEST_ADDOPTS")}
  return scenario.finish(scenario.start_shell(command, folder, env), timeout=100)[1]


def name_of(path):
  return str(path.relative_to(SITE / "pages"))


NEEDS_TORCH = {"torch_tpu.md"}  # tests/e2e/torch_tpu/test_torch_tpu_page.py runs it
WITH_EXAMPLES = [path for path in PAGES if path.name not in NEEDS_TORCH
                 and any(block.kind == "console" for block in blocks.read(path.read_text()))]


@pytest.mark.parametrize("page", WITH_EXAMPLES, ids=name_of)
def test_examples(page, tmp_path):
  for block, command, told, printed in blocks.run(blocks.read(page.read_text()), tmp_path, execute):
    assert blocks.agree(told, printed, block.has_times), f"$ {command}{blocks.difference(told, printed)}\n{printed}"


def test_the_page_of_the_command_has_every_verb():
  from minipod import command
  page = (SITE / "pages/command.md").read_text()
  assert [verb for verb in command.VERBS if not re.search(rf"`{verb}`|minipod {verb}\b", page)] == []


def test_the_walk_through_the_rooms_names_what_is_there():
  """Files and folders named in "Adding an op"."""
  page = (SITE / "pages/adding_an_op.md").read_text()
  named = re.findall(r"`((?:sim|tests|collectives)/[\w/.]+)`", page)
  assert len(named) > 20 and [name for name in named if not (ROOT / name).exists()] == []


def test_every_file_is_used():
  """If no command names a block with a caption, the block is never run."""
  for page in PAGES:
    made = blocks.read(page.read_text())
    commands = " ".join(command for block in made if block.kind == "console" for command, _ in block.commands())
    for block in made:
      assert block.file is None or block.file in commands, f"{page}: {block.file}"


def test_comparing():
  assert blocks.agree("a ...\n", "a b\nc\n") and not blocks.agree("a\n", "b\n")
  assert blocks.agree("x  87.0 ms\n", "x 80.1 ms\n", has_times=True)
  assert not blocks.agree("x  87.0 ms\n", "x 8.01 ms\n", has_times=True)
  assert not blocks.agree("x 87.0 ms", "x 87.1 ms")


def test_lists_of_the_tree():
  """The lists read from the C code are those of the library."""
  listed = subprocess.run([sys.executable, "-m", "minipod", "options"], capture_output=True, text=True, check=True,
                          env=scenario.environment(devices=None)).stdout
  variables = re.findall(r'"variable": "(\w+)"', listed)
  assert variables == re.findall(r"^\| `(MINIPOD_\w+)`", generate.options(), re.MULTILINE)
  assert "| `bf16` | float | 16 | 2 |" in generate.types() and "tf32" not in generate.types()
  assert "`ragged_all_to_all`" in generate.collectives()
  assert "| PJRT C API | 0." in generate.versions()


def test_programs_with_another_type():
  program = "func.func @main(%a: tensor<6xf32>) -> tensor<6xi1> {\n  %c = stablehlo.constant dense<1.5> : tensor<f32>\n}"
  assert op_types.own_type(program) == "f32"
  assert "tensor<6xui8>" in op_types.with_type(program, "f32", "ui8", "UNSIGNED")
  assert "dense<0> : tensor<ui8>" in op_types.with_type(program, "f32", "ui8", "UNSIGNED")


def test_sections_of_readmes():
  faults = generate.section("configs/README.md", "Faults")
  assert faults.startswith("A list of faults") and "## Known machines" not in faults
  assert "](" not in re.sub(r"\]\(https?:", "", generate.section("tools/published/README.md"))


def commands_of_tables():
  """Commands on the page of the command, and pods on the page of options."""
  for command in re.findall(r"^\| `(minipod (?:topo|network|info|doctor|options|man|completion)\b[^`]*)`",
                            (SITE / "pages/command.md").read_text(), re.MULTILINE):
    yield command
  row = re.search(r"^\| `MINIPOD_TOPOLOGY`.*$", (SITE / "pages/options.md").read_text(), re.MULTILINE).group()
  for line in re.findall(r'`("[^`]*")`', row):
    yield f"minipod topo {line}"


def test_commands_of_tables(tmp_path):
  commands = list(commands_of_tables())
  assert len(commands) >= 9
  said = execute("\n".join(f"{command} > out 2>&1 || {{ echo {command!r}; cat out; }}" for command in commands), tmp_path)
  assert said == ""


def test_options_of_tables():
  """The library has the variables that the page of options explains first."""
  page = (SITE / "pages/options.md").read_text().partition("## All options")[0]
  first = re.findall(r"^\| `(MINIPOD_\w+)`", page, re.MULTILINE)
  assert len(first) >= 9 and set(first) <= set(re.findall(r"`(MINIPOD_\w+)`", generate.options()))


def test_every_page_is_in_a_group():
  front = (SITE / "pages/index.md").read_text()
  groups = re.findall(r"^```\{toctree\}\n(?::.*\n)*:caption: (.*)\n\n((?:\S+\n)+)```", front, re.MULTILINE)
  assert [name for name, _ in groups] == ["Start", "How-to", "Reference", "Accuracy", "Project"]
  shown = {page for _, pages in groups for page in pages.split()}
  assert shown == {name_of(path).removesuffix(".md") for path in PAGES if path.parent.name == "pages"} - {"index"} | {"cookbook/index"}


def test_tables_have_headers():
  for path in PAGES:
    heads = re.findall(r"^(\|.*)\n\|[ -]*-[|: -]*$", path.read_text(), re.MULTILINE)
    assert [head for head in heads if not re.search(r"\w", head)] == [], path


def test_numbers_of_the_readme():
  """The README has the recorded numbers: otherwise tools/four_numbers.py --write writes them."""
  assert four_numbers.written(README) == README
  assert "| **" in four_numbers.markdown() and len(four_numbers.numbers()) == 4
  for number in four_numbers.numbers():
    assert (ROOT / number.command.split()[0]).is_file() and all((ROOT / part).is_file() for part in number.again[:1])


def test_prediction_counts_the_rows_of_the_table():
  """The numbers are those that compare.py itself prints below the table."""
  text = (ROOT / "tools/published/README.md").read_text()
  rows, mean, worst = re.search(r"^\| all \| (\d+) \| ([\d.]+) % \| [+-]([\d.]+) %", text, re.MULTILINE).groups()
  number = four_numbers.prediction()
  assert f" {rows} published" in number.what and number.figure == f"{mean} % on average, {float(worst):.0f} % at worst"


def test_front_picture():
  """The picture of the front page is what its script draws; times may differ as on the page."""
  words = lambda svg: "\n".join(re.findall(r"<text[^>]*>([^<]*)<", svg)) + "\n"
  drawn = front_picture.make()
  assert drawn.startswith("<svg ") and drawn.count("<circle") == 16
  assert blocks.agree(words((SITE / "pages/front.svg").read_text()), words(drawn), has_times=True)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
  """The built site."""
  folder = tmp_path_factory.mktemp("site")
  if os.environ.get("MINIPOD_TEST_FULL") == "1":
    command = [SITE / "build", folder / "html"]
  else:
    pytest.importorskip("sphinx", reason="MINIPOD_TEST_FULL=1 builds the site in an environment of its own")
    pytest.importorskip("myst_parser")
    pytest.importorskip("furo")
    command = ["bash", "-c", f"{sys.executable} {SITE}/generate.py pages && {sys.executable} -m sphinx -W -q -E pages html"]
  import minipod
  process = subprocess.Popen(command, cwd=folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             env={**os.environ, "MINIPOD_LIBRARY": minipod.library_path()}, start_new_session=True)
  code, out, err = scenario.finish(process, timeout=600)
  assert code == 0, out + err
  return folder / "html"


def test_sphinx(site):
  front = (site / "index.html").read_text()
  assert all(f">{group}<" in front for group in ("Start", "How-to", "Reference", "Accuracy", "Project"))
  assert "the authors of minipod" in front and "front.svg" in front


def test_screenshots(site, tmp_path):
  """Front page and two others in a browser: nothing is cut off, pictures load, tables have headers."""
  if shots.browser() is None:
    pytest.skip("no Chromium here: apt install chromium-headless-shell")
  taken = list(shots.shots(site, tmp_path, shots.PAGES))
  assert {shot.page: shot.problems for shot in taken if shot.problems} == {}
  assert len(taken) == 9 and all(shot.file.read_bytes().startswith(b"\x89PNG") for shot in taken)


def test_the_probe_of_screenshots(tmp_path):
  """Errors that it must find: a missing picture, a table without a header, text that is too wide."""
  if shots.browser() is None:
    pytest.skip("no Chromium here: apt install chromium-headless-shell")
  (tmp_path / "bad.html").write_text(
      "<!doctype html><body><article><img src=none.png><table><tr><th></th></tr><tr><td>cell</td></tr></table>"
      "<p style='width:5000px'>wide</p></article><footer>the authors</footer></body>")
  [shot] = shots.shots(tmp_path, tmp_path / "out", ["bad.html"], {"phone": shots.VIEWS["phone"]})
  assert [problem.split(":")[0] for problem in shot.problems] == [
      shot.problems[0], "no picture", "cut off", "no header"] and "wider than the screen" in shot.problems[0]

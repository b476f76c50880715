"""`minipod report` and `minipod opt` may read files from anywhere: a malformed file causes one line and exit code 1."""

import copy
import gzip
import json
import random
import re
import subprocess
import sys

import pytest
import scenario
from minipod import report
from minipod import report_page

PROGRAM = {
    "name": "jit_step", "devices": 2, "launches": 3, "runs": 6, "seconds": 1.0, "available": 2.0, "work": 1.0, "collective": 0.5,
    "waiting": 0.25, "idle": 0.25, "hidden": 0.0, "other_work": 0.1, "other_collective": 0.0, "memory": {"bytes": 1024.0},
    "collectives": [{"kind": "all_reduce", "at": "psum at a.py:3", "members": 2, "first_members": [0, 1], "axes": "data",
                     "exposed": 0.5}],
    "ops": [{"name": "dot_general", "at": "dot_general at a.py:4", "class": "matmul", "time": 0.9}],
    "classes": [{"class": "matmul", "flops": 1e9, "time": 0.9}], "layers": [{"name": "jit(f)/mlp", "work": 1.0, "collective": 0.5}],
    "guessed": [{"at": "cond at a.py:5", "count": 1, "taken": 0, "branches": 2}]}
REPORT = {"pod": "v5e:1x2", "num_devices": 2, "flops": {"bf16": 1e12}, "seconds": 1.0, "launches": 3, "pending": 0,
          "programs": [PROGRAM]}
WRONG = [None, True, -1, 1.5, "text", [], {}, [None], 10**400, float("inf"), float("nan")]


def places_of(value, path=()):
  yield path
  for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
    yield from places_of(value[key], (*path, key))


def test_every_part_is_checked():
  """Missing or wrong members cause a ValueError; a report that is accepted becomes tables."""
  draw, refused = random.Random(1), 0
  for path in list(places_of(REPORT))[1:]:
    for wrong in [*WRONG, "missing"]:
      made = copy.deepcopy(REPORT)
      owner = made
      for key in path[:-1]:
        owner = owner[key]
      if wrong == "missing":
        del owner[path[-1]]
      else:
        owner[path[-1]] = wrong
      try:
        read = report.read_one(json.dumps(made))
      except ValueError:
        refused += 1
        continue
      for by in report.GROUPS:
        report.summary(read, by, tokens=draw.choice((None, 8.0)))
      report_page.page(read)
      report.difference(read, report.read_one(json.dumps(REPORT)))
  assert refused > 300


def programs_of(*seconds):
  """A report whose programs take so long, without guesses."""
  made = copy.deepcopy(REPORT)
  made["programs"] = [PROGRAM | {"name": f"jit_f{i}", "seconds": each, "available": 2 * each, "guessed": []}
                      for i, each in enumerate(seconds)]
  return made


def shown_by(made):
  """The names of the programs that the summary and the page have, in the table and with tables of their own."""
  text, page = report.summary(made), report_page.page(made)
  in_page = re.findall(r'<tr><td class="name">(jit_f\d+|\(.* other programs?\))</td>.*?<td class="n">([\d.]+ %|-)</td></tr>', page)
  in_text = re.findall(r"^(jit_f\d+|\(.* other programs?\)) .* ([\d.]+ %|-)$", text, re.MULTILINE)
  assert in_page == in_text
  own = re.findall(r"^(jit_f\d+)$", text, re.MULTILINE)
  assert own == re.findall(r"<summary>(.*?)</summary>", page)
  assert [name for name, _ in in_text if name in own] == own and max(map(len, text.splitlines())) <= 100
  return own, in_text[len(own):]


def test_short_programs_are_one_line():
  """Programs below 1 % of the time, unless one guessed or is the only one; their shares add up."""
  assert shown_by(programs_of(1, 0.5)) == (["jit_f0", "jit_f1"], [])
  assert shown_by(programs_of(1, 0.001)) == (["jit_f0", "jit_f1"], [])
  assert shown_by(programs_of(1, 0.002, 0.002)) == (["jit_f0"], [("(2 other programs)", "0.4 %")])
  assert shown_by(programs_of(1, 1, *[1e-5] * 12)) == (["jit_f0", "jit_f1"], [("(12 other programs)", "0.0 %")])
  assert shown_by(programs_of(*[1] * 9)) == ([f"jit_f{i}" for i in range(8)], [("(1 other program)", "11.1 %")])
  assert shown_by(programs_of(0, 0, 0)) == (["jit_f0", "jit_f1", "jit_f2"], [])
  guessing = programs_of(1, 0.002, 0.002, 0.002)
  guessing["programs"][2]["guessed"] = PROGRAM["guessed"]
  assert shown_by(guessing)[0] == ["jit_f0", "jit_f2"]


def run(*words, code=1, **keywords):
  done = subprocess.run([sys.executable, "-m", "minipod", *map(str, words)], capture_output=True, timeout=120,
                        env=scenario.environment(devices=None), **keywords)
  assert done.returncode == code, done.stderr
  return done.stderr.decode()


@pytest.mark.parametrize("text", ["", "nothing", "[]", "3", "{\"programs\": 3}", "[" * 100000, "\x1b[31m{", "{\"a\": \"\x1b\"}"])
def test_malformed_reports_are_one_line(tmp_path, text):
  (tmp_path / "t.json").write_text(text)
  said = run("report", tmp_path / "t.json")
  assert said.startswith(f"minipod report: {tmp_path}/t.json: no time report as JSON: ") and said.count("\n") == 1
  assert "\x1b" not in said


def test_reports_may_be_compressed_or_damaged(tmp_path):
  (tmp_path / "t.json.gz").write_bytes(gzip.compress(json.dumps(REPORT).encode()))
  assert "no time report" not in run("report", tmp_path / "t.json.gz", code=0)
  (tmp_path / "cut.json.gz").write_bytes(gzip.compress(json.dumps(REPORT).encode())[:-20])
  assert "it cannot be decompressed" in run("report", tmp_path / "cut.json.gz")
  (tmp_path / "no.json").write_bytes(b"\x80{}")
  assert "it is not text" in run("report", tmp_path / "no.json")


def test_files_that_cannot_be_opened_are_named(tmp_path):
  assert run("report", "nofile") == "minipod report: cannot open 'nofile': No such file or directory\n"
  assert run("report", tmp_path) == f"minipod report: cannot open '{tmp_path}': Is a directory\n"


def test_what_never_ends_is_not_read():
  assert "is a device" in run("report", "/dev/zero") and "is a device" in run("opt", "/dev/zero")
  with open("/dev/zero", "rb") as zeros:
    assert "is a device" in run("opt", "-", stdin=zeros)


def test_operations_without_a_location_have_the_name_of_their_file(tmp_path):
  path = tmp_path / "add.mlir"
  path.write_text("module { func.func @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {\n"
                  "  %0 = stablehlo.add %arg0, %arg0 : tensor<4xf32>\n  return %0 : tensor<4xf32> } }")
  done = subprocess.run([sys.executable, "-m", "minipod", "opt", "--locations", str(path)], capture_output=True, text=True,
                        env=scenario.environment(devices=None), timeout=120)
  assert f'loc("{path}":2:' in done.stdout and "<text>" not in done.stdout, done.stdout + done.stderr
  path.write_text(path.read_text().replace(
      "stablehlo.add %arg0, %arg0 : tensor<4xf32>",
      '"stablehlo.transpose"(%arg0) {permutation = array<i64: 3>} : (tensor<4xf32>) -> tensor<4xf32>'))
  for verb in ("opt", "partition", "exec"):
    assert f"[stablehlo.transpose, {path}:2:" in run(verb, path)


def test_names_cannot_steer_terminals(tmp_path):
  """Control characters of names are escaped, in reports of either kind, and in errors."""
  out = scenario.run(r"""
      import minipod
      def f(x):
        with jax.named_scope("layer\x1b[31m\n"):
          return (x @ x).sum()
      f.__name__ = f.__qualname__ = "st\x1b]0;ep\x9b"
      jax.block_until_ready(jax.jit(f)(jnp.ones((256, 256))))
      code = compile("y = jax.jit(lambda x: jnp.tanh(x) @ x)(jnp.ones((256, 256))); jax.block_until_ready(y)",
                     "fi\x1b[2Jle.py", "exec")
      exec(code)
      print(minipod.time_report(), *[minipod.time_report("summary", by=by) for by in ("line", "layer")], sep="\n")
      """, devices=None, MINIPOD_TOPOLOGY="v5e:1x1", MINIPOD_TIME="model")
  assert not any(ord(c) < 32 and c != "\n" or 127 <= ord(c) < 160 for c in out), [c for c in out if ord(c) < 32]
  assert r"fi\x1b[2Jle.py" in out and r"layer\x1b[31m" in out
  hostile = {**REPORT, "pod": "\x1b[31m", "programs": [{**PROGRAM, "name": "\x1b]0;x\x07"}]}
  (tmp_path / "t.json").write_text(json.dumps(hostile))
  done = subprocess.run([sys.executable, "-m", "minipod", "report", str(tmp_path / "t.json")], capture_output=True, text=True,
                        env=scenario.environment(devices=None), timeout=120)
  assert done.returncode == 0 and "\x1b" not in done.stdout and "\x07" not in done.stdout and r"\x1b]0;x\x07" in done.stdout
  assert "\x1b" not in run("opt", "no\x1b[31m.mlir")


def test_eager_ops_are_one_program():
  """Of a framework that compiles a program per op and labels its launches."""
  def program(name, callers, ops, **changes):
    one = {**REPORT["programs"][0], "name": name, "seconds": 2.0, "available": 4.0, "runs": 8, "launches": 4,
           "work": 3.0, "collective": 1.0, "waiting": 0.0, "idle": 0.0, "collectives": [], "other_collective": 1.0,
           "other_work": 0.0, "ops": ops, "layers": [], "callers": callers}
    return {**one, **changes}
  op = {"name": "dot_general", "at": "linear", "class": "matmul", "time": 3.0}
  caller = {"launches": 1, "runs": 2, "seconds": 0.5, "available": 1.0}
  programs = [
      program("tt_jit_linear", [{**caller, "at": "blocks.0.up at train.py:3"}, {**caller, "at": "head at train.py:9"},
                                {**caller, "at": "blocks.0.up (backward) at train.py:3"}], [op]),
      program("tt_jit_cross_entropy_loss", [], [op]),
      program("tt_jit_export", [{**caller, "at": "AdamW (optimizer) at train.py:20"}], [{**op, "at": "mm at train.py:7"}])]
  whole = {**REPORT, "programs": programs, "seconds": 12.0}
  by_layer, by_line = (report.summary(whole, by) for by in ("layer", "line"))
  assert "(eager ops)" in by_layer and "tt_jit_export" in by_layer and "tt_jit_linear" not in by_layer
  assert [line.split()[:4] for line in by_layer.splitlines() if " work " in line][:3] == [
      ["cross_entropy_loss", "work", "1.50", "s"], ["blocks.0.up", "work", "375", "ms"], ["head", "work", "375", "ms"]]
  assert "AdamW" not in by_layer
  lines = [line.split() for line in by_line.splitlines()]
  assert ["train.py:3", "work", "750", "ms", "18.8", "%"] in lines and ["train.py:3", "collective", "250", "ms", "6.2", "%"] in lines
  assert ["(cross_entropy_loss)", "work", "1.50", "s", "37.5", "%"] in lines
  assert ["all", "4.00", "s", "100.0", "%"] in lines
  assert "8 launches of 500 ms on 2 devices; devices are busy 50.0 % of the time" in by_line
  assert all(f"by {by}</th>" in report_page.page(whole) for by in report.GROUPS)

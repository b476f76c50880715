"""`minipod chip`: programs as described chips run them."""

import json
import pathlib
import subprocess
import sys

import jax
import jax.numpy as jnp
import pytest
import scenario

ROOT = pathlib.Path(scenario.__file__).resolve().parents[2]


def minipod(*words, code=0, variables=None):
  done = subprocess.run([sys.executable, "-m", "minipod", *map(str, words)], capture_output=True, text=True, timeout=300,
                        env={**scenario.environment(devices=None), **(variables or {})})
  assert done.returncode == code, done.stdout + done.stderr
  return done


def lowered(path, function, *shapes):
  arguments = [jax.ShapeDtypeStruct(shape, jnp.bfloat16) for shape in shapes]
  path.write_text(jax.jit(function).lower(*arguments).as_text())
  return path


@pytest.fixture
def softmax(tmp_path):
  return lowered(tmp_path / "softmax.mlir", lambda x: jax.nn.softmax(x), (4096, 4096))


def test_a_program_is_printed_as_the_chip_runs_it(softmax):
  text = minipod("chip", "--target", "v5e", softmax).stdout
  assert " on v5e, 1 device: " in text.splitlines()[0]
  assert "memory per device: arguments 32 MiB, results 32 MiB" in text
  assert "tensor<4096x4096xbf16>, 32 MiB, HBM" in text and "tensor<4096xbf16>, 0.007812 MiB, VMEM" in text
  fused = minipod("chip", "--target", "h100", softmax).stdout
  assert fused.count(" ops ") == 1, "XLA's GPU compiler has a softmax in one kernel"


def test_json_has_the_kernels_and_their_arrays(softmax):
  row = json.loads(minipod("chip", "--json", "--target", "v5e", softmax).stdout)
  assert row["target"] == "v5e" and row["devices"] == 1 and row["seconds"] > 0
  assert sum(kernel["seconds"] for kernel in row["kernels"]) == pytest.approx(row["work_seconds"], rel=1e-6)
  assert {access["space"] for kernel in row["kernels"] for access in kernel["reads"]} == {"HBM", "VMEM"}


def test_the_share_that_rests_on_estimates_is_printed(softmax, tmp_path):
  assert "rests on" not in minipod("chip", "--target", "v5e", softmax).stdout, "all of it is from libtpu"
  assert "  100 % of this time rests on estimated or copied parameters: memory.share" in (
      minipod("chip", "--target", "h200", softmax).stdout), "an H100's"
  assert "rests on" not in minipod("chip", "--structure", "--target", "h200", softmax).stdout
  factors = tmp_path / "factors.mlir"
  factors.write_text(jax.jit(jnp.linalg.cholesky).lower(jax.ShapeDtypeStruct((512, 512), jnp.float32)).as_text())
  line = next(line for line in minipod("chip", "--target", "v4", factors).stdout.splitlines() if "rests on" in line)
  percent = int(line.split()[0])
  assert 50 < percent < 100 and "parameters: linalg.column, " in line and len(line) <= 100
  row = json.loads(minipod("chip", "--summary", "--target", "v4", factors).stdout)
  assert round(100 * row["unsure_seconds"] / row["work_seconds"]) == percent


def test_parameters_are_printed_with_their_sources(tmp_path):
  rows = {line.split("\t")[0]: line.split("\t")[1:] for line in minipod("chip", "--parameters", "--target", "v6e").stdout.splitlines()}
  assert rows["memory.latency"] == ["900ns", "compiler", "until a kernel's first bytes arrive"]
  assert rows["memory.share"][1] == "copied" and rows["gather.slice"][1] == "estimate" and len(rows) > 50
  assert rows["matmul.tile"][0] == "{k: 128, columns: 256, rows: 128}"
  # What is printed can be written into a file.
  file = tmp_path / "same.yaml"
  file.write_text("compiler: tpu\n" + "".join(f"{key.split('.')[0]}: {{{key.split('.')[1]}: {value[0]}}}\n"
                                               for key, value in rows.items() if key in ("memory.latency", "fft.element")))
  assert "memory.latency\t900ns\tunmarked" in minipod("chip", "--parameters", "--target", f"v6e:1x1 chip:{file}").stdout


def test_a_copy_is_made_where_layouts_differ(tmp_path):
  """Batches of small matrices lie with the batch in the lanes, which matmuls do not read."""
  def attend(q, k):
    return jnp.einsum("bhqd,bhkd->bhqk", q, k)
  file = lowered(tmp_path / "scores.mlir", attend, (4096, 4, 16, 32), (4096, 4, 16, 32))
  copies = [line for line in minipod("chip", "--target", "v5e", file).stdout.splitlines() if "layout copy" in line]
  assert [line.split()[2] for line in copies[:2]] == ["%0", "%1"]
  assert all("{0,3} -> {3,2} for dot_general" in line for line in copies[:2])


def test_several_programs_and_targets_are_lines_of_a_summary(softmax, tmp_path):
  wrong = tmp_path / "wrong.mlir"
  wrong.write_text("module {")
  lines = [json.loads(line) for line in
           minipod("chip", "--summary", "--target", "v5e", "--target", "h100", softmax, wrong).stdout.splitlines()]
  assert [line.get("target") for line in lines] == ["v5e", "h100", ""]
  assert "num_kernels" in lines[0] and "kernels" not in lines[0] and "error" in lines[2]


def test_rules_are_listed_and_switched_off(softmax):
  rules = [line.split("\t") for line in minipod("chip", "--rules").stdout.splitlines()]
  assert all(rule[1] in ("tpu", "gpu", "both") and rule[4] in ("rule", "pass") for rule in rules)
  row = json.loads(minipod("chip", "--ablate", "--target", "h100", softmax).stdout)
  assert set(row["without"]) <= {rule[0] for rule in rules} and "rows_close" in row["without"]
  without = json.loads(minipod("chip", "--summary", "--target", "h100", softmax,
                               variables={"MINIPOD_CHIP_WITHOUT": "rows_close"}).stdout)
  assert without["num_kernels"] == row["without"]["rows_close"]["num_kernels"] > row["base"]["num_kernels"]
  error = minipod("chip", "--target", "h100", softmax, code=1, variables={"MINIPOD_CHIP_WITHOUT": "rows_clos"}).stderr
  assert "'rows_clos' is not a rule of the chip model, did you mean 'rows_close'?" in error


def test_a_pod_must_be_large_enough(tmp_path):
  file = tmp_path / "sharded.mlir"
  file.write_text("module attributes {mhlo.num_partitions = 4 : i32} {\n"
                  "  func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {\n    return %a : tensor<8xf32>\n  }\n}\n")
  error = minipod("chip", "--target", "v5e", file, code=1).stderr
  assert "the program is for 4 devices, and v5e has 1: name a larger pod with --target" in error
  assert " on v5e:2x2, 4 devices: " in minipod("chip", "--target", "v5e:2x2", file).stdout


def test_the_corpus_scores_above_its_floors():
  done = subprocess.run([sys.executable, ROOT / "tools" / "chip" / "compare.py", "--check"], capture_output=True, text=True,
                        timeout=300, cwd=ROOT)
  assert done.returncode == 0, done.stdout[-3000:] + done.stderr


def test_few_rules_are_without_evidence():
  done = subprocess.run([sys.executable, ROOT / "tools" / "chip" / "ablate.py", "--check"], capture_output=True, text=True,
                        timeout=300, cwd=ROOT)
  assert done.returncode == 0, done.stdout[-3000:] + done.stderr

"""tools/foreign/: documents on both platforms, and reading frameworks' logs and time reports.

Nothing is installed.
"""

import dataclasses
import pathlib
import subprocess
import sysconfig
import sys
import time

import pytest
import scenario

FOREIGN = pathlib.Path(__file__).resolve().parents[3] / "tools" / "foreign"
sys.path.insert(0, str(FOREIGN))
import documents
import frameworks
import platforms

LOGS = {
    "maxtext": ("@1.0 I1124 13:06:02 completed step: 1, seconds: 9.195, TFLOP/s/device: 86.800, "
                "Tokens/s/device: 890.9, total_weights: 1, loss: 6.714, lm_loss: 6.714, perplexity: 823.6\n"
                "@2.0 I1124 13:06:11 completed step: 2, seconds: 9.2, TFLOP/s/device: 87, "
                "total_weights: 1, loss: nan, lm_loss: nan\n", [6.714, float("nan")], [9.195, 9.2], [9.195, 9.2], [86.8, 87]),
    "tunix": ("@1.0 I1124 23:59:59.500000 peft_trainer.py:488] Train step 1 training loss: 6.25  - training\n"
              "@2.0 I1124 00:00:02.000000 peft_trainer.py:488] Train step 2 training loss: 6.24  - training\n",
              [6.25, 6.24], [2.5], [2.5], []),
    "levanter": ('@1.0 {"event": "log", "step": 0, "metrics": {"train/loss": 6.7387, "global_step": 0}}\n'
                 '@1.1 {"event": "log", "metrics": {"throughput/duration": 0.5, '
                 '"throughput/gflops_per_second": 2.56e7, "throughput/hook_time": 0.25, "throughput/loading_time": 0.125}}\n'
                 '@2.0 {"event": "finish", "summary": {"train/loss": 6.6}}\n', [6.7387], [0.875], [0.5], [100.0]),
    "easydel": ("@1.0 (13:01:25 TrainerMetrics) {'epoch': 0.25, 'execution_time': 17.021, 'loss': 6.25, "
                "'train_step_time': 17.21, 'tflops': 0.5, 'mean_loss': 6.3}\n", [6.25], [17.021], [17.021], [0.5]),
}


@pytest.mark.parametrize("framework", frameworks.FRAMEWORKS, ids=lambda framework: framework.name)
def test_logs(framework):
  text, *expected = LOGS[framework.name]
  for found, wanted in zip(frameworks.read_log(framework.log, text), expected, strict=True):
    assert found == pytest.approx(wanted, nan_ok=True)


def test_losses_that_are_apart():
  assert frameworks.spread([6.25, 6.24], [6.25, 6.24]) == 0
  assert frameworks.spread([6.25], [6.24]) == pytest.approx(0.0016)
  assert frameworks.spread([], []) == frameworks.spread([1.0], [1.0, 2.0]) == float("inf")


def test_the_first_program_of_a_report():
  text = scenario.run("""
      import minipod
      step = jax.jit(lambda x: x @ x)
      for _ in range(3):
        x = step(jnp.ones((512, 512)))
      x.block_until_ready()
      print(minipod.time_report())
      """, devices=None, MINIPOD_TIME="model", MINIPOD_TOPOLOGY="v5e:2x2")
  report = frameworks.read_report(text)
  assert report.program == "jit__lambda" and report.launches == 3 and 1e-7 < report.each == report.every < 1e-3


TRAINING = """
import sys, time, jax, jax.numpy as jnp
step = jax.jit(lambda x: x @ x / 512)
x, begin = jnp.ones((512, 512)), time.perf_counter()
for i in range(8):
  x = step(x).block_until_ready()
  now = time.perf_counter()
  loss = float(x[0, 0]) + len(sys.argv[1:])
  print("completed step: %d, seconds: %.6f, TFLOP/s/device: 1.0, loss: %f" % (i, now - begin, loss))
  begin = now
"""


@pytest.fixture
def framework():
  """One of a single file."""
  run = frameworks.Run("a product", ["{python}", "-c", TRAINING])
  return dataclasses.replace(frameworks.FRAMEWORKS[0], values=run, pod=[dataclasses.replace(
      run, variables=frameworks.pod("v5e:2x2"))])


def test_a_training_on_both_platforms(framework, tmp_path):
  site = pathlib.Path(sysconfig.get_path("purelib"))
  row, is_good = frameworks.compare_values(framework, tmp_path, site)
  assert is_good and " | ".join(2 * [" ".join(["1"] * 8)]) in row and row.endswith("| nothing |"), row
  framework.values.cpu_arguments = ["more"]
  row, is_good = frameworks.compare_values(framework, tmp_path, site)
  assert not is_good and "2 2 2" in row, row


def test_a_training_on_a_pod(framework, tmp_path):
  row, _ = frameworks.run_on_pod(framework, tmp_path, pathlib.Path(sysconfig.get_path("purelib")), 0)
  # Most of such a short step is the host's own work, which the log includes and the report does not.
  assert "| a product | `v5e:2x2` |" in row and "nan" not in row and row.endswith(" GiB |"), row


DOCUMENT = """
```python
>>> import jax
>>> jax.device_count()
8
>>> jax.devices()[0]
```

```{code-cell}
---
tags: [raises-exception]
---
jax.numpy.ones(3) @ jax.numpy.ones(4)
```

```python
%time print(jax.default_backend() == "cpu")
```

```python
assert jax.default_backend() == "cpu"
```

```sh
not Python
```
"""


def test_documents_and_programs(tmp_path):
  (tmp_path / "page.md").write_text(DOCUMENT)
  (tmp_path / "program.py").write_text("import jax\nprint(jax.numpy.arange(3.0).sum() / 7, jax.device_count())\n")
  (tmp_path / "lacking.py").write_text("import a_package_that_is_missing\n")
  (tmp_path / "other.py").write_text("import jax\nprint(len(jax.default_backend()))\n")
  done = subprocess.run([sys.executable, FOREIGN / "run.py", "documents", tmp_path, "--jobs", "2"], text=True,
                        capture_output=True, env=scenario.environment(devices=None), timeout=300)
  columns, *rows = [line.strip("| ").split(" | ") for line in done.stdout.splitlines() if line.startswith("| ")]
  counts = {name: {column: int(cell) for column, cell in zip(columns[1:], cells) if cell.strip()} for name, *cells in rows}
  assert done.returncode == 1, done.stderr
  assert counts["page.md"] == {"run": 3, "same": 1, "other text": 1, "differ": 1, "an error that it shows": 1}
  assert counts["program.py"] == {"run": 1, "same": 1} and counts["lacking.py"] == {"package": 1}
  assert counts["other.py"] == {"run": 1, "other text": 1, "differ": 1} and counts["4 documents"]["differ"] == 2
  assert "page.md, cell 3: AssertionError" in done.stdout and "page.md, cell 2 prints something else" in done.stdout


def test_examples_are_programs():
  examples = sorted((FOREIGN / "examples").glob("*.py"))
  assert len(examples) == 10
  for path in examples:
    compile(*documents.cells_of(path), str(path), "exec")


def test_a_process_ends_at_its_limit_with_all_that_it_has_started(tmp_path):
  begin = time.monotonic()
  said = tmp_path / "said"
  assert platforms.run(["bash", "-c", "sleep 100 & echo $!; wait"], tmp_path, None, said, 0.5)[0] is None
  assert time.monotonic() - begin < 50
  while scenario.is_running(said.read_text().strip()):  # killed, but on a busy machine it has not run since
    assert time.monotonic() - begin < 50
    time.sleep(0.1)
  code, memory = platforms.run(["bash", "-c", "exit 3"], tmp_path, None, said)
  assert code == 3 and memory > 1 << 18

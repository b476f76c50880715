"""What tools/frameworks.py reads: logs of frameworks, and time reports. It installs nothing here."""

import pathlib
import sys

import pytest
import scenario

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "tools"))
import frameworks  # noqa: E402

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

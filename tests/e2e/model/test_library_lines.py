"""Operations that a library makes are the user's, at the line that calls it; layers of flax.nnx have their paths."""

import json
import subprocess
import sys

import pytest
import scenario

# As much of flax as its layers' names need, in a folder like those where packages are installed.
MODULE = """
class Module:
  def __init_subclass__(cls, **kwargs):
    super().__init_subclass__(**kwargs)

class Loaded(Module):
  pass
"""
LINEAR = """
import jax.numpy as jnp
from flax.nnx.module import Module

class Linear(Module):
  def __init__(self, d):
    self.kernel = jnp.ones((d, d))

  def __call__(self, x):
    return x @ self.kernel
"""
MODEL = """
import sys
sys.path.insert(0, PACKAGES)
import jax, jax.numpy as jnp, json, minipod
BEFORE
import flax.nnx.module, flax.nnx.linear

class Block(flax.nnx.module.Module):
  def __init__(self, d):
    self.up = flax.nnx.linear.Linear(d)
    self.downs = {"left": [flax.nnx.linear.Linear(d)]}

  def __call__(self, x):
    return jnp.tanh(self.downs["left"][0](jnp.tanh(self.up(x))))

class Model(flax.nnx.module.Module):
  def __init__(self, d):
    self.blocks = [Block(d) for _ in range(2)]

  def __call__(self, x):
    for block in self.blocks:
      x = block(x)
    return flax.nnx.linear.Linear(512)(x)

model = Model(512)
step = jax.jit(jax.grad(lambda x: model(x).sum()))
jax.block_until_ready(step(jnp.ones((512, 512))))
model(jnp.ones((512, 512)))  # at once: as before
by = {by: minipod.time_report("summary", by=by) for by in ("line", "layer")}
(program,) = [each for each in minipod.time_report("data")[0]["programs"] if each["name"] == "jit__lambda"]
print(json.dumps([by, program["ops"], minipod.time_report()]))
"""


@pytest.mark.parametrize("before", ("", "jax.devices()"))
def test_lines_and_layers_of_a_library(tmp_path, before):
  packages = tmp_path / "site-packages"
  (packages / "flax" / "nnx").mkdir(parents=True)
  (packages / "flax" / "__init__.py").touch()
  (packages / "flax" / "nnx" / "__init__.py").touch()
  (packages / "flax" / "nnx" / "module.py").write_text(MODULE)
  (packages / "flax" / "nnx" / "linear.py").write_text(LINEAR)
  script = tmp_path / "train.py"
  script.write_text(MODEL.replace("PACKAGES", repr(str(packages))).replace("BEFORE", before))
  env = scenario.environment(None, MINIPOD_TOPOLOGY="v5e:1x1", MINIPOD_TIME="model")
  done = subprocess.run([sys.executable, script], env=env, capture_output=True, text=True, timeout=300)
  assert done.returncode == 0 and "could not teach" not in done.stderr, done.stderr
  by, ops, text = json.loads(done.stdout.splitlines()[-1])
  places = {op["at"] for op in ops if op["class"] == "matmul"}
  assert places and all("train.py:" in place and ", in flax/nnx/linear.py:10:" in place for place in places), places
  assert "train.py:" in by["line"] and ", in flax/nnx/linear.py:10:" in by["line"] and str(packages) not in by["line"]
  assert all(max(map(len, each.splitlines())) <= 100 for each in [*by.values(), text])
  rows = [line.split()[0] for line in by["layer"].splitlines() if line.startswith("  Model")]
  wanted = {f"Model/blocks/{i}/{name}" for i in range(2) for name in ("up", "downs/left/0")} | {"Model/Linear"}
  assert wanted <= set(rows), by["layer"]
  matmuls = [line for line in text.splitlines() if line.startswith("  dot_general")]
  assert matmuls and all("train.py:" in line for line in matmuls), text


def test_errors_name_the_users_line_and_the_librarys(tmp_path):
  packages = tmp_path / "site-packages"
  packages.mkdir()
  (packages / "layers.py").write_text("import jax.numpy as jnp\ndef big(x):\n  return jnp.cumsum(x[:, None] * x, 0)\n")
  script = tmp_path / "train.py"
  script.write_text(f"import sys; sys.path.insert(0, {str(packages)!r})\nimport jax, jax.numpy as jnp, layers\n"
                    "jax.jit(lambda x: (layers.big(x) @ x).sum())(jnp.ones(1 << 16))\n")
  env = scenario.environment(None, MINIPOD_TOPOLOGY="v5e:1x1", MINIPOD_VALUES="shapes", MINIPOD_TIME="model")
  done = subprocess.run([sys.executable, script], env=env, capture_output=True, text=True, timeout=300)
  assert "does not fit" in done.stderr and f"at {script}:3:" in done.stderr, done.stderr
  assert ", in layers.py:3:" in done.stderr, done.stderr

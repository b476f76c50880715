"""Operations that a library makes belong to the user's line that calls it; layers of flax.nnx have their paths."""

import json
import subprocess
import sys

import pytest
import scenario

# The parts of flax that its layers' names need, in a folder like those of installed packages.
PACKAGE = """
from flax.nnx.module import Module
from flax.nnx.transforms import remat, scan
"""
TRANSFORMS = """
import functools, jax
from flax.nnx.module import Module

def _copied(value, array):
  if isinstance(value, Module):
    copy = object.__new__(type(value))
    vars(copy).update(_copied(vars(value), array))
    return copy
  if isinstance(value, (list, tuple)):
    return type(value)(_copied(each, array) for each in value)
  if isinstance(value, dict):
    return {key: _copied(each, array) for key, each in value.items()}
  return array(value) if hasattr(value, "shape") else value

def _pure(f, args):
  arrays = []
  _copied(args, arrays.append)
  return arrays, lambda arrays: f(*_copied(args, lambda _, rest=iter(arrays): next(rest)))

def remat(f):
  def run(*args):
    arrays, pure = _pure(f, args)
    return jax.checkpoint(pure)(arrays)
  return run

def scan(f=None, *, length=None):
  if f is None:
    return functools.partial(scan, length=length)
  def run(x, layers):
    arrays, pure = _pure(lambda layers: layers, (layers,))
    return jax.lax.scan(lambda x, arrays: (f(x, pure(arrays)), None), x, arrays, length=length)[0]
  return run
"""
MODULE = """
class Meta(type):
  def __call__(cls, *args, **kwargs):
    return super().__call__(*args, **kwargs)

class Module(metaclass=Meta):
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


COPIES = """
import sys
sys.path.insert(0, PACKAGES)
import jax, jax.numpy as jnp, minipod
BEFORE
from flax import nnx
import flax.nnx.linear
Linear = flax.nnx.linear.Linear

class Block(nnx.Module):
  def __init__(self, d):
    self.q, self.k = Linear(d), Linear(d)

  def __call__(self, x):
    return self.q(x) + jnp.tanh(self.k(x))

class Wrapped(Block):
  @nnx.remat
  def __call__(self, x):
    return self.k(super().__call__(x))

def stacked(block, n):
  for linear in (block.q, block.k):
    linear.kernel = jnp.stack([linear.kernel] * n)
  return block

class Model(nnx.Module):
  def __init__(self, d):
    self.encoder, self.decoder, self.wrapped = stacked(Block(d), 3), stacked(Block(d), 3), Wrapped(d)

  def __call__(self, x):
    @nnx.scan(length=3)
    def run(x, block):
      return Linear(512)(block(x))
    x = run(x, self.encoder)
    x = self.wrapped(x)
    return nnx.scan(nnx.remat(lambda x, block: block.k(x)))(x, self.decoder)

model = Model(512)
step = jax.jit(jax.grad(lambda x: model(x).sum()))
jax.block_until_ready(step(jnp.ones((512, 512))))
print(minipod.time_report("summary", by="layer"))
"""


def run_with_flax(tmp_path, text, before):
  packages = tmp_path / "site-packages"
  nnx = packages / "flax" / "nnx"
  nnx.mkdir(parents=True)
  (packages / "flax" / "__init__.py").write_text("import jax\n")
  for name, module in {"__init__": PACKAGE, "module": MODULE, "linear": LINEAR, "transforms": TRANSFORMS}.items():
    (nnx / f"{name}.py").write_text(module)
  script = tmp_path / "train.py"
  script.write_text(text.replace("PACKAGES", repr(str(packages))).replace("BEFORE", before))
  env = scenario.environment(None, MINIPOD_TOPOLOGY="v5e:1x1", MINIPOD_TIME="model")
  done = subprocess.run([sys.executable, script], env=env, capture_output=True, text=True, timeout=300)
  assert done.returncode == 0 and "could not teach" not in done.stderr, done.stderr
  assert str(packages) not in done.stdout
  return done.stdout


@pytest.mark.parametrize("before", ("", "jax.devices()"))
def test_lines_and_layers_of_a_library(tmp_path, before):
  by, ops, text = json.loads(run_with_flax(tmp_path, MODEL, before).splitlines()[-1])
  places = {op["at"] for op in ops if op["class"] == "matmul"}
  assert places and all("train.py:" in place and ", in flax/nnx/linear.py:10:" in place for place in places), places
  assert "train.py:" in by["line"] and ", in flax/nnx/linear.py:10:" in by["line"]
  assert all(max(map(len, each.splitlines())) <= 100 for each in [*by.values(), text])
  rows = [line.split()[0] for line in by["layer"].splitlines() if line.startswith("  Model")]
  wanted = {f"Model/blocks/{i}/{name}" for i in range(2) for name in ("up", "downs/left/0")} | {"Model/Linear"}
  assert wanted <= set(rows), by["layer"]
  matmuls = [line for line in text.splitlines() if line.startswith("  dot_general")]
  assert matmuls and all("train.py:" in line for line in matmuls), text


@pytest.mark.parametrize("before", ("", "jax.devices()"))
def test_layers_that_a_transformation_copies(tmp_path, before):
  text = run_with_flax(tmp_path, COPIES, before)
  rows = {line.split()[0] for line in text.splitlines() if line.startswith("  ") and "/" in line.split()[0]}
  assert rows == {"Model/encoder/q", "Model/encoder/k", "Model/Linear", "Model/wrapped/q", "Model/wrapped/k",
                  "Model/decoder/k"}, text


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

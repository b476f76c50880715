"""Collectives that the partitioner or the chip's compiler makes are reported at lines and layers of the user's program.
"""

import json
import textwrap

import pytest
import scenario

# Three layers of two matmuls each; all gradients are first used by an op in the optimizer's line.
PROGRAM = """
    import minipod
    mesh = Mesh(np.array(jax.devices()), ("x",))
    on = lambda *axes: NamedSharding(mesh, P(*axes))
    weights = on(*{spec})
    narrow = lambda p: lax.with_sharding_constraint(p.astype(jnp.bfloat16), on())
    def layer(w, x):
      w = jax.tree.map(narrow, w)
      h = jnp.maximum(x @ w["up"], 0)  # LAYER
      return x + h @ w["down"]  # SECOND
    def loss(ws, x):
      for i, w in enumerate(ws):
        with jax.named_scope(f"layer{{i}}"):
          x = lax.with_sharding_constraint(layer(w, x), on("x"))
      return (x.astype(jnp.float32) ** 2).mean()
    def step(ws, x):
      value, gradients = jax.value_and_grad(loss)(ws, x)
      return jax.tree.map(lambda w, g: w - 0.1 * g, ws, gradients), value  # OPTIMIZER
    ws = [jax.device_put({{"up": np.ones((64, 256), np.float32), "down": np.ones((256, 64), np.float32)}}, weights)
          for _ in range(3)]
    x = jax.device_put(np.ones((4096, 64), jnp.bfloat16), on("x"))
    jax.block_until_ready(jax.jit(step, out_shardings=(weights, on()))(ws, x))
    """


def line_of(code, mark):
  return next(i for i, line in enumerate(code.splitlines(), 1) if line.endswith(f"# {mark}"))


def run(tmp_path, pod, spec):
  script = tmp_path / "train.py"
  code = scenario.PRELUDE + textwrap.dedent(PROGRAM).format(spec=spec) + "print(minipod.time_report('json'))\n"
  script.write_text(code)
  out = scenario.run(f"import runpy; runpy.run_path({str(script)!r})", devices=None, MINIPOD_TOPOLOGY=pod,
                     MINIPOD_TIME="model")
  (program,) = [p for p in json.loads(out)[0]["programs"] if p["name"] == "jit_step"]
  return program, {mark: line_of(code, mark) for mark in ("LAYER", "SECOND", "OPTIMIZER")}


# torus: the partitioner combines several sums into one; v5e: the chip's compiler combines the remaining ones.
@pytest.mark.parametrize("pod", ["torus:2x2", "v5e:2x2", "h100:4"])
@pytest.mark.parametrize("spec", [(), ("x",)])
def test_sums_of_gradients_are_their_layers(tmp_path, pod, spec):
  program, lines = run(tmp_path, pod, spec)
  places = [row["at"] for row in program["collectives"]]
  assert any(f"train.py:{lines[mark]}:" in place for mark in ("LAYER", "SECOND") for place in places), places
  assert not any(f"train.py:{lines['OPTIMIZER']}:" in place for place in places), places
  sums = [row for row in program["collectives"] if row["kind"] in ("all_reduce", "reduce_scatter")]
  assert any(row["at"].startswith("dot_general at ") for row in sums), sums
  # All sums belong to layers, except that of the loss.
  shares = {}
  for row in program["layers"]:
    name = next((f"layer{i}" for i in range(3) if f"layer{i}" in row["name"]), "")
    shares[name] = shares.get(name, 0) + row["collective"]
  assert sum(shares.values()) == pytest.approx(program["collective"], rel=1e-6)
  assert all(shares[f"layer{i}"] > 0 for i in range(3)), shares
  if not spec:
    assert shares["layer0"] == pytest.approx(shares["layer2"], rel=1e-6)
    assert any(" and 1 more" in place for place in places), places

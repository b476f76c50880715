"""Findings of the report, each with its line and its share of the step."""

import json
import textwrap

import pytest
import scenario

PROLOGUE = """
    import minipod
    mesh = Mesh(np.array(jax.devices()).reshape(2, 4), ("data", "fsdp"))
    on = lambda *axes: NamedSharding(mesh, P(*axes))
    put = lambda value, *axes: jax.device_put(np.full(value, 0.01, np.float32), on(*axes))
    """
EPILOGUE = """
    jax.block_until_ready(result)
    import json
    print(json.dumps([minipod.time_report("summary", mesh=mesh), minipod.time_report("html", mesh=mesh),
                      minipod.time_report("data"), minipod.time_report()]))
    """
# Layers with sharded weights; the batch is sharded or not.
LAYERS = """
    weights = put((512, 2048), "fsdp"), put((2048, 512), "fsdp")
    def loss(weights, x):
      up, down = (lax.with_sharding_constraint(w, on()) for w in weights)
      return ((x + jnp.maximum(x @ up, 0) @ down) ** 2).mean()
    step = jax.jit(lambda ws, x: jax.tree.map(lambda w, g: w - 0.1 * g, ws, jax.grad(loss)(ws, x)),
                   out_shardings=on("fsdp"))
    """
ATTENTION = """
    def attention(q, k, v):
      scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / 8
      scores = jnp.where(jnp.tril(jnp.ones((512, 512), bool)), scores, -1e9)
      return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), v)
    q = put((8, 512, 8, 64), "data", None, "fsdp")
    def layers(q):
      return lax.scan(lambda q, _: (attention(q, q * 2, q * 3), None), q, None, length=3)[0].sum()
    result = jax.jit(jax.grad(layers))(q)
    """
PART = """
    def part(x):
      return lax.dynamic_slice_in_dim(lax.psum(x, "fsdp"), lax.axis_index("fsdp") * 1024, {size}, 0)
    result = jax.jit(jax.shard_map(part, mesh=mesh, in_specs=P("data"), out_specs=P(("data", "fsdp")), check_vma=False))(
        put((8192, 512), "data"))
    """


def find(code, **variables):
  """The findings in the text and in the data, and the page."""
  out = scenario.run("".join(map(textwrap.dedent, (PROLOGUE, code, EPILOGUE))), devices=None, timeout=120,
                     MINIPOD_TOPOLOGY="v5e:2x4", MINIPOD_TIME="model", **variables)
  text, page, (data,), table = json.loads(out)
  program = max(data["programs"], key=lambda program: program["seconds"])
  shares = {row["finding"]: (row["time"] / program["available"], row) for row in reversed(program["findings"])}
  assert max(map(len, text.splitlines())) <= 100, text
  found, in_table = (each.partition("\nfindings")[2] for each in (text, table))
  # The table has the same findings, with the axis names of the program's own mesh if no mesh is passed.
  assert in_table.split() == found.split(), (in_table, found)
  assert all(len(line) <= 100 for line in in_table.splitlines())
  return found, shares, page


def test_a_program_that_shards_everything_has_exposed_collectives_alone():
  text, shares, _ = find(LAYERS + 'result = step(weights, put((4096, 512), ("data", "fsdp")))')
  assert set(shares) == {"exposed"}
  assert "exposed: all_gather along fsdp" in text and "exposed: all_reduce along data and fsdp" in text
  assert "device " not in text


def test_a_replicated_batch():
  text, shares, page = find(LAYERS + "result = step(weights, put((4096, 512)))")
  share, row = shares["batch"]
  assert share > 0.2 and row["devices"] == 8 and row["what"] == "argument 2 (4096x512xf32)"
  assert row["at"].startswith("dot_general at <string>:")
  assert shares["repeated"][0] > 0.02
  assert "argument 2 (4096x512xf32) is replicated on 8 devices" in " ".join(text.split())
  assert "repeated work: 8 devices" in " ".join(text.split()) and "is replicated on 8 devices" in page


def test_a_batch_that_is_replicated_along_one_axis():
  """Two groups of devices do the same work, so half of it is redundant."""
  _, shares, _ = find("""
      x, w = put((4096, 512), "fsdp"), put((512, 2048))
      result = jax.jit(lambda x, w: jnp.sin(x @ w).sum())(x, w)
      """)
  share, row = shares["repeated"]
  assert row["devices"] == 2 and 0.2 < share < 0.5


def test_what_follows_a_loop_that_differs_is_not_repeated():
  _, shares, _ = find("""
      x, n = put((512, 512)), jax.device_put(np.arange(8, dtype=np.int32), on(("data", "fsdp")))
      def rounds(x, n):
        return lax.fori_loop(0, n[0], lambda i, x: jnp.sin(x @ x), x)[None]
      result = jax.jit(jax.shard_map(rounds, mesh=mesh, in_specs=(P(), P(("data", "fsdp"))), out_specs=P(("data", "fsdp")),
                                     check_vma=False))(x, n)
      """)
  assert not shares.keys() - {"exposed"}


def test_attention_without_a_kernel():
  text, shares, _ = find(ATTENTION)
  share, row = shares["attention"]
  assert share > 0.5 and row["what"] == "scores of 4x2x512x512xf32" and row["at"].startswith("dot_general at ")
  assert "attention without a fused kernel" in text


def test_a_gate_is_not_attention():
  """silu is computed with an exponential, between the matmuls of a gated MLP. Its bias and its gradient are sums."""
  _, shares, _ = find("""
      def mlp(x, weights):
        gate, up, down, bias = weights
        return jnp.mean((jax.nn.silu(x @ gate + bias) * (x @ up)) @ down)
      weights = put((512, 2048)), put((512, 2048)), put((2048, 512)), put((2048,))
      result = jax.jit(jax.grad(mlp, argnums=1))(put((8, 256, 512), "data", "fsdp"), weights)
      """)
  assert "attention" not in shares


def test_attention_in_two_precisions():
  """The exponentials of bf16 scores are summed in f32."""
  _, shares, _ = find(ATTENTION.replace("scores = jnp.where", "scores = scores.astype(jnp.bfloat16); scores = jnp.where"))
  assert shares["attention"][0] > 0.3


@pytest.mark.parametrize("block, is_found", [((8, 128), True), ((512, 512), False)])
def test_a_kernel_with_small_blocks(block, is_found):
  text, shares, page = find(f"""
      from jax.experimental import pallas as pl
      def double(x_ref, y_ref):
        y_ref[...] = x_ref[...] * 2
      x, block = jnp.ones((2048, 2048)), pl.BlockSpec({block}, lambda i, k: (i, k))
      kernel = pl.pallas_call(double, grid=({2048 // block[0]}, {2048 // block[1]}), in_specs=[block], out_specs=block,
                              out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))
      result = jax.jit(lambda x: kernel(x) + 1)(x)
      """)
  assert ("blocks" in shares) == is_found
  if is_found:
    share, row = shares["blocks"]
    assert row["what"] == "4096 steps (grid 256x16, blocks of 8x128)" and row["at"].startswith("pallas_call at ")
    assert 0.5 < share < 1
    for report in (" ".join(text.split()), page):
      assert "overhead of small blocks: 4096 steps (grid 256x16, blocks of 8x128); larger blocks need fewer steps: " in report


@pytest.mark.parametrize("size, is_found", [(1024, True), (512, False)])
def test_a_sum_of_which_parts_are_used(size, is_found):
  text, shares, _ = find(PART.format(size=size))
  assert ("reduce_scatter" in shares) == is_found
  assert ("each device uses only its own part of this all_reduce; a reduce_scatter sends half as much" in " ".join(text.split())) == is_found


def test_a_slow_device():
  text, _, _ = find(LAYERS + 'result = step(weights, put((4096, 512), ("data", "fsdp")))', MINIPOD_FAULTS="[{device: 3, slow: 2}]")
  assert "device 3 works 2.0 times as long as the others" in text

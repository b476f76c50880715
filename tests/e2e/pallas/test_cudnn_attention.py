"""jax.nn.dot_product_attention(implementation="cudnn") on described GPUs: its values are right, it is sharded as in
JAX, and it takes the time of the GPU's kernels.
"""

import pytest

import scenario

COMMON = """
B, T, N, H = 2, 16, 4, 8
rng = np.random.default_rng(0)

def normal(*shape, dtype=jnp.bfloat16):
  return jnp.asarray(rng.normal(size=shape), dtype)

def arrays(keys=T, heads=N, dtype=jnp.bfloat16):
  return (normal(B, T, N, H, dtype=dtype), *(normal(B, keys, heads, H, dtype=dtype) for _ in range(2)))

def attention(implementation, **options):
  return lambda q, k, v, bias=None: jax.nn.dot_product_attention(
      q, k, v, bias=bias, implementation=implementation, **options)

def gradients(f, operands):
  # The function's result, and the gradients of a sum of it.
  def loss(*a):
    result = f(*a)
    return (result.astype(jnp.float32) * jnp.cos(jnp.arange(H))).sum(), result
  found, result = jax.jit(jax.grad(loss, tuple(range(len(operands))), has_aux=True))(*operands)
  return result, *found

def compare(name, found, wanted, tolerance=0.01):
  for i, (a, b) in enumerate(zip(found, wanted, strict=True)):
    a, b = np.asarray(a, np.float32), np.asarray(b, np.float32)
    assert a.shape == b.shape and np.abs(a - b).max() <= tolerance * np.abs(b).max(), (name, i, a, b)
"""


def test_values_and_gradients():
  scenario.run(COMMON + """
text = jax.jit(attention("cudnn")).lower(*arrays()).as_text()
assert text.count("__cudnn$fmha") == 1
cases = {
    "f16": (arrays(dtype=jnp.float16), {}),
    "negative scale": (arrays(), {"scale": -0.5}),
    "causal": (arrays(), {"is_causal": True}),
    "more keys than queries": (arrays(keys=24), {"is_causal": True}),
    "a group of queries for each key": (arrays(heads=2), {"is_causal": True}),
    "window": (arrays(), {"is_causal": True, "local_window_size": (3, 0)}),
    "bias": ((*arrays(), normal(B, N, T, T)), {}),
    "bias of all batches": ((*arrays(), normal(1, N, T, T)), {"is_causal": True}),
    "bias of all heads in groups": ((*arrays(heads=2), normal(B, 1, T, T)), {}),
    "bias of groups": ((*arrays(heads=2), normal(1, N, T, T)), {}),
    "mask": (arrays(), {"mask": jnp.asarray(rng.random((B, N, T, T)) > 0.3)}),
    "causal with lengths": (arrays(heads=2), {
        "is_causal": True, "query_seq_lengths": jnp.array([5, 16]), "key_value_seq_lengths": jnp.array([16, 7])}),
}
for name, (operands, options) in cases.items():
  cudnn, xla = attention("cudnn", **options), attention("xla", **options)
  compare(name, gradients(cudnn, operands), gradients(xla, [a.astype(jnp.float32) for a in operands]), 0.005)
""", devices=None, timeout=120, MINIPOD_TOPOLOGY="h100:2")


def test_layouts_rows_without_keys_and_residuals():
  scenario.run(COMMON + """
from jax._src.cudnn import fused_attention_stablehlo as fused
q, k, v = arrays()
heads_first = [jnp.swapaxes(a, 1, 2) for a in (q, k, v)]
found, sums = fused.dot_product_attention(*heads_first, qkv_layout="BNTH", return_residual=True)
compare("heads first", [jnp.swapaxes(found, 1, 2)], [attention("xla", scale=1.0)(q, k, v)])
scores = jnp.einsum("btnh,bsnh->bnts", q.astype(jnp.float32), k.astype(jnp.float32))
compare("residual", [sums], [jax.nn.logsumexp(scores, -1)], 1e-5)
none = fused.dot_product_attention(q, k, v, q_seqlen=jnp.array([16, 16]), kv_seqlen=jnp.array([0, 16]),
                                   mask_type=fused.MaskType.PADDING)
assert (none[0] == 0).all() and (none[1] != 0).any() and not jnp.isnan(none).any()
wide = normal(B, T, N, 16)
wanted = jnp.einsum("bnts,bsnh->btnh", jax.nn.softmax(scores), wide.astype(jnp.float32))
compare("wide values", [fused.dot_product_attention(q, k, wide)], [wanted])
mapped = jax.vmap(attention("cudnn"))(*(a[None] for a in (q, k, v)))
compare("vmap", [mapped[0]], [attention("cudnn")(q, k, v)], 0)
""", devices=None, MINIPOD_TOPOLOGY="h100:1")


def test_sharded():
  scenario.run(COMMON + """
mesh = jax.make_mesh((2, 2), ("b", "h"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
spec = P("b", None, "h", None)
put = lambda a, spec: jax.device_put(a, NamedSharding(mesh, spec))
for bias_spec in (None, P(None, "h"), P("b", None)):
  operands, specs = arrays(), (spec,) * 3
  if bias_spec is not None:
    operands, specs = (*operands, normal(1 if bias_spec[0] is None else B, N, T, T)), (*specs, bias_spec)
    if bias_spec[1] is None:
      operands = (*operands[:3], operands[3][:, :1])
  f = attention("cudnn", is_causal=True)
  cut = [put(a, s) for a, s in zip(operands, specs)]
  found = gradients(f, cut)
  assert found[0].sharding.spec == found[1].sharding.spec == P("b", None, "h")
  compare("gradients", found, gradients(f, operands))
f = jax.shard_map(attention("cudnn"), mesh=mesh, in_specs=spec, out_specs=spec, check_vma=False)
operands = arrays()
compare("shard_map", [jax.jit(f)(*operands)], [attention("cudnn")(*operands)], 0)
""", devices=None, timeout=120, MINIPOD_TOPOLOGY="h100:4")


def test_what_is_refused_is_named():
  scenario.run(COMMON + """
from jax._src.cudnn import fused_attention_stablehlo as fused
q, k, v = arrays()
lengths = jnp.full((B, 2), 4, jnp.int32)
offsets = jnp.array([[0, 4, 8]] * B, jnp.int32)

def refuses(words, **options):
  try:
    fused.dot_product_attention(q, k, v, **options)
  except Exception as error:
    assert words in str(error) and "__cudnn$fmha" in str(error) and "<string>:" in str(error), error
  else:
    raise AssertionError(words)

refuses("with dropout", dropout_rate=0.1)
refuses("with this mask_type", mask_type=fused.MaskType.ALIBI)
refuses("with packed sequences", q_seqlen=lengths, kv_seqlen=lengths, q_offsets=offsets, kv_offsets=offsets,
        mask_type=fused.MaskType.PADDING)
refuses("a window but no causal mask", sliding_window_length=4)
""", devices=None, MINIPOD_TOPOLOGY="h100:1")


@pytest.mark.parametrize("pod", [{"MINIPOD_TOPOLOGY": "v5e:2x2"}, {"MINIPOD_DEVICES": "4"}])
def test_other_pods_have_no_cudnn(pod):
  error = scenario.run(COMMON + 'attention("cudnn")(*arrays())', devices=None, fails=True, **pod)
  assert "cuDNN is not detected" in error


def test_older_gpus_have_their_limits():
  error = scenario.run(COMMON + 'H = 160\nattention("cudnn")(*arrays())', devices=None, fails=True,
                       MINIPOD_TOPOLOGY="a100:1")
  assert "head dim must be <= 128" in error


# The pod runs one kernel for each call, whatever this machine does.
def test_time_and_cost():
  code = """
import minipod
operands = [jax.ShapeDtypeStruct((4, 2048, 16, 128), jnp.bfloat16)] * 3
f = jax.jit(lambda q, k, v: jax.nn.dot_product_attention(q, k, v, is_causal=True, implementation="cudnn"))
compiled = f.lower(*operands).compile()
print(compiled.cost_analysis()["flops"] / (4 * 16 * 2048**2 * 128 * 4))
if SMALL:
  operands = [jax.ShapeDtypeStruct((1, 256, 2, 64), jnp.bfloat16)] * 3
arrays = [jnp.zeros(a.shape, a.dtype) for a in operands]
jax.block_until_ready(arrays)
before = minipod.virtual_time()
jax.block_until_ready(f(*arrays))
print(f"{(minipod.virtual_time() - before) * 1e6:.0f}")
"""
  run = lambda small, **options: scenario.run(
      f"SMALL = {small}" + code, devices=None, MINIPOD_TOPOLOGY="h100:1", MINIPOD_TIME="model", **options).split()
  flops, small = run(True)
  shapes_flops, small_shapes = run(True, MINIPOD_VALUES="shapes")
  # This machine also computes the scale and the softmax, in addition to the two matmuls.
  assert float(shapes_flops) == 1 <= float(flops) < 1.02
  assert small == small_shapes
  _, large = run(False, MINIPOD_VALUES="shapes")
  # 4 x 16 heads of 2048 x 2048 x 128, half of it masked: 69 GFLOP at 300 to 700 TFLOP/s.
  assert 100 < float(large) < 300

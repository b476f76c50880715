"""Small models, whole or a block of them."""

import functools

import jax
import jax.numpy as jnp
from jax import lax

from .attention import rotary
from .blocks import attention, block, block_weights, conv, grad_of, layernorm, mlp, rmsnorm, stacked, xent
from .norm import batchnorm, groupnorm
from .program import BF, F32, I32, A, of_class
from .recurrence import mamba_fused

opened, new = of_class("model")

MLP = [A((1024, 4096)), A((4096, 4096)), A((4096, 1024))]
opened("mlp_forward", mlp, MLP, A((2048, 1024)))
opened("mlp_step", lambda w, x, y: jax.tree.map(lambda a, g: a - 0.1 * g, w, jax.grad(
    lambda w: ((mlp(w, x) - y) ** 2).astype(F32).mean())(w)), MLP, A((2048, 1024)), A((2048, 1024)), donate=(0,))
opened("block_forward_1024", functools.partial(block, heads=8), block_weights(1024, 4096), A((4, 1024, 1024)))
opened("block_grad_2048", jax.grad(lambda w, x: block(w, x, 16).astype(F32).sum()), block_weights(2048, 5504),
       A((2, 1024, 2048)))
opened("block_grad_remat_2048",
       jax.grad(lambda w, x: jax.checkpoint(functools.partial(block, heads=16))(w, x).astype(F32).sum()),
       block_weights(2048, 5504), A((2, 1024, 2048)))
opened("scan_8_layers_forward", functools.partial(stacked, heads=8), block_weights(1024, 4096, (8,)),
    A((4, 512, 1024)))
opened("scan_8_layers_grad", jax.grad(lambda w, x: stacked(w, x, 8).astype(F32).sum()),
    block_weights(1024, 4096, (8,)),
       A((4, 512, 1024)))
opened("scan_8_layers_grad_remat", jax.grad(lambda w, x: stacked(w, x, 8, True).astype(F32).sum()),
       block_weights(1024, 4096, (8,)), A((4, 512, 1024)))

# ---- transformers of several libraries ----


def gpt2_block(w, x, heads=12):
  """nanoGPT: layer norm, one projection, gelu, biases."""
  b, s, e = x.shape
  y = layernorm(x, w["g1"], w["b1"])
  q, k, v = (z.reshape(b, s, heads, -1) for z in jnp.split(y @ w["qkv"] + w["bqkv"], 3, -1))
  x = x + attention(q, k, v).reshape(b, s, e) @ w["o"] + w["bo"]
  y = layernorm(x, w["g2"], w["b2"])
  return x + jax.nn.gelu(y @ w["up"] + w["bup"]) @ w["down"] + w["bdown"]


def gpt2_weights(e, stack=(), dtype=BF):
  shapes = {"qkv": (e, 3 * e), "o": (e, e), "up": (e, 4 * e), "down": (4 * e, e), "bqkv": (3 * e,), "bo": (e,),
      "bup": (4 * e,), "bdown": (e,)}
  return {n: A(stack + s, dtype) for n, s in (shapes | {n: (e,) for n in ("g1", "b1", "g2", "b2")}).items()}


new("gpt2_block_grad_b8_l512_e768", grad_of(gpt2_block, (0, 1)), gpt2_weights(768), A((8, 512, 768)),
    shows="biases, layer norms and heads of 64, and their gradients")


def gpt2_step(w, x, y):
  """Four layers in f32 masters, bf16 compute, a tied head."""
  def loss(w):
    h = w["wte"].astype(BF)[x] + w["wpe"].astype(BF)
    layer = lambda h, l: (gpt2_block(jax.tree.map(lambda a: a.astype(BF), l), h, 8), None)
    h = lax.scan(jax.checkpoint(layer), h, w["h"])[0]
    return xent((layernorm(h, w["g"].astype(BF), w["b"].astype(BF)) @ w["wte"].astype(BF).T).reshape(-1, 32000),
        y.reshape(-1))
  return jax.tree.map(lambda p, g: p - 1e-3 * g, w, jax.grad(loss)(w))


new("gpt2_step_4_layers_b4_l512_e512", gpt2_step, {"wte": A((32000, 512), F32), "wpe": A((512, 512), F32),
    "h": gpt2_weights(512, (4,), F32), "g": A((512,), F32), "b": A((512,), F32)},
    A((4, 512), I32), A((4, 512), I32), donate=(0,), shows="a whole training step with hoisted casts")


def gemma_block(w, x):
  """Grouped queries, rotation, gated gelu, norms with 1 + scale."""
  b, s, e = x.shape
  y = rmsnorm(x, 1 + w["n1"])
  q, k, v = (jnp.einsum("bse,ehd->bshd", y, w[n]) for n in "qkv")
  q, k = rotary(q), rotary(k)
  k, v = jnp.repeat(k, q.shape[2] // k.shape[2], 2), jnp.repeat(v, q.shape[2] // v.shape[2], 2)
  x = x + jnp.einsum("bshd,hde->bse", attention(q, k, v), w["o"])
  y = rmsnorm(x, 1 + w["n2"])
  return x + (jax.nn.gelu(y @ w["gate"]) * (y @ w["up"])) @ w["down"]


GEMMA = {"q": A((2048, 8, 256)), "k": A((2048, 1, 256)), "v": A((2048, 1, 256)), "o": A((8, 256, 2048)),
    "gate": A((2048, 8192)), "up": A((2048, 8192)), "down": A((8192, 2048)),
         "n1": A((2048,)), "n2": A((2048,))}
new("gemma_2b_block_b2_l1024", gemma_block, GEMMA, A((2, 1024, 2048)), shows="heads of 256, one of keys")
new("gemma_2b_block_grad_b1_l1024", grad_of(gemma_block), GEMMA, A((1, 1024, 2048)), shows="its gradient")


def gated_mlp(w, x, act=jax.nn.silu):
  """Of Llama and Gemma, with the norm before it."""
  w = jax.tree.map(lambda a: a.astype(BF), w)
  y = rmsnorm(x, w["n"])
  return x + (act(y @ w["gate"]) * (y @ w["up"])) @ w["down"]


def gated_mlp_weights(e, f, stack=(), dtype=BF):
  shapes = {"n": (e,), "gate": (e, f), "up": (e, f), "down": (f, e)}
  return {n: A(stack + s, dtype) for n, s in shapes.items()}


def pullback(fn):
  """The gradients of what a later layer gives back, not of a sum, which would make that a constant."""
  return lambda w, x, dy: jax.vjp(fn, w, x)[1](dy)


def gated_mlp_layers(w, x):
  return lax.scan(lambda x, w: (jax.checkpoint(gated_mlp)(w, x), None), x, w)[0]


X8 = A((8192, 4096))
new("swiglu_grad_t8192_e4096_f14336", pullback(gated_mlp), gated_mlp_weights(4096, 14336), X8, X8,
    shows="kept_gate: the gradient of a gate, of Llama 3 8B")
new("swiglu_grad_remat_t8192_e4096_f14336", pullback(jax.checkpoint(gated_mlp)), gated_mlp_weights(4096, 14336), X8, X8,
    shows="the same with a checkpoint")
new("swiglu_grad_f32_masters_t8192_e4096_f14336", pullback(gated_mlp), gated_mlp_weights(4096, 14336, dtype=F32), X8, X8,
    shows="the same with weights in f32")
new("geglu_grad_t8192_e4096_f14336", pullback(functools.partial(gated_mlp, act=jax.nn.gelu)),
    gated_mlp_weights(4096, 14336), X8, X8, shows="the same with gelu")
new("swiglu_grad_t4096_e8192_f28672", pullback(gated_mlp), gated_mlp_weights(8192, 28672), A((4096, 8192)),
    A((4096, 8192)), shows="the same of Llama 2 70B")
new("swiglu_layers_grad_remat_t4096_e8192_f28672", pullback(gated_mlp_layers), gated_mlp_weights(8192, 28672, (2,)),
    A((4096, 8192)), A((4096, 8192)), shows="the same in a loop of layers")


def t5_layer(w, x, memory):
  """A decoder layer: self-attention with a bias, cross-attention, gated gelu; no scales on scores."""
  norm = lambda x, n: rmsnorm(x, w[n])
  split = lambda y: y.reshape(*y.shape[:2], 12, 64)

  def attend(y, z, n, bias):
    q, k, v = split(y @ w["q" + n]), split(z @ w["k" + n]), split(z @ w["v" + n])
    s = jnp.einsum("bqhd,bkhd->bhqk", q, k).astype(F32) + bias
    return jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(s).astype(BF), v).reshape(y.shape) @ w["o" + n]
  y = norm(x, "n1")
  x = x + attend(y, y, "1", w["bias"])
  x = x + attend(norm(x, "n2"), memory, "2", 0)
  y = norm(x, "n3")
  return x + (jax.nn.gelu(y @ w["wi0"]) * (y @ w["wi1"])) @ w["wo"]


T5 = {n + i: A((768, 768)) for n in "qkvo" for i in "12"} | {"wi0": A((768, 2048)), "wi1": A((768, 2048)),
    "wo": A((2048, 768)), "bias": A((12, 256, 256), F32)} | {
    n: A((768,)) for n in ("n1", "n2", "n3")}
new("t5_decoder_layer_b16_l256_m512", t5_layer, T5, A((16, 256, 768)), A((16, 512, 768)),
    shows="two attentions, a bias of the model")


def vit(w, x):
  """ViT in two layers: patches by a convolution, a class token, mean of nothing."""
  b = x.shape[0]
  y = conv(x, w["patch"], 16, pad="VALID").reshape(b, 196, 384)
  y = jnp.concatenate([jnp.broadcast_to(w["cls"], (b, 1, 384)), y], 1) + w["pos"]
  for l in w["layers"]:
    z = layernorm(y, l["g1"], l["b1"])
    q, k, v = (t.reshape(b, 197, 6, 64) for t in jnp.split(z @ l["qkv"] + l["bqkv"], 3, -1))
    y = y + attention(q, k, v, False).reshape(b, 197, 384) @ l["o"] + l["bo"]
    z = layernorm(y, l["g2"], l["b2"])
    y = y + jax.nn.gelu(z @ l["up"] + l["bup"]) @ l["down"] + l["bdown"]
  return y[:, 0] @ w["head"]


VIT = {"patch": A((16, 16, 3, 384)), "cls": A((1, 1, 384)), "pos": A((197, 384)), "head": A((384, 1000)),
    "layers": [gpt2_weights(384)] * 2}
new("vit_small_2_layers_b64", vit, VIT, A((64, 224, 224, 3)), shows="sequences of 197")
new("vit_small_1_layer_grad_b32", lambda w, x: grad_of(vit)(w, x), VIT | {"layers": [gpt2_weights(384)]},
    A((32, 224, 224, 3)), shows="their gradient")


def mixer(w, x):
  y = layernorm(x, w["g1"], w["b1"]).swapaxes(1, 2)
  x = x + (jax.nn.gelu(y @ w["t1"]) @ w["t2"]).swapaxes(1, 2)
  y = layernorm(x, w["g2"], w["b2"])
  return x + jax.nn.gelu(y @ w["c1"]) @ w["c2"]


MIXER = {"t1": A((196, 384)), "t2": A((384, 196)), "c1": A((768, 3072)),
    "c2": A((3072, 768))} | {n: A((768,)) for n in ("g1", "b1", "g2", "b2")}
new("mixer_block_b64_l196_e768", mixer, MIXER, A((64, 196, 768)),
    shows="matmuls over 196 tokens, transposes around them")
new("mixer_block_grad_b32_l196_e768", grad_of(mixer), MIXER, A((32, 196, 768)), shows="its gradient")


def dit(w, x, c):
  """DiT: scales, shifts and gates of each image."""
  m = jnp.split((jax.nn.silu(c) @ w["mod"])[:, None], 6, -1)
  y = layernorm(x, 1, 0) * (1 + m[1]) + m[0]
  q, k, v = (t.reshape(*x.shape[:2], 16, 72) for t in jnp.split(y @ w["qkv"], 3, -1))
  x = x + m[2] * (attention(q, k, v, False).reshape(x.shape) @ w["o"])
  y = layernorm(x, 1, 0) * (1 + m[4]) + m[3]
  return x + m[5] * (jax.nn.gelu(y @ w["up"]) @ w["down"])


DIT = {"mod": A((1152, 6912)), "qkv": A((1152, 3456)), "o": A((1152, 1152)), "up": A((1152, 4608)),
    "down": A((4608, 1152))}
new("dit_xl_block_b16_l256", dit, DIT, A((16, 256, 1152)), A((16, 1152)), shows="heads of 72, modulations")
new("dit_xl_block_grad_b8_l256", grad_of(dit), DIT, A((8, 256, 1152)), A((8, 1152)), shows="its gradient")


def mamba_block(w, x):
  """Mamba: gated, short convolution, selective scan made inside of the step."""
  u, z = jnp.split(x @ w["in"], 2, -1)
  u = jax.nn.silu(sum(jnp.pad(u, ((0, 0), (3 - i, 0), (0, 0)))[:, :x.shape[1]] * w["conv"][i] for i in range(4)))
  dt, b, c = jnp.split((u @ w["x"]).astype(F32), [64, 80], -1)
  y = mamba_fused(u.astype(F32), jax.nn.softplus(dt @ w["dt"]), -jnp.exp(w["a"]), b, c)
  return x + ((y + u * w["d"]).astype(BF) * jax.nn.silu(z)) @ w["out"]


new("mamba_block_b2_l512_e1024", mamba_block, {"in": A((1024, 4096)), "conv": A((4, 2048)), "x": A((2048, 96)),
    "dt": A((64, 2048), F32), "a": A((2048, 16), F32), "d": A((2048,), F32),
                                              "out": A((2048, 1024))}, A((2, 512, 1024)),
                                              shows="matmuls around a scan")

# ---- images ----


def resnet_block(w, x):
  """Training: convolutions with batch norms in f32."""
  norm = lambda y, n: batchnorm(y, w["g" + n], w["b" + n])[0]
  y = jax.nn.relu(norm(conv(x, w["1"]), "1"))
  y = jax.nn.relu(norm(conv(y, w["2"]), "2"))
  return jax.nn.relu(norm(conv(y, w["3"]), "3") + x)


RESNET = {"1": A((1, 1, 512, 128)), "2": A((3, 3, 128, 128)),
    "3": A((1, 1, 128, 512))} | {k + i: A((512 if i == "3" else 128,), F32) for k in "gb" for i in "123"}
new("resnet50_bottleneck_train_grad_b32_28", grad_of(resnet_block), RESNET, A((32, 28, 28, 512)),
    shows="statistics of convolutions' results, both directions")


def resnet_stem(w, x):
  y = conv(x, w["7"], 2)
  y = jax.nn.relu(batchnorm(y, w["g"], w["b"])[0])
  return lax.reduce_window(y, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")


new("resnet50_stem_train_grad_b32", grad_of(resnet_stem), {"7": A((7, 7, 3, 64)), "g": A((64,), F32),
    "b": A((64,), F32)}, A((32, 224, 224, 3)), shows="images of colours, pooling back")


def unet_stage(w, x, skip, t):
  """Diffusion: group norms, the time, a skip, attention over pixels."""
  x = jnp.concatenate([x, skip], -1)
  y = conv(jax.nn.silu(groupnorm(x, w["g1"], w["b1"])), w["c1"]) + (jax.nn.silu(t) @ w["t"])[:, None, None]
  y = conv(jax.nn.silu(groupnorm(y, w["g2"], w["b2"])), w["c2"]) + conv(x, w["s"])
  b, h, v, c = y.shape
  q, k, u = (z.reshape(b, h * v, 8, -1) for z in jnp.split(groupnorm(y, w["g2"], w["b2"]) @ w["qkv"], 3, -1))
  return y + attention(q, k, u, False).reshape(y.shape) @ w["o"]


new("unet_stage_b8_32_c320", unet_stage, {"g1": A((640,), F32), "b1": A((640,), F32), "g2": A((320,), F32),
    "b2": A((320,), F32), "c1": A((3, 3, 640, 320)), "c2": A((3, 3, 320, 320)),
                                         "s": A((1, 1, 640, 320)), "t": A((1280, 320)), "qkv": A((320, 960)),
                                         "o": A((320, 320))}, A((8, 32, 32, 320)), A((8, 32, 32, 320)), A((8, 1280)),
    shows="convolutions, norms of groups, attention with heads of 40")


def convnext(w, x):
  y = layernorm(conv(x, w["dw"], groups=x.shape[-1]), w["g"], w["b"])
  return x + jax.nn.gelu(y @ w["up"]) @ w["down"] * w["scale"]


new("convnext_block_grad_b16_28_c192", grad_of(convnext), {"dw": A((7, 7, 1, 192)), "g": A((192,)), "b": A((192,)),
    "up": A((192, 768)), "down": A((768, 192)), "scale": A((192,))},
    A((16, 28, 28, 192)), shows="depthwise windows and matmuls of channels, and their gradients")


def mnist_step(w, x, y):
  """Flax's example: two convolutions, average pools, two dense layers."""
  def loss(w):
    h = x
    for c, b in w["conv"]:
      h = lax.reduce_window(jax.nn.relu(conv(h, c) + b), 0.0, lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "VALID") / 4
    h = jax.nn.relu(h.reshape(h.shape[0], -1) @ w["d1"] + w["e1"])
    return xent(h @ w["d2"] + w["e2"], y)
  return jax.tree.map(lambda p, g: p - 0.1 * g, w, jax.grad(loss)(w))


new("mnist_cnn_step_b512_f32", mnist_step, {"conv": [(A((3, 3, 1, 32), F32), A((32,), F32)),
    (A((3, 3, 32, 64), F32), A((64,), F32))], "d1": A((3136, 256), F32), "e1": A((256,), F32),
                                           "d2": A((256, 10), F32), "e2": A((10,), F32)}, A((512, 28, 28, 1), F32),
                                           A((512,), I32), donate=(0,), shows="one channel, ten classes")

# ---- others ----


def graph_net(w, nodes, edges, senders, receivers):
  """Jraph's: edges, then nodes, then residuals."""
  dense = lambda x, n: jax.nn.relu(x @ w[n]) @ w[n + "o"]
  edges = edges + dense(jnp.concatenate([edges, nodes[senders], nodes[receivers]], -1), "e")
  got = jax.ops.segment_sum(edges, receivers, nodes.shape[0])
  return nodes + dense(jnp.concatenate([nodes, got], -1), "n"), edges


GRAPH = {"e": A((384, 256), F32), "eo": A((256, 128), F32), "n": A((256, 256), F32), "no": A((256, 128), F32)}
EDGES = (A((16384, 128), F32), A((65536, 128), F32), A((65536,), I32), A((65536,), I32))
new("graph_net_16K_e64K_d128", graph_net, GRAPH, *EDGES,
    shows="lookups put side by side before matmuls, a sum by scatter behind")
new("graph_net_grad_16K_e64K_d128", grad_of(graph_net), GRAPH, *EDGES, shows="its gradient")


def nerf(w, points, directions):
  encode = lambda x, n: jnp.concatenate([f(2.0 ** k * x) for k in range(n) for f in (jnp.sin, jnp.cos)], -1)
  x = encode(points, 10)
  h = x
  for i, a in enumerate(w["trunk"]):
    h = jax.nn.relu((jnp.concatenate([h, x], -1) if i == 4 else h) @ a)
  density = jax.nn.softplus(h @ w["density"])[..., 0]
  colour = jax.nn.sigmoid(jax.nn.relu(jnp.concatenate([h, encode(directions, 4)], -1) @ w["c1"]) @ w["c2"])
  alpha = 1 - jnp.exp(-density * 0.02)
  weight = alpha * jnp.cumprod(jnp.concatenate([jnp.ones_like(alpha[:, :1]), 1 - alpha[:, :-1]], 1), 1)
  return (weight[..., None] * colour).sum(1)


NERF = {"trunk": [A((60, 256), F32)] + [A((256, 256), F32)] * 3 + [A((316, 256), F32)] + [A((256, 256), F32)] * 3,
    "density": A((256, 1), F32), "c1": A((280, 128), F32), "c2": A((128, 3), F32)}
new("nerf_render_1024_rays_64", nerf, NERF, A((1024, 64, 3), F32), A((1024, 64, 3), F32),
    shows="sines of three numbers, parts of 60 and 256, cumulative products")
new("nerf_render_grad_512_rays_64", grad_of(nerf), NERF, A((512, 64, 3), F32), A((512, 64, 3), F32),
    shows="its gradient")


def dlrm(w, dense, sparse):
  mlp = lambda x, ws: functools.reduce(lambda x, a: jax.nn.relu(x @ a), ws, x)
  x = mlp(dense, w["bottom"])
  e = jnp.stack([x] + [t[sparse[:, k]] for k, t in enumerate(w["tables"])], 1)
  pairs = jnp.einsum("bid,bjd->bij", e, e)
  i, j = jnp.tril_indices(e.shape[1], -1)
  return mlp(jnp.concatenate([x, pairs[:, i, j]], -1), w["top"][:-1]) @ w["top"][-1]


new("dlrm_forward_b8192_8_tables_d64", dlrm, {"bottom": [A((13, 512), F32), A((512, 64), F32)],
    "tables": [A((100000, 64), F32)] * 8, "top": [A((100, 512), F32), A((512, 256), F32), A((256, 1), F32)]},
    A((8192, 13), F32), A((8192, 8), I32), shows="lookups stacked, matmuls of nine rows, a lower triangle")


def ppo(w, obs, action, old, advantage, target):
  def loss(w):
    h = jnp.tanh(jnp.tanh(obs @ w["1"]) @ w["2"])
    logp = jnp.take_along_axis(jax.nn.log_softmax(h @ w["pi"]), action[:, None], 1)[:, 0]
    value = (h @ w["v"])[:, 0]
    a = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
    ratio = jnp.exp(logp - old)
    return -jnp.minimum(ratio * a, jnp.clip(ratio, 0.8, 1.2) * a).mean() + 0.5 * ((value - target) ** 2).mean()
  return jax.tree.map(lambda p, g: p - 3e-4 * g, w, jax.grad(loss)(w))


new("ppo_update_b32768_obs64", ppo, {"1": A((64, 256), F32), "2": A((256, 256), F32), "pi": A((256, 8), F32),
    "v": A((256, 1), F32)}, A((32768, 64), F32), A((32768,), I32),
    *[A((32768,), F32)] * 3, shows="results of eight and of one number, vectors of a batch")
new("ppo_epochs_scan_4x8", lambda w, o, a, l, v, t: lax.scan(lambda w,
    _: (lax.scan(lambda w, m: (ppo(w, *m), None), w, (o, a, l, v, t))[0], None), w, None, length=4)[0],
    {"1": A((64, 256), F32), "2": A((256, 256), F32), "pi": A((256, 8), F32), "v": A((256, 1), F32)},
    A((8, 4096, 64), F32), A((8, 4096), I32), *[A((8, 4096), F32)] * 3, shows="a loop in a loop of small steps")


def evoformer_triangle(w, z):
  """AlphaFold: outgoing edges of pairs."""
  norm = lambda x: layernorm(x, w["scale"], w["bias"])
  y = norm(z)
  a, b = (jax.nn.sigmoid(y @ w[n + "g"]) * (y @ w[n]) for n in "ab")
  return z + jax.nn.sigmoid(y @ w["o"]) * (norm(jnp.einsum("ikc,jkc->ijc", a, b)) @ w["p"])


new("evoformer_triangle_l384_c128", evoformer_triangle, {n: A((128, 128)) for n in ("a", "b", "ag", "bg", "o",
    "p")} | {"scale": A((128,)), "bias": A((128,))},
    A((384, 384, 128)), shows="a matmul whose batch is the channels")

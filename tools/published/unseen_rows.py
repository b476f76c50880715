"""Public measurements that were found after the model was finished, as programs of this folder (unseen.py)."""

from compare import (ALL_PRODUCTS, CUDNN, DECEMBER, FUSED, GPT_175B, LLAMA_8B, OCTOBER, PIPELINED, SCALED_32, SCALED_128,
                     SCALED_512, SCALED, STREAMS, TOKAMAX)

MIB = 1 << 20
SCALED_1024 = {**SCALED_512, "heads": 128, "mlp": 131072}
V4_22B = {"emb": 6144, "heads": 24, "head_dim": 256, "mlp": 24576, "layers": 48, "gated": False, "activation": "relu",
          "parallel": True, "vocab": 32768, "tied": True, "flash": False, "bias": True, "sequence": 1024}
PAX_5B = {"emb": 4096, "heads": 32, "mlp": 16384, "layers": 24, "vocab": 51200, "gated": False, "tied": True,
          "remat": "minimal", "overlap": PIPELINED, **CUDNN}
PAX_175B = {**GPT_175B, "vocab": 51200, "tied": True, "remat": ["q", "k", "v", "out"], "quantized": "float8",
            "overlap": PIPELINED, **CUDNN}
TITAN = {**LLAMA_8B, "rope": "pairs", "remat": ["q", "v", "context", "gate", "down"], "overlap": PIPELINED | STREAMS, **CUDNN}
MPT = {"gated": False, "vocab": 50368, "kernels": "library", "tied": True, "overlap": PIPELINED | STREAMS, **CUDNN}
DEEPSEEK = {"emb": 7168, "heads": 128, "mlp": 2048, "layers": 61, "vocab": 129280, "sequence": 4096, "rope": "pairs",
            "latent": {"q": 1536, "kv": 512, "plain": 128, "placed": 64, "value": 128}, "capacity": 0, "chosen": 8,
            "blocks": [[3, [{"mlp": 18432}]], [58, [{"experts": 256, "shared": 1}]]], "remat": ["input"], "offload": True,
            **FUSED, **TOKAMAX, "batch": 4096, "mu": "bfloat16", "scoped": None}
QWEN_MOE = {"emb": 4096, "heads": 64, "kv_heads": 4, "mlp": 1536, "layers": 94, "vocab": 151936, "sequence": 4096,
            "rope": "halves", "normed": "qk", "capacity": 0, "chosen": 8, "experts": 128, "remat": ["input"], "offload": True,
            "block": 1024, "sides": {"dkv": (2048, 2048)}, "backward": 5, **TOKAMAX, "batch": 8192,
            "quantized": "float8"}
MAVERICK = {"emb": 5120, "heads": 40, "kv_heads": 8, "mlp": 16384, "layers": 48, "vocab": 202048, "sequence": 8192,
            "rope": "pairs", "capacity": 0, "chosen": 1, "tensor": 4, "block": 2048, "batch": 512,
            "blocks": [[24, [{}, {"mlp": 8192, "experts": 128, "shared": 1}]]],
            "remat": ["input", "out", "q", "k", "v"], "offload": True}
MOE_754B = {"emb": 8192, "heads": 128, "kv_heads": 8, "head_dim": 256, "mlp": 32768, "layers": 56, "vocab": 32000,
            "sequence": 8192, "rope": "halves", "experts": 16, "capacity": 1.5, "expert": 16, "optimizer": "sgd",
            "weights": "bfloat16", "remat": ["input", "out", "q", "k", "v"], "offload": True, "block": 2048, "backward": 5,
            "scoped": 80}
GEMMA4_31B = {"emb": 5376, "heads": 32, "kv_heads": 16, "head_dim": 256, "mlp": 21504, "layers": 60, "vocab": 262144,
              "activation": "gelu", "rope": "halves", "normed": "qkv", "post": True, "tied": True, "one_hot": True,
              "tiles": 8, "sequence": 8192, "batch": 512, "remat": ["out", "down"], "block": 2048, "backward": 5,
              **TOKAMAX, "sides": {"dkv": (1024, 2048)},
              "blocks": [[10, [{"window": 1024}] * 5 + [{"head_dim": 512, "kv_heads": 4, "same_kv": True}]]]}
# torchprime's Dockerfile has the flags of the recipes for Trillium, 96 MiB of VMEM for matmuls among them.
LLAMA_XLA = {**LLAMA_8B, "rope": "halves", "weights": "bfloat16", "optimizer": "adafactor", "batch": 8}
LEVANTER = {"emb": 768, "heads": 12, "head_dim": 64, "mlp": 2688, "layers": 12, "vocab": 128256, "sequence": 4096,
            "rope": "halves", "batch": 128}
LLAMA_70B = {"layers": 80, "emb": 8192, "heads": 64, "kv_heads": 8, "mlp": 28672, "vocab": 128256}
LLAMA2_7B = {"layers": 32, "emb": 4096, "heads": 32, "mlp": 11008, "vocab": 32000, "batch": 96, "context": 2048}
GEMMA_7B = {"layers": 28, "emb": 3072, "heads": 16, "head_dim": 256, "mlp": 24576, "vocab": 256000, "activation": "gelu",
            "context": 2048}
INT8 = {"weights": "int8", "cache": "int8"}
QWEN_32B = {"layers": 64, "emb": 5120, "heads": 64, "kv_heads": 8, "mlp": 25600, "vocab": 151936, "qk_norm": True,
            "weights": "float8_e4m3fn", "cache": "float8_e4m3fn", "batch": 135}
QWEN_8B = {"layers": 36, "emb": 4096, "heads": 32, "kv_heads": 8, "mlp": 12288, "vocab": 151936, "qk_norm": True}
GEMMA_27B = {"layers": 46, "emb": 4608, "heads": 32, "kv_heads": 16, "mlp": 36864, "vocab": 256128, "activation": "gelu",
             "batch": 16, "context": 1536}
slices = lambda pod, count: f"{pod} slices:{count}" if count > 1 else pod

# Family, identity in the list of measurements, pod, published seconds, what is published, settings for train_step.py.
TRAINING = [
    *(("v4", f"v4-22b-{n}x-{month}", slices("v4-megacore:4x4x4", n), seconds, "MaxText 22B",
       {**V4_22B, "normed": normed, "batch": 1024 * n, "data": n})
      for month, normed, times in (("apr23", "qk", (13.8351, 14.2111, 14.4466, 14.7453)), ("mar23", "", (13.0742, 13.6664, 13.7382)))
      for n, seconds in zip((1, 2, 4, 8), times)),
    ("v4", "v4-8-base-jan24", "v4-megacore:2x2x1", 1.199, "MaxText base.yml",
     {**SCALED, "rope": "halves", "one_hot": False, "emb": 2560, "heads": 8, "mlp": 8192, "layers": 16, "batch": 48}),
    *(("v5e", f"v5e-32b-{n}x", f"v5e:16x16 slices:{n}", seconds, "MaxText 32B",
       {**SCALED_32, **OCTOBER, "batch": 1024 * n, "data": n}) for n, seconds in ((4, 13.0868), (16, 13.4736), (32, 13.8885))),
    ("v5p", "v5p-32b-2x", "v5p:4x4x4 slices:2", 10.2056, "MaxText 32B",
     {**SCALED_32, **DECEMBER, "batch": 1024, "data": 2, "tensor": 4, "remat": "minimal"}),
    ("v5p", "v5p-128b-2x256", "v5p:4x4x8 slices:2", 10.5997, "MaxText 128B",
     {**SCALED_128, **DECEMBER, "batch": 512, "data": 2, "tensor": 8, "remat": "minimal"}),
    *(("v5p", f"v5p-1024b-{name}", pod, seconds, "MaxText 1024B",
       {**SCALED_1024, **DECEMBER, "batch": batch, "data": data, "tensor": 16})
      for name, pod, batch, data, seconds in (
          ("1024", "v5p:8x8x16", 2048, 1, 100.609), ("2x1024", "v5p:8x8x16 slices:2", 4096, 2, 108.025),
          ("2048", "v5p:8x16x16", 4096, 1, 85.9368), ("2x2048", "v5p:8x16x16 slices:2", 8192, 2, 91.5453))),
    ("v5p", "v5p-llama4-maverick-128", "v5p:4x4x8", 24.792, "Llama 4 Maverick", MAVERICK),
    ("v5p", "v5p32-levanter-300m", "v5p:2x2x4", 0.458791, "Llama-like 300M (Levanter)", LEVANTER),
    ("v6e", "v6e4-torchxla-llama31-8b-splash", "v6e:2x2", 2.4068, "Llama 3.1 8B (PyTorch/XLA)",
     {**LLAMA_XLA, **FUSED, "scan": False, "segments": False}),
    ("v6e", "v6e4-torchxla-llama31-8b-scan-offload", "v6e:2x2", 2.8006, "Llama 3.1 8B (PyTorch/XLA)",
     {**LLAMA_XLA, "remat": ["input"], "offload": True, "library": "pallas",
      "sides": {"fwd": (2048, 512), "dkv": (2048, 512), "dq": (2048, 256)}}),
    *(("v6e", f"v6e-700b-moe{name}", slices("v6e:16x16", n), mfu, "mixture of 754B",
       {**MOE_754B, "batch": 256 * n, "data": n}) for name, n, mfu in (("", 1, "MFU 0.381"), ("-4x", 4, "MFU 0.353"))),
    ("7x", "7x-gemma4-31b", "7x:4x4x4", 12.2024, "Gemma 4 31B", GEMMA4_31B),
    *(("7x", f"7x-dsv3-256-{name}", "7x:4x8x8", seconds, f"DeepSeek-V3 671B {name}", {**DEEPSEEK, **other})
      for name, seconds, other in (("bf16", 26.7904, {}), ("fp8", 22.0772, {"quantized": "float8", "parts": True}))),
    ("7x", "7x-qwen3-235b-256-fp8", "7x:4x8x8", 27.6715, "Qwen3-235B-A22B fp8", QWEN_MOE),
    *(("h100, Pax", f"h100-gpt3-5b-{dtype}-{8 * n}", f"h100:8 slices:{n}", seconds, f"GPT-3 5B {dtype} (Pax)",
       {**PAX_5B, **other, "batch": 32 * n, "data": n})
      for dtype, other, times in (("bf16", {}, (0.634, 0.639, 0.643, 0.651)), ("fp8", {"quantized": "float8"}, (0.47, 0.48, 0.48, 0.5)))
      for n, seconds in zip((2, 4, 8, 16), times)),
    *(("h100, Pax", f"h100-gpt3-175b-fp8-{128 * n}", f"h100:8 slices:{16 * n}", seconds, "GPT-3 175B fp8 (Pax)",
       {**PAX_175B, "batch": 256 * n, "data": n}) for n, seconds in ((1, 7.47), (2, 7.58), (4, 7.6), (8, 7.89), (16, 8.02))),
    *(("h100, PyTorch", f"h100-torchtitan-8b-{8 * n}-{name}", slices("h100:8", n) + " memory.bandwidth:2.4TB/s", seconds,
       f"Llama 3.1 8B ({name})", {**TITAN, **other, "batch": 16 * n})
      for n, times in ((1, (2.84346, 2.45748, 1.9203)), (16, (2.9231, 2.5152, 1.95513)))
      for name, other, seconds in zip(("eager", "compile", "compile-fp8"), ({"kernels": "library"}, {}, {"quantized": "float8"}), times)),
    ("a100, PyTorch", "a100-mpt-7b-8", "a100:8", 6 * 2048 / 4641, "MPT 7B, one of two microbatches",
     {**MPT, "emb": 4096, "heads": 32, "mlp": 16384, "layers": 32, "batch": 48, "remat": ALL_PRODUCTS + ["input"]}),
    ("a100, PyTorch", "a100-mpt-70b-64", "a100:8 slices:8", 8 * 2048 / 410, "MPT 70B, one of four microbatches",
     {**MPT, "emb": 8192, "heads": 64, "mlp": 32768, "layers": 80, "batch": 512}),
]
# The same, for decode_step.py; a published time includes prompts unless it is a time between tokens.
SERVING = [
    *(("serving v6e", f"v6e8-vllm-llama33-70b-c{n}", "v6e:2x4", seconds, "Llama 3.3 70B, between two tokens",
       {**LLAMA_70B, "batch": n, "context": 1500}) for n, seconds in ((64, 0.02311), (128, 0.03073))),
    ("serving v6e", "v6e4-sgl-gemma2-27b-c16", "v6e:2x2", 0.01447, "Gemma 2 27B, time per token", GEMMA_27B),
    *(("serving 7x", f"7x1-vllm-qwen3-32b-{name}", "7x:1x1x1", 135 / rate, "Qwen3 32B fp8, with prompts",
       {**QWEN_32B, "context": context}) for name, context, rate in (("1k1k", 1400, 6556.72), ("1k8k", 4700, 3959.56), ("8k1k", 7800, 1382.18))),
    ("serving 7x", "7x4-sgl-qwen3-8b-c128", "7x:2x2x1", 0.01409, "Qwen3 8B, time per token", {**QWEN_8B, "batch": 128, "context": 1536}),
    ("serving 7x", "7x4-sgl-llama33-70b-c128", "7x:2x2x1", 0.03078, "Llama 3.3 70B, time per token",
     {**LLAMA_70B, "batch": 128, "context": 1536}),
    *(("serving v5e", f"v5e8-jetstream-{name}", "v5e:2x4", batch / rate, f"{title}, with prompts", {**model, "batch": batch, **other})
      for name, title, model, batch, rate, other in (
          ("gemma-7b-bf16", "Gemma 7B", GEMMA_7B, 96, 3236, {}), ("gemma-7b-int8", "Gemma 7B int8", GEMMA_7B, 128, 4695, INT8),
          ("llama2-7b-bf16", "Llama 2 7B", LLAMA2_7B, 96, 3663, {}), ("llama2-7b-int8", "Llama 2 7B int8", LLAMA2_7B, 96, 4783, INT8))),
]
# The same, for micro.py: an operation and its arguments.
OPERATIONS = [
    ("collectives", "v6e-8-ppermute-1-16KiB", "v6e:2x4", 5.75e-6, "ppermute of 16 KiB", ("permute", 16384)),
    ("collectives", "v6e-8-ppermute-1MiB", "v6e:2x4", 17.45e-6, "ppermute of 1 MiB", ("permute", MIB)),
    ("collectives", "h100-allreduce-1g", "h100:8", 4.06e-3, "all_reduce of 1 GiB", ("psum", 23170)),
    *(("collectives", f"7x-2x2x2-allgather4-{rows * 16384 / 1e6:.1f}MB", "7x:2x2x2", seconds,
       f"all_gather over groups of 4, {rows * 16384 / 1e6:.1f} MB out", ("gather_four", rows, 2))
      for rows, seconds in ((64, 2.26207e-5), (256, 4.93854e-5), (1024, 1.55262e-4), (4096, 5.76322e-4), (16384, 2.25249e-3))),
    ("matmuls", "7x-matmul-2048-helion", "7x:1x1x1", 2.288e-5, "bf16, n = 2,048", ("product", 2048)),
    ("matmuls", "b200-f16-4096x4096x8192-cublas", "b200:1", 1.928e-4, "f16, 4,096 x 4,096 x 8,192", ("rectangle", 4096, 4096, 8192)),
    *(("decode attention a100", f"a100-decode-b{batch}-kv{context}", "a100:1 memory.bandwidth:1935GB/s", seconds, f"{batch} queries, {context} tokens each",
       ("decode_attention", batch, context)) for batch, context, seconds in (
           (1, 2048, 1.6032e-5), (8, 2048, 5.7633e-5), (32, 2048, 1.71612e-4), (128, 2048, 6.47489e-4), (1, 8192, 3.6833e-5),
           (8, 8192, 1.67746e-4), (32, 8192, 6.50659e-4), (128, 8192, 2.50566e-3), (8, 32768, 6.84999e-4), (128, 32768, 9.93571e-3))),
]
# Measurements that no program of this folder expresses, and why.
LEFT = {
    "7x4-vllm-qwen3-embed-8b-16k": "prompts need an attention kernel, which decode_step.py lacks: with ordinary operations +621 %",
    "7x-gemma4-2b": "layers that share keys and values, and inputs of each layer, are missing",
    "v6e-10t-moe": "the source does not give the number of layers",
    **dict.fromkeys(("b200-mbridge-llama-8b-8", "h100-mbridge-llama-70b-64", "b200-mbridge-llama-405b-128",
                     "h100-mbridge-llama-405b-1024"), "pipeline stages, context parallelism and microbatches are missing"),
    **dict.fromkeys(("7x4-vllm-qwen3coder-480b-1k1k", "7x4-vllm-qwen3coder-480b-1k8k", "7x4-vllm-qwen3coder-480b-8k1k"),
                    "decoding with parallel experts is missing"),
    **dict.fromkeys(("7x16-sgl-mimo25pro-c128", "7x4-sgl-mimov2flash-16k-epmoe-4096", "7x4-sgl-mimov2flash-16k-epmoe-2048",
                     "7x4-sgl-mimov2flash-16k-fused-2048", "7x4-sgl-mimov2flash-16k-fused-4096", "v6e4-sgl-qwen-7b-c8",
                     "v6e4-sgl-dsv2lite-c8", "v6e16-sgl-kimilinear-c16", "v6e32-sgl-kimilinear-c16"),
                    "the source does not give the model's sizes"),
}

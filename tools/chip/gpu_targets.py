"""What XLA's compiler asks about a GPU that it cannot see: a GpuTargetConfigProto as text.

Published numbers and properties that CUDA reports.
"""

# Clock of the matrix units, and operations a clock by bytes of the element.
HOPPER_UNITS = (1.83, {1: 1024, 2: 512, 4: 256, 8: 32})
BLACKWELL_UNITS = (1.835, {1: 2048, 2: 1024, 4: 512, 8: 16})

GPUS = {
    "h100": dict(name="NVIDIA H100 80GB HBM3", cc=(9, 0), core_count=132, shared_memory_per_core=233472,
                 fpus_per_core=128, shared_memory_per_block_optin=232448, memory_bandwidth=3352320000000,
                 l2_cache_size=50 << 20, clock_rate_ghz=1.98, device_memory_size=84942979072, units=HOPPER_UNITS),
    "h200": dict(name="NVIDIA H200", cc=(9, 0), core_count=132, shared_memory_per_core=233472, fpus_per_core=128,
                 shared_memory_per_block_optin=232448, memory_bandwidth=4800000000000, l2_cache_size=50 << 20,
                 clock_rate_ghz=1.98, device_memory_size=150109995008, units=HOPPER_UNITS),
    "b200": dict(name="NVIDIA B200", cc=(10, 0), core_count=148, shared_memory_per_core=233472, fpus_per_core=128,
                 shared_memory_per_block_optin=232448, memory_bandwidth=7672320000000, l2_cache_size=132644864,
                 clock_rate_ghz=1.965, device_memory_size=191514411008, units=BLACKWELL_UNITS),
    "a100": dict(name="NVIDIA A100-SXM4-80GB", cc=(8, 0), core_count=108, shared_memory_per_core=167936,
                 fpus_per_core=64, shared_memory_per_block_optin=166912, memory_bandwidth=2039040000000,
                 l2_cache_size=40 << 20, clock_rate_ghz=1.41, device_memory_size=85100068864, units=None),
}
SAME = dict(threads_per_block_limit=1024, threads_per_warp=32, shared_memory_per_block=49152,
            threads_per_core_limit=2048, block_dim_limit_x=2**31 - 1, block_dim_limit_y=65535,
            block_dim_limit_z=65535, registers_per_core_limit=65536, registers_per_block_limit=65536,
            thread_dim_limit_x=1024, thread_dim_limit_y=1024, thread_dim_limit_z=64)
# PrimitiveType (s8 u8 f8e5m2 f8e4m3fn f16 bf16 f32 f64) -> bytes; -> lanes and operations a clock without tensor cores.
MATRIX_TYPES = {2: 1, 6: 1, 19: 1, 20: 1, 10: 2, 16: 2, 11: 4, 12: 8}
SCALAR_TYPES = {4: (64, 1), 8: (64, 1), 10: (128, 2), 11: (128, 1), 12: (64, 1), 16: (128, 2)}
VERSIONS = ('driver_version: "13.0.0" runtime_version: "12.8.0" compile_time_toolkit_version: "12.8.0" '
            'dnn_version: "9.10.0"')


def rate(kind, clock, units, operations):
  return (f"rate_infos {{ key: {kind} value {{ clock_rate_ghz: {clock} units_per_core: {units} "
          f"ops_per_clock: {operations} }} }}")


def units_of(gpu, clock, operations):
  scalar = " ".join(rate(kind, gpu["clock_rate_ghz"], *v) for kind, v in SCALAR_TYPES.items())
  matrix = " ".join(rate(kind, clock, 4, operations[size]) for kind, size in MATRIX_TYPES.items())
  return [f"scalar_unit_description {{ {scalar} }}", f"matrix_unit_description {{ {matrix} }}",
          "device_interconnect_info { active_links: 18 }"]


def target_config(name):
  gpu = dict(GPUS[name])
  device, (major, minor), units = gpu.pop("name"), gpu.pop("cc"), gpu.pop("units")
  lines = [f"{key}: {value}" for key, value in (SAME | gpu).items()]
  accelerated = " feature_extension: ACCELERATED_FEATURES" if major >= 9 else ""
  lines.append(f"cuda_compute_capability {{ major: {major} minor: {minor}{accelerated} }}")
  lines += units_of(gpu, *units) if units else []
  info = "\n".join([*lines, VERSIONS])
  return (f'gpu_device_info {{\n{info}\n}}\nplatform_name: "CUDA"\ndnn_version_info {{ major: 9 minor: 10 }}\n'
          f'runtime_version {{ major: 12 minor: 8 }}\ndevice_description_str: "{device}"\n')

"""`minipod exec`: programs run without a framework have the framework's results."""

import pathlib
import re
import subprocess
import sys

import jax
import jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
import ml_dtypes
import numpy as np
import pytest
import scenario


def execute(*words, code=0, **variables):
  """The output of the verb, which has ended with the exit code; otherwise its errors."""
  done = subprocess.run([sys.executable, "-m", "minipod", "exec", *map(str, words)], capture_output=True, text=True,
                        timeout=300, env=scenario.environment(devices=None, **variables))
  assert done.returncode == code, done.stdout + done.stderr
  return done.stderr if code else done.stdout


def normal(*shape, dtype=np.float32):
  return np.random.default_rng(7).standard_normal(shape).astype(dtype)


# Arguments with their specs, the function, and options for jit.
CASES = {
    "products": ([normal(8, 16), normal(16, 4)], [P("x", "y"), P("y")], lambda a, b: (a @ b, a.sum()), {}),
    "fortran": ([np.asfortranarray(normal(8, 6, 4))], [P("x", None, "y")], lambda a: jnp.cumsum(a, 1), {}),
    "bf16": ([normal(8, 4, dtype=ml_dtypes.bfloat16)], [P("y")], lambda a: a * 2, {}),
    "f8": ([normal(8, 4, dtype=ml_dtypes.float8_e4m3fn)], [P(("x", "y"))], lambda a: -a, {}),
    "i4": ([np.arange(-8, 8).astype(ml_dtypes.int4)], [P("x")], lambda a: (a + a, a.astype(jnp.int32)), {}),
    "complex": ([normal(8, 4) + 1j * normal(8, 4)[::-1]], [P("y", "x")], lambda a: a * 1j, {}),
    "booleans": ([normal(4, 4) > 0, normal(4, 4)], [P("x"), P(None, "y")], lambda a, b: (a & (b > 0), a.sum()), {}),
    "scalars": ([np.float32(3), np.int32(-3), np.uint32(2**32 - 1)], [P()] * 3, lambda a, b, c: (a * b, c), {}),
    "empty": ([normal(0, 4)], [P()], lambda a: (a + 1, a.sum()), {}),
    "donated": ([normal(8, 8)], [P("x", "y")], lambda a: a + 1, {"donate_argnums": 0}),
}


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
  """Each case in files, with JAX's results as files, too."""
  folder = tmp_path_factory.mktemp("programs")
  mesh = Mesh(np.array(jax.devices("minipod")[:4]).reshape(2, 2), ("x", "y"))
  for name, (arguments, specs, function, options) in CASES.items():
    arguments = [a.astype(np.complex64) if np.iscomplexobj(a) else a for a in arguments]
    shardings = [NamedSharding(mesh, spec) for spec in specs]
    jitted = jax.jit(function, in_shardings=shardings, **options)
    (folder / name).mkdir()
    (folder / name / "program.mlir").write_text(jitted.lower(*arguments).as_text())
    for i, argument in enumerate(arguments):
      np.save(folder / name / f"argument_{i}.npy", argument)
    results = jitted(*(jax.device_put(a, s) for a, s in zip(arguments, shardings)))
    for i, result in enumerate(jax.tree.leaves(results)):
      np.save(folder / name / f"result_{i}.npy", np.asarray(result))
  return folder


@pytest.mark.parametrize("name", CASES)
def test_results_are_the_frameworks(programs, name, tmp_path):
  folder = programs / name
  inputs = [word for file in sorted(folder.glob("argument_*.npy")) for word in ("--input", file)]
  out = execute(folder / "program.mlir", *inputs, "--output", tmp_path / "out", "--compare", folder)
  expected = sorted(folder.glob("result_*.npy"))
  assert out.count("largest difference 0\n") == len(expected)
  for file in expected:
    want, found = np.load(file), np.load(tmp_path / "out" / file.name)
    assert found.shape == want.shape and found.dtype.itemsize == want.dtype.itemsize
    assert found.tobytes() == want.tobytes()
  assert ("as raw bytes" in out) == (name in ("bf16", "f8", "i4"))


PROGRAM = """
module @matvec {
  sdy.mesh @pod = <["x"=4]>
  func.func public @main(%a: tensor<3x8xf32> {sdy.sharding = #sdy.sharding<@pod, [{}, {"x"}]>},
                         %x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@pod, [{"x"}]>})
      -> (tensor<3xf32> {sdy.sharding = #sdy.sharding<@pod, [{}]>}) {
    %y = stablehlo.dot_general %a, %x, contracting_dims = [1] x [0]
        : (tensor<3x8xf32>, tensor<8xf32>) -> tensor<3xf32>
    return %y : tensor<3xf32>
  }
}
"""


@pytest.fixture
def matvec(tmp_path):
  (tmp_path / "matvec.mlir").write_text(PROGRAM)
  return tmp_path / "matvec.mlir"


def test_random_arguments_are_the_seeds_alone(matvec, tmp_path):
  out = execute(matvec, "--output", tmp_path / "a", "--seed", 5)
  assert out.splitlines()[:3] == ["argument 0: f32[3,8], f32[3,2] on each of 4 devices, random",
                                  "argument 1: f32[8], f32[2] on each of 4 devices, random",
                                  "result 0: f32[3], f32[3] on each of 4 devices"]
  # The same values, not sharded.
  (tmp_path / "whole.mlir").write_text(re.sub(r" \{sdy[^}]*\}[^}]*\}\]>\}| \{sdy[^}]*\}\]>\}|  sdy.mesh.*\n", "", PROGRAM))
  whole = execute(tmp_path / "whole.mlir", "--compare", tmp_path / "a", "--seed", 5, "--tolerance", 1e-5)
  assert "on each of" not in whole and "largest difference" in whole
  error = execute(matvec, "--compare", tmp_path / "a", "--seed", 6, "--tolerance", 1e-5, code=1)
  assert re.fullmatch(r"minipod exec: a result differs by [\d.]+ from that in '.*/a', the tolerance is 1e-05\n", error)


def test_one_result_is_compared_with_a_file(matvec, tmp_path):
  execute(matvec, "--output", tmp_path / "a", "--seed", 5)
  (tmp_path / "a" / "result_0.npy").rename(tmp_path / "mine.npy")
  assert "largest difference 0\n" in execute(matvec, "--compare", tmp_path / "mine.npy", "--seed", 5)
  two = PROGRAM.replace("(tensor<3xf32> {sdy.sharding = #sdy.sharding<@pod, [{}]>})", "(tensor<3xf32>, tensor<8xf32>)")
  two = two.replace("return %y : tensor<3xf32>", "return %y, %x : tensor<3xf32>, tensor<8xf32>")
  (tmp_path / "two.mlir").write_text(two)
  error = execute(tmp_path / "two.mlir", "--compare", tmp_path / "mine.npy", code=1)
  assert "mine.npy': the program has 2 results, which require a folder with result_0.npy and so on" in error


def test_what_is_printed(tmp_path):
  (tmp_path / "p.mlir").write_text("""
    func.func public @main(%a: tensor<3xf32>, %b: tensor<12xi64>) -> (tensor<3xf32>, tensor<12xi64>, !stablehlo.token) {
      %t = stablehlo.create_token : !stablehlo.token
      return %a, %b, %t : tensor<3xf32>, tensor<12xi64>, !stablehlo.token
    }""")
  np.save(tmp_path / "a.npy", np.array([1.5, np.nan, -2], np.float32))
  np.save(tmp_path / "b.npy", np.arange(12) - 2**62)
  out = execute(tmp_path / "p.mlir", "--input", tmp_path / "a.npy", "--input", tmp_path / "b.npy")
  assert out.splitlines()[2:] == [
      "result 0: f32[3]", "  1.5 nan -2", "  sum nan, min -2, max 1.5, 1 NaN", "result 1: i64[12]",
      "  " + " ".join(str(i - 2**62) for i in range(8)) + " ...",
      "  sum -5.53402322e+19, min -4.61168602e+18, max -4.61168602e+18", "result 2: a token"]


def test_replicas_are_a_dimension(tmp_path):
  (tmp_path / "p.mlir").write_text("""
    module @r attributes {mhlo.num_replicas = 2 : i32, mhlo.num_partitions = 2 : i32} {
      sdy.mesh @m = <["x"=2]>
      func.func public @main(%a: tensor<4xf32> {sdy.sharding = #sdy.sharding<@m, [{"x"}]>}) -> tensor<4xf32> {
        %0 = "stablehlo.all_reduce"(%a) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
        ^bb0(%x: tensor<f32>, %y: tensor<f32>):
          %s = stablehlo.add %x, %y : tensor<f32>
          stablehlo.return %s : tensor<f32>
        }) : (tensor<4xf32>) -> tensor<4xf32>
        return %0 : tensor<4xf32>
      }
    }""")
  np.save(tmp_path / "a.npy", np.arange(8, dtype=np.float32).reshape(2, 4))
  execute(tmp_path / "p.mlir", "--input", tmp_path / "a.npy", "--output", tmp_path)
  assert np.load(tmp_path / "result_0.npy").tolist() == [[4, 6, 8, 10]] * 2
  assert "3 devices are not a multiple of its 2 replicas" in execute(tmp_path / "p.mlir", "--devices", 3, code=1)


def test_runs_and_their_times(matvec, programs, tmp_path):
  out = execute(matvec, "--repeat", 3, MINIPOD_TIME="model", MINIPOD_TOPOLOGY="v5e:2x2", MINIPOD_TRACE=tmp_path / "t.json")
  runs = re.findall(r"^run \d: ([\d.]+) s, virtual ([\d.]+) s$", out, re.M)
  assert len(runs) == 3 and 0 < float(runs[1][1]) == float(runs[2][1]) <= float(runs[0][1])
  assert (tmp_path / "t.json").stat().st_size > 0
  # The next run gets the memory that a run reuses.
  donated = programs / "donated"
  out = execute(donated / "program.mlir", "--input", donated / "argument_0.npy", "--compare", donated, "--repeat", 3)
  assert len(re.findall(r"^run \d: [\d.]+ s$", out, re.M)) == 3 and "largest difference 0\n" in out


def test_pods_larger_than_the_machine(tmp_path):
  (tmp_path / "p.mlir").write_text(re.sub(r"(?<=[<x])([38])(?=x)", r"\g<1>00000", PROGRAM))
  shapes = {"MINIPOD_TIME": "model", "MINIPOD_VALUES": "shapes", "MINIPOD_TOPOLOGY": "v5e:2x2 hbm:900GiB"}
  out = execute(tmp_path / "p.mlir", "--repeat", 1, **shapes)
  assert out.endswith("  without values (MINIPOD_VALUES)\n") and "virtual" in out
  assert "result 0: this array has no values" in execute(tmp_path / "p.mlir", "--output", tmp_path, code=1, **shapes)


def test_what_is_refused(matvec, tmp_path):
  np.save(tmp_path / "a.npy", np.zeros((8, 3)))
  np.save(tmp_path / "big.npy", np.zeros((3, 8), ">f4"))
  (tmp_path / "no.npy").write_text("no")
  (tmp_path / "cut.npy").write_bytes((tmp_path / "big.npy").read_bytes().replace(b">f4", b"<f4")[:-1])
  for file, words in {
      "a.npy": f"argument 0 is f32[3,8], in a file '<f4'; '{tmp_path}/a.npy' has '<f8' and the shape (8, 3)",
      "big.npy": f"argument 0 is f32[3,8], in a file '<f4'; '{tmp_path}/big.npy' has '>f4' and the shape (3, 8)",
      "no.npy": f"'{tmp_path}/no.npy' is not an .npy file of a plain array",
      "cut.npy": f"'{tmp_path}/cut.npy' has 95 bytes of elements, not 96",
      "none.npy": f"cannot open '{tmp_path}/none.npy': No such file or directory",
  }.items():
    assert execute(matvec, "--input", tmp_path / file, code=1) == f"minipod exec: {words}\n"
  inputs = ["--input", tmp_path / "a.npy"] * 3
  assert "the program has 2 arguments, 3 inputs are given" in execute(matvec, *inputs, code=1)
  assert "need 4 devices, the pod has 2" in execute(matvec, code=1, MINIPOD_DEVICES=2)
  assert "mesh @pod has 4 devices, the program 2" in execute(matvec, "--devices", 2, code=1)
  assert "cannot make the folder" in execute(matvec, "--output", tmp_path / "no" / "no", code=1)
  for words in (["--nothing", matvec], ["--devices", "0", matvec], ["--tolerance", "-1", matvec], [matvec, matvec], [],
                [matvec, "--seed"]):
    assert "lists the arguments" in execute(*words, code=2)
  assert execute("--help").startswith("usage: minipod exec ")


@pytest.mark.parametrize("file, words", [("torch_basic_000", ()), ("torch_launch_004", ("--replicas", 4))])
def test_hlo(file, words):
  path = pathlib.Path(__file__).parents[2] / "fixtures" / "hlo" / f"{file}.hlo"
  assert "result 0: " in execute("--form", "hlo", path, *words)

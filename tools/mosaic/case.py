"""Cases of the corpus: a function that calls Pallas kernels, its arguments, and how close its results must be.

A module in `kernels/` registers its cases with the decorator `case`.  A stored case is a folder with `program.export`
(by `jax.export`, for platform tpu), `arrays.npz` (arguments and expected results) and `case.json`.
"""

import contextlib
import dataclasses
import importlib
import json
import pathlib
from unittest import mock

import jax
from jax import export
from jax._src import mesh as jax_mesh
from jax._src.pallas.mosaic import tpu_info
from jax.experimental.pallas import tpu as pltpu
import ml_dtypes  # noqa: F401  gives NumPy the names of the types
import numpy as np

KIND = "TPU v6 lite"
_cases = {}


@dataclasses.dataclass
class Case:
  """`make` gets a random generator, and returns the function, its arguments, and perhaps its reference."""
  package: str
  name: str
  make: object
  tolerance: float = 1e-5
  reference: object = None  # computes the expected results if no interpreter can
  # Python's interpreter of TPUs is slow: these cases are left to Pallas's own interpreter, or to the reference.
  by: tuple = ("tpu", "any", "reference")


def case(function=None, **options):
  """Registers a case under the name of its function, and the module as its package."""
  def register(function):
    package = function.__module__.rpartition(".")[2]
    _cases[package, function.__name__] = Case(package, function.__name__, function, **options)
    return function

  return register(function) if function is not None else register


def find_cases(packages, only="") -> list[Case]:
  for package in packages:
    importlib.import_module(f"kernels.{package}")
  return [found for (package, name), found in _cases.items() if package in packages and only in name]


def find_packages() -> list[str]:
  return sorted(path.stem for path in (pathlib.Path(__file__).parent / "kernels").glob("[a-z]*.py"))


@contextlib.contextmanager
def described_tpu(kind=KIND):
  """A block in which JAX lowers for a TPU of this kind, without one; meshes of CPU devices count as the TPU's, too."""
  device = jax_mesh.AbstractDevice(device_kind=kind, num_cores=1, platform="tpu")
  with (mock.patch.object(tpu_info, "get_device_kind", lambda: kind),
        mock.patch.object(tpu_info, "get_num_device_cores", lambda: 1),
        jax.sharding.use_abstract_mesh(jax.sharding.AbstractMesh((), (), abstract_device=device))):
    yield


def lower(function, args, kind=KIND):
  checks = [export.DisabledSafetyCheck.platform(), export.DisabledSafetyCheck.custom_call("tpu_custom_call")]
  with described_tpu(kind):
    return export.export(jax.jit(function), platforms=["tpu"], disabled_checks=checks)(*args)


def build(case: Case):
  """The function, its arguments and its reference; Pallas chooses between interpreters and lowering meanwhile."""
  function, args, *reference = case.make(np.random.default_rng(len(case.name)))
  return function, args, reference[0] if reference else case.reference


def expect(case: Case):
  """The expected results, and what has computed them."""
  ways = {"tpu": pltpu.InterpretParams(), "any": True, "reference": None}
  failures = []
  for way in case.by:
    try:
      with _interpreted_by(ways[way]):
        function, args, reference = build(case)
        if way == "reference":
          if reference is None:
            continue
          found = reference(*args)
        else:
          found = jax.jit(lambda *args: function(*args))(*args)
        return [np.asarray(value) for value in jax.tree.leaves(found)], way
    except Exception as error:  # an interpreter may raise anything for a kernel that it does not support
      failures.append(f"{way}: {type(error).__name__}: {str(error).splitlines()[0][:160]}")
  raise NotImplementedError("; ".join(failures))


@contextlib.contextmanager
def _interpreted_by(interpreter):
  with described_tpu(), pltpu.force_tpu_interpret_mode(interpreter):
    yield


# ---- folders ----


def save(folder, case: Case, exported, args, expected, way) -> None:
  folder.mkdir(parents=True, exist_ok=True)
  (folder / "program.export").write_bytes(exported.serialize())
  arrays = {f"arg{i}": np.asarray(arg) for i, arg in enumerate(jax.tree.leaves(args))}
  arrays |= {f"result{i}": value for i, value in enumerate(expected)}
  np.savez_compressed(folder / "arrays.npz", **{
      name: np.frombuffer(np.ascontiguousarray(array).tobytes(), np.uint8) for name, array in arrays.items()})
  (folder / "case.json").write_text(json.dumps({
      "package": case.package, "name": case.name, "tolerance": case.tolerance, "expected_by": way,
      "arrays": {name: [str(array.dtype), list(array.shape)] for name, array in arrays.items()}}, indent=1) + "\n")


def load(folder):
  """The description, the exported program, its arguments and the expected results."""
  described = json.loads((folder / "case.json").read_text())
  stored = np.load(folder / "arrays.npz")
  arrays = {name: np.frombuffer(stored[name].tobytes(), np.dtype(kind)).reshape(shape)
            for name, (kind, shape) in described["arrays"].items()}
  pick = lambda kind: [array for name, array in arrays.items() if name.startswith(kind)]
  exported = export.deserialize((folder / "program.export").read_bytes())
  return described, exported, pick("arg"), pick("result")


# ---- arguments ----


def normal(rng, *shape, dtype=np.float32, scale=1.0):
  return (rng.standard_normal(shape) * scale).astype(dtype)


def whole(rng, *shape, low=-8, high=8, dtype=np.float32):
  """Whole numbers, of which small sums are exact in every order."""
  return rng.integers(low, high, shape).astype(dtype)

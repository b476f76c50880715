"""minipod: a simulated multi-device accelerator for JAX and PyTorch, as a PJRT plugin.

A script need not import this package.  JAX finds it through the entry-point group `jax_plugins`, and uses its devices
with `JAX_PLATFORMS=minipod` or without any setting.  TorchTPU finds the TPUs of a described pod (torch_tpu_plugin.py).
torch_xla finds it through `torch_xla.plugins`, and uses its devices with `PJRT_DEVICE=MINIPOD`.  The library reads the
pod's description from the environment (`MINIPOD_DEVICES`, `MINIPOD_TOPOLOGY`, `MINIPOD_DEVICE_MEMORY`) or from JAX's
config `jax_pjrt_client_create_options`.

PYTEST_DONT_REWRITE: pytest would warn wherever JAX, and with it this package, comes before it, as this has a plugin
for it; and a warning ends the run of a project that makes errors of them.
"""

import importlib.metadata
import os
import sys

LIBRARY_NAME = "pjrt_c_api_minipod_plugin.so"

try:
  __version__ = importlib.metadata.version("minipod")
except importlib.metadata.PackageNotFoundError:  # imported from a source tree
  __version__ = "0+source"


def library_path() -> str:
  """The path of the plugin library.

  `MINIPOD_LIBRARY` may name another build of it, for example a sanitizer build.

  Raises:
    FileNotFoundError: the file does not exist; the message says how to get one.
  """
  if override := os.environ.get("MINIPOD_LIBRARY"):
    if os.path.isfile(override):
      return override
    raise FileNotFoundError(f"MINIPOD_LIBRARY={override}: there is no such file")
  return _own_library_path()


def _own_library_path() -> str:
  """Without `MINIPOD_LIBRARY`."""
  folder = os.path.dirname(os.path.abspath(__file__))
  path = os.path.join(folder, LIBRARY_NAME)
  if os.path.isfile(path):
    return path
  # In a clone (`pip install -e .` leaves the package there): the library that CMake has built.
  tree = os.path.abspath(os.path.join(folder, "..", "..", ".."))
  built = os.path.join(tree, "build", LIBRARY_NAME)
  if os.path.isfile(os.path.join(tree, "CMakeLists.txt")) and os.path.isfile(built):
    return built
  raise FileNotFoundError(
      f"{path} is missing: this copy of the package was not built.  Install the wheel that"
      " `pip wheel .` makes in the source tree, or set MINIPOD_LIBRARY to a built library.")


def time_report(format: str = "text", by: str = "line", mesh=None, tokens: float | None = None):
  """Reports where the virtual time of the described pod went.

  Args:
    format: "text": tables of programs, collectives, ops and devices.
      "summary": at most 100 characters wide; small rows are merged into "(others)", so the rows sum to the total.
      "html": a web page with these tables; notebooks show "text" and "summary" in this form.
      "json": all numbers as a JSON text, a list with one object per client.
      "data": the same as Python lists and dicts.
    by: for "summary": a row is a "line" of the program, a "layer" (the name stack), a "kind" of op, a "class" of ops, or
      an "axis" of the mesh along which collectives run.
    mesh: for "summary" and "html": the jax.sharding.Mesh whose axis names the report uses.
    tokens: for "summary" and "html": tokens per launch of the longest program, to get tokens/s.

  Raises:
    RuntimeError: there is no time model; set `MINIPOD_TIME=model`.
    ValueError: the format or grouping does not exist.
  """
  from minipod import notebook
  from minipod import report
  from minipod import virtual  # imports the library

  data = lambda: notebook.name_cells(report.read(virtual.time_report_json()))
  if format == "text":
    return notebook.Report.of(notebook.name_cells(virtual.time_report()), lambda: notebook.html(data(), mesh, tokens))
  if format == "json":
    return virtual.time_report_json()
  if format == "data":
    return data()
  if format == "summary":
    return notebook.summary(data(), by, mesh, tokens)
  if format == "html":
    from minipod import report_page

    return "".join(report_page.page(each, mesh, tokens) for each in data())
  raise ValueError(f"format {format!r} is none of text, summary, html, json and data")


def topo(pod: str | None = None, loads=None):
  """Shows a pod: as text, and in notebooks as a picture (`.svg`).

  Args:
    pod: a description as in MINIPOD_TOPOLOGY; by default the pod that `use` or the environment has set.
    loads: a timeline (MINIPOD_TRACE) or the output of `minipod loads`; each link gets a colour by its load.

  Raises:
    ValueError: the description is wrong.
  """
  from minipod import notebook

  return notebook.Topology(pod or notebook.used_pod(), loads)


def virtual_time() -> float:
  """Returns the virtual time at which all launches so far end on the pod, in seconds since the client was created.

  The call takes no virtual time, so it does not delay later launches.  It blocks in real time until the branches and
  loops of all launches so far are decided, because their times are known only then.  So the value is the same in every
  run.  If some threads of the process have not joined a launch yet, that launch and later ones count as far as they are
  known.

  Raises:
    RuntimeError: there is no time model (set `MINIPOD_TIME=model`), or a callback of a program made the call.
  """
  from minipod import virtual

  return virtual.virtual_time()


def inject(faults) -> None:
  """Adds faults to the pod: one fault (a dict), a list of faults, or either as YAML.

  Example: `inject({"device": 3, "dead": True})`.  configs/README.md lists all keys.  The keys `step` and `until` count
  launches from this call on.  In a job of several processes, each process injects its own faults.

  Raises:
    RuntimeError: the pod cannot have one of these faults, or the script has not used a device yet.
  """
  from minipod import faults as faults_module

  faults_module.inject(faults)


def heal() -> None:
  """Removes all faults, also those in the description of the pod and in MINIPOD_FAULTS.

  Raises:
    RuntimeError: the script has not used a device yet.
  """
  from minipod import faults as faults_module

  faults_module.heal()


def use(pod: str | None = None, **options) -> None:
  """Makes JAX or TorchTPU use another pod from now on: `minipod.use("v5e:4x4", hosts=2, time="model")`.

  Arrays and compiled programs of JAX on the previous pod are lost.  For TorchTPU, call it before the first tensor on
  the device "tpu".  It then sets environment variables, which processes inherit.  Arguments override environment
  variables.  If `pod` is missing, the environment sets the pod.  In a job of several processes, each process must call
  this function.

  Args:
    pod: a line or file, as in MINIPOD_TOPOLOGY.
    **options: client options by name (`num_devices`, `time`, ...), and the keys `hosts`, `slices` and `hbm` of the
      description.  "" means the default of an option, even if the environment sets it.

  Raises:
    RuntimeError: TorchTPU has a client already.
    ValueError: the description is wrong (JAX finds this out when it makes its client).
  """
  words = {key: options.pop(key) for key in ("slices", "hosts", "hbm") if key in options}
  if words and pod is None:
    raise ValueError(f"{', '.join(words)}: of which pod?")
  if pod is not None:
    options["topology"] = " ".join([pod, *(f"{key}:{value}" for key, value in words.items())])
  from minipod.torch_tpu import pods

  is_wanted = pods.is_wanted()
  if is_wanted:
    pods.use(options)
  if not is_wanted or "jax" in sys.modules:
    _use_options(options or None)


def _use_options(options) -> None:
  """Ends JAX's clients; the next one has these options."""
  import jax
  from jax.extend import backend

  jax.clear_caches()
  backend.clear_backends()
  jax.config.update("jax_pjrt_client_create_options", options)

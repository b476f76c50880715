"""minipod: a simulated multi-device accelerator for JAX and PyTorch/XLA, as a PJRT plugin.

Nothing has to be imported: the package announces itself through the entry-point group
`jax_plugins`, and `JAX_PLATFORMS=minipod` (or no setting at all) makes its devices JAX's
default ones; and through `torch_xla.plugins`, where `PJRT_DEVICE=MINIPOD` asks for them.  What the pod looks like is read by the library itself from the environment
(`MINIPOD_DEVICES`, `MINIPOD_TOPOLOGY`, `MINIPOD_DEVICE_MEMORY`) or from JAX's config
`jax_pjrt_client_create_options`.

PYTEST_DONT_REWRITE: pytest would warn wherever JAX, and with it this package, comes before it, as this has a plugin
for it; and a warning ends the run of a project that makes errors of them.
"""

import importlib.metadata
import os

LIBRARY_NAME = "pjrt_c_api_minipod_plugin.so"

try:
  __version__ = importlib.metadata.version("minipod")
except importlib.metadata.PackageNotFoundError:  # imported from a source tree
  __version__ = "0+source"


def library_path() -> str:
  """The path of the plugin library.

  `MINIPOD_LIBRARY` names another build of it, a sanitizer build for example.

  Raises:
    FileNotFoundError: there is no such file; the message says how to get one.
  """
  if override := os.environ.get("MINIPOD_LIBRARY"):
    if os.path.isfile(override):
      return override
    raise FileNotFoundError(f"MINIPOD_LIBRARY={override}: there is no such file")
  folder = os.path.dirname(os.path.abspath(__file__))
  path = os.path.join(folder, LIBRARY_NAME)
  if os.path.isfile(path):
    return path
  # In the tree, where `pip install -e .` leaves the package: what CMake has built.
  tree = os.path.abspath(os.path.join(folder, "..", "..", ".."))
  built = os.path.join(tree, "build", LIBRARY_NAME)
  if os.path.isfile(os.path.join(tree, "CMakeLists.txt")) and os.path.isfile(built):
    return built
  raise FileNotFoundError(
      f"{path} is missing: this copy of the package was not built.  Install the wheel that"
      " `pip wheel .` makes in the source tree, or set MINIPOD_LIBRARY to a built library.")


def time_report(format: str = "text", by: str = "line", mesh=None, tokens: float | None = None):
  """Where the virtual time of the described pod went.

  Args:
    format: "text": all tables, by program, collective and op.  "summary": at most 100 columns,
      with what is not in a row as "(others)", so that it adds up.  Notebooks show either as a page.
      "html": that page with all such tables.  "json": all figures as a text, a list of one object for each client; "data": the same
      as Python's own lists and dicts.
    by: of a summary: rows by "line" of the program, "layer" (the name stack), "kind" of op, "class"
      of work, or "axis" along which collectives go.
    mesh: of a summary or page: the jax.sharding.Mesh whose axes collectives are named by.
    tokens: of a summary or page: what a launch of the longest program takes, for tokens/s.

  Raises:
    RuntimeError: no virtual times are kept (`MINIPOD_TIME=model`).
    ValueError: there is no such format or grouping.
  """
  from minipod import notebook
  from minipod import report
  from minipod import virtual  # which loads the library

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
  """The pod that a line or a file makes, or the one in use: a table as a text, and a picture in notebooks (`.svg`).

  Args:
    pod: as MINIPOD_TOPOLOGY has it; that of `use` or of the environment by default.
    loads: a timeline (MINIPOD_TRACE), or what `minipod loads` prints of one, by which links are coloured.

  Raises:
    ValueError: there is no such pod.
  """
  from minipod import notebook

  return notebook.Topology(pod or notebook.used_pod(), loads)


def virtual_time() -> float:
  """Seconds of virtual time since the client was made, when all that was launched so far is over on the pod.

  To ask takes no virtual time: what the host launches next is not delayed.  The call waits, in real
  time, until all launches so far have made their choices (branches, loops), because only then are
  their times known; so the value is the same in every run.  A launch that not all threads of the
  process have joined yet, and what they launch after it, count as far as they are known.

  Raises:
    RuntimeError: no virtual times are kept (`MINIPOD_TIME=model`), or a callback of a program asks.
  """
  from minipod import virtual

  return virtual.virtual_time()


def inject(faults) -> None:
  """Adds faults to the pod: a fault (a dict), a list of them, or either as YAML.

  `inject({"device": 3, "dead": True})`; configs/README.md has all keys.  The launches that `step`
  and `until` speak of are counted from now on.  In a job each process injects for itself.

  Raises:
    RuntimeError: the pod cannot have one of these faults, or no device was used yet.
  """
  from minipod import faults as faults_module

  faults_module.inject(faults)


def heal() -> None:
  """Takes all faults away, those of the configuration too.

  Raises:
    RuntimeError: no device was used yet.
  """
  from minipod import faults as faults_module

  faults_module.heal()


def use(pod: str | None = None, **options) -> None:
  """Has JAX use another pod from now on: `minipod.use("v5e:4x4", hosts=2, time="model")`.

  Arrays and compiled programs of the pod before are gone.  What is given here wins over the
  environment; without a pod its variables count again.  In a job every process calls it.

  Args:
    pod: a pod's line or file, as MINIPOD_TOPOLOGY has it.
    **options: client options by name (`num_devices`, `time`, ...; "" for the default, whatever the
      environment says), and `hosts`, `slices` and `hbm` of the line.
  """
  words = {key: options.pop(key) for key in ("slices", "hosts", "hbm") if key in options}
  if words and pod is None:
    raise ValueError(f"{', '.join(words)}: of which pod?")
  if pod is not None:
    options["topology"] = " ".join([pod, *(f"{key}:{value}" for key, value in words.items())])
  _use_options(options or None)


def _use_options(options) -> None:
  """Ends JAX's clients; the next one has these options."""
  import jax
  from jax.extend import backend

  jax.clear_caches()
  backend.clear_backends()
  jax.config.update("jax_pjrt_client_create_options", options)

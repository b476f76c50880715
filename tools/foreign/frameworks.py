"""Runs training frameworks unchanged: on minipod and JAX's CPU backend, and on described pods.

Each framework (maxtext, tunix, levanter, easydel) gets its own environment below the folder, with its version and that
of JAX from PyPI, and minipod's wheel.

- Part `values` runs its smallest real training on eight devices, on JAX's CPU and on minipod.  The losses must be equal
  within the precision of their types.
- Part `pod` runs a configuration of full size with MINIPOD_VALUES=shapes on a described pod.  The framework's own log
  must print the speed in the time report.

Both parts print a table at their end.  README.md lists what each framework needs, and the results.
"""

import dataclasses
import glob
import hashlib
import json
import os
import pathlib
import random
import re
import shutil
import statistics
import subprocess
import time

import platforms

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
DEVICES = 8
SPEED_TOLERANCE = 0.02
# The first steps are launched without waiting for them, so their times are meaningless.
WARM_STEPS = 2


# ---- Trainings ----

@dataclasses.dataclass
class Run:
  """A training, as a command.  `{folder}`, `{site}` and `{output}` stand for paths of this machine."""
  title: str
  command: list[str]
  variables: dict = dataclasses.field(default_factory=dict)
  # For part `values`: the allowed relative difference of losses, and settings for JAX's CPU or minipod only.
  tolerance: float = 1e-5
  cpu_arguments: list[str] = dataclasses.field(default_factory=list)
  pod_variables: dict = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class Framework:
  name: str
  python: str
  requirements: list[str]
  log: "Log"
  values: Run
  pod: list[Run]
  needs_torch: bool = False


@dataclasses.dataclass
class Log:
  """How to read steps from a framework's log: patterns with one group each, in the order of the steps."""
  loss: str
  seconds: str = ""
  # More seconds between two steps, if the log prints them in addition to `seconds`.
  seconds_between: tuple = ()
  teraflops: str = ""  # per device and second
  # If the log has no seconds: the time of day of its lines, whose differences are the seconds.
  moment: str = ""
  device_scale: float = 1  # factor from the log's unit to TFLOP/s per device


def pod(topology: str, **more: str) -> dict:
  return {"MINIPOD_TOPOLOGY": topology, "MINIPOD_PLATFORM": "tpu", "MINIPOD_VALUES": "shapes",
          "MINIPOD_ABSENT": "zero", **RECIPE, **more}


# The clocks of the process show the pod's time.
RECIPE = {"MINIPOD_TIME": "model", "MINIPOD_CLOCK": "virtual"}

MAXTEXT = ["{python}", "-m", "maxtext.trainers.pre_train.train", "{site}/maxtext/configs/base.yml",
           "base_output_directory={output}", "dataset_type=synthetic", "enable_checkpointing=false"]
# Options of MaxText's recipe for Llama-3.1-70B with 8,192 tokens on v6e-256, for its benchmark runner.
LLAMA_70B = """model_name=llama3.1-70b per_device_batch_size=5 ici_fsdp_parallelism=-1 remat_policy=custom
    decoder_layer_input=offload query_proj=offload key_proj=offload value_proj=offload
    max_target_length=8192 attention=flash use_iota_embed=true sa_block_q=2048 sa_block_kv=2048
    sa_block_kv_compute=2048 sa_block_q_dkv=2048 sa_block_kv_dkv=2048 sa_block_kv_dkv_compute=2048
    sa_block_q_dq=2048 sa_block_kv_dq=2048 sa_use_fused_bwd_kernel=true""".split()

FRAMEWORKS = [
    Framework(
        name="maxtext", python="3.12",
        requirements="""maxtext==0.2.5 jax==0.11.1 jaxlib==0.11.1 absl-py aqtp chex
            cloud-accelerator-diagnostics datasets drjax etils flax gcsfs google-cloud-mldiagnostics
            google-cloud-monitoring grain huggingface_hub jaxtyping jinja2 jsonlines ml-collections
            ml-goodput-measurement omegaconf optax orbax-checkpoint parameterized pathwaysutils
            pillow protobuf pydantic qwix sentencepiece sympy tensorboardx tensorflow-cpu
            tensorflow-datasets tiktoken tokamax transformers>=5.8.0""".split(),
        log=Log(loss=r"completed step.* loss: ([-\d.]+|nan)", seconds=r"completed step.*seconds: ([\d.]+)",
                teraflops=r"completed step.*TFLOP/s/device: ([\d.]+)"),
        values=Run(
            title="2 layers, fsdp 8, bf16",
            command=[*MAXTEXT, *"""run_name=tiny steps=5 per_device_batch_size=1 base_emb_dim=64
                base_num_query_heads=4 base_num_kv_heads=4 head_dim=16 base_mlp_dim=128
                base_num_decoder_layers=2 vocab_size=512 max_target_length=128""".split()],
            cpu_arguments=["hardware=cpu", "skip_jax_distributed_system=true"],
            pod_variables={"MINIPOD_PLATFORM": "cpu"}, tolerance=2e-4),
        pod=[
            Run(title="16B, v5e/16b.sh as published",
                command=["bash", "{site}/maxtext/configs/tpu/v5e/16b.sh", "RUN_NAME=16b",
                         "OUTPUT_PATH={output}", "RUN_PREFLIGHT=false"],
                variables=pod("v5e:16x16", MAXTEXT_CONFIGS_DIR="{site}/maxtext/configs",
                              DECOUPLE_GCLOUD="TRUE")),
            Run(title="Llama-3.1-70B, recipe for v6e-256",
                command=[*MAXTEXT, *LLAMA_70B, "run_name=70b", "steps=6"],
                variables=pod("v6e:16x16", DECOUPLE_GCLOUD="TRUE")),
        ]),
    Framework(
        name="tunix", python="3.12",
        requirements=["google-tunix==0.1.7", "jax==0.10.2", "jaxlib==0.10.2"],
        log=Log(loss=r"training loss: ([-\d.]+|nan)",
                moment=r"I\d{4} (\d\d:\d\d:\d\d\.\d+) .*Train step \d+ training loss"),
        values=Run(title="2 layers, fsdp 2 x tp 4, f32",
                   command=["{python}", str(HERE / "train_tunix.py"), "tiny", "5"]),
        pod=[Run(title="llama3.1-8B, PeftTrainer, fsdp 64 x tp 4",
                 command=["{python}", str(HERE / "train_tunix.py"), "8b", "8"],
                 variables=pod("v5e:16x16"))]),
    Framework(
        name="levanter", python="3.12",
        requirements=["marin-levanter==0.2.227.dev40316220070", "jax==0.11.2", "jaxlib==0.11.2"],
        log=Log(loss=r'"event": "log".*"train/loss": ([-\d.e]+|NaN)', seconds=r'"throughput/duration": ([\d.e-]+)',
                seconds_between=(r'"throughput/hook_time": ([\d.e-]+)', r'"throughput/loading_time": ([\d.e-]+)'),
                teraflops=r'"throughput/gflops_per_second": ([\d.e-]+)', device_scale=1e-3 / 256),
        values=Run(title="train_lm, Llama of 2 layers, f32",
                   command=["{python}", str(HERE / "train_levanter.py"), "--config_path", "{output}/tiny.json"],
                   variables={"HF_HUB_OFFLINE": "1"}),
        pod=[Run(title="train_lm, Llama of 1B, batch 2,048 x 2,048",
                 command=["{python}", str(HERE / "train_levanter.py"), "--config_path", "{output}/1b.json"],
                 variables={"HF_HUB_OFFLINE": "1", **pod("v5e:16x16")})]),
    Framework(
        name="easydel", python="3.11", needs_torch=True,
        requirements=["easydel==0.3.0", "jax==0.9.2", "jaxlib==0.9.2", "pillow", "sympy", "networkx"],
        log=Log(loss=r"TrainerMetrics.*'loss': ([-\d.]+|nan)", seconds=r"'execution_time': ([\d.]+)",
                teraflops=r"'tflops': ([\d.]+)"),
        values=Run(title="Llama of 2 layers, f32",
                   command=["{python}", str(HERE / "train_easydel.py"), "4", "{output}/saved"],
                   pod_variables={"MINIPOD_PLATFORM": "cpu"}, tolerance=2e-4),
        pod=[]),
]


# ---- levanter's tokenizer, text and configurations, which it would otherwise download ----

LEVANTER_WORDS = 512


def levanter_files(output: pathlib.Path) -> None:
  """A tokenizer of numbers, a text made of them, and the two configurations."""
  tokenizer = output / "tokenizer"
  tokenizer.mkdir(exist_ok=True)
  words = ["<unk>", "</s>", *(str(i) for i in range(LEVANTER_WORDS - 2))]
  (tokenizer / "tokenizer.json").write_text(json.dumps({
      "version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None,
      "pre_tokenizer": {"type": "WhitespaceSplit"}, "post_processor": None, "decoder": None,
      "model": {"type": "WordLevel", "vocab": {word: i for i, word in enumerate(words)},
                "unk_token": "<unk>"}}))
  (tokenizer / "tokenizer_config.json").write_text(json.dumps({
      "tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "</s>", "unk_token": "<unk>"}))
  numbers = random.Random(0)
  with open(output / "text.jsonl", "w") as file:
    for _ in range(64):
      text = " ".join(str(numbers.randrange(LEVANTER_WORDS - 2)) for _ in range(500))
      file.write(json.dumps({"text": text}) + "\n")
  tiny = {"max_seq_len": 128, "hidden_dim": 64, "intermediate_dim": 128, "num_layers": 2,
          "num_heads": 4, "num_kv_heads": 4}
  billion = {"max_seq_len": 2048, "hidden_dim": 2048, "intermediate_dim": 8192, "num_layers": 16,
             "num_heads": 32, "num_kv_heads": 8}
  for name, model, batch, precision in (("tiny", tiny, 8, "p=f32,c=f32"),
                                        ("1b", billion, 2048, "p=f32,c=bfloat16")):
    (output / f"{name}.json").write_text(json.dumps({
        "data": {"components": {"text": {"source": {"type": "url", "train_urls": [f"{output}/text.jsonl"]}}},
                 "cache_dir": f"{output}/cache", "tokenizer": str(tokenizer), "shuffle": False},
        "model": {"type": "llama", "tokenizer": str(tokenizer), **model},
        "trainer": {"tracker": {"type": "json_logger"}, "mp": precision, "train_batch_size": batch,
                    "num_train_steps": 6, "require_accelerator": False, "log_jaxprs": False,
                    "log_xla_hlo": False, "checkpointer": {"base_path": f"{output}/checkpoints"}},
        "optimizer": {"learning_rate": 1e-3}}))


# ---- Environments ----

def find_python(version: str) -> str:
  """A Python of that version: from PATH, or from pyenv."""
  candidates = [shutil.which(f"python{version}"), *sorted(glob.glob(
      os.path.expanduser(f"~/.pyenv/versions/{version}.*/bin/python{version}")))]
  for candidate in candidates:
    if candidate and subprocess.run([candidate, "-c", "import venv, ensurepip"],
                                    capture_output=True).returncode == 0:
      return candidate
  raise SystemExit(f"there is no Python {version} with venv and ensurepip, neither on PATH nor in ~/.pyenv")


def link_torch(site: pathlib.Path, torch: pathlib.Path) -> None:
  """Shares another environment's torch with this one: a wheel with CUDA is a gigabyte."""
  for name in ("torch", "torchgen", "functorch", "nvidia", *(p.name for p in torch.glob("torch-*.dist-info"))):
    if (torch / name).exists() and not (site / name).exists():
      (site / name).symlink_to(torch / name)


def make_environment(framework: Framework, folder: pathlib.Path, torch: pathlib.Path | None) -> pathlib.Path:
  """The folder of the environment's packages, with the framework from PyPI and this minipod."""
  venv = folder / framework.name / "venv"
  python, stamp = venv / "bin" / "python", venv / "requirements.sha256"
  wanted = hashlib.sha256(" ".join(framework.requirements).encode()).hexdigest()
  pip = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
  if not stamp.exists() or stamp.read_text() != wanted:
    print(f"{framework.name}: installing {' '.join(framework.requirements[:2])}", flush=True)
    subprocess.run([find_python(framework.python), "-m", "venv", "--clear", str(venv)], check=True)
    subprocess.run([*pip, *framework.requirements], check=True)
    stamp.write_text(wanted)
  subprocess.run([*pip, "--no-index", "--no-deps", "--force-reinstall", str(ROOT)], check=True)
  (site,) = (venv / "lib").glob("python3*/site-packages")
  if framework.needs_torch and torch is not None:
    link_torch(site, torch)
  return site


# ---- Runs ----

@dataclasses.dataclass
class Outcome:
  code: int
  wall: float  # of the process
  memory: int  # of the largest of the run's processes
  losses: list[float]
  seconds: list[float]  # from each step to the next, from the log
  timed: list[float]  # the part of them from which TFLOP/s are computed
  teraflops: list[float]  # per device
  report: "Report | None"
  words: str  # the end of its output


@dataclasses.dataclass
class Report:
  """The numbers that a time report has for the program that took most of the time."""
  program: str
  each: float  # seconds of a launch on the pod
  every: float  # from one launch to the next
  launches: int


UNITS = {"ps": 1e-12, "ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
EVERY = r"\n  launched every ([\d.]+) ([a-z]+), of which the host's own work is ([\d.]+) ([a-z]+) "
ROW = re.compile(r"^(\S+) +\d+ +(\d+) +[\d.]+ [a-z]+ +([\d.]+) ([a-z]+) ", re.MULTILINE)


def read_report(text: str) -> Report | None:
  """The first row of the table of programs: launches, time of a launch, and time between launches."""
  row = ROW.search(text)
  if row is None:
    return None
  every = re.search(rf"\n{re.escape(row.group(1))} on \d+ devices?{EVERY}", text)
  each = float(row.group(3)) * UNITS[row.group(4)]
  return Report(row.group(1), each, float(every.group(1)) * UNITS[every.group(2)] if every else each,
                int(row.group(2)))


def seconds_of_day(text: str) -> float:
  hours, minutes, seconds = text.split(":")
  return 3600 * int(hours) + 60 * int(minutes) + float(seconds)


def read_log(log: Log, text: str) -> tuple[list[float], list[float], list[float], list[float]]:
  """Losses, seconds from step to step, seconds from which TFLOP/s are computed, and TFLOP/s per device, for each step.
  """
  def all_of(pattern: str) -> list[float]:
    return [float(found) for found in re.findall(pattern, text, re.MULTILINE)] if pattern else []

  seconds = all_of(log.seconds)
  moments = [seconds_of_day(found) for found in re.findall(log.moment, text)] if log.moment else []
  seconds += [(after - before) % 86400 for before, after in zip(moments, moments[1:])]
  every = [sum(parts) for parts in zip(seconds, *map(all_of, log.seconds_between))]
  return all_of(log.loss), every, seconds, [value * log.device_scale for value in all_of(log.teraflops)]


def start_of(framework: Framework, folder: pathlib.Path, site: pathlib.Path,
             run: Run, more: list[str], variables: dict) -> tuple[list[str], dict, pathlib.Path]:
  """Command, environment and working folder of a run."""
  output = folder / framework.name / "output"
  output.mkdir(parents=True, exist_ok=True)
  binaries = site.parents[2] / "bin"
  names = {"python": str(binaries / "python"), "site": str(site), "output": str(output)}
  environment = {name: value for name, value in os.environ.items()
                 if not name.startswith(("MINIPOD_", "PYTHON", "JAX_", "XLA_"))}
  environment |= {"PATH": f"{binaries}:{os.environ['PATH']}", "TF_CPP_MIN_LOG_LEVEL": "3", **run.variables, **variables}
  fill = lambda text: re.sub(r"\{(\w+)\}", lambda name: names[name.group(1)], text)
  return ([fill(word) for word in [*run.command, *more]],
          {name: fill(value) for name, value in environment.items()}, output)


def execute(framework: Framework, folder: pathlib.Path, site: pathlib.Path, run: Run, name: str,
            more: list[str], variables: dict) -> Outcome:
  dump = folder / framework.name / f"dump-{name}"
  shutil.rmtree(dump, ignore_errors=True)
  if "MINIPOD_TIME" in {**run.variables, **variables}:
    variables = {**variables, "MINIPOD_DUMP": str(dump)}
  command, environment, output = start_of(framework, folder, site, run, more, variables)
  if framework.name == "levanter":
    levanter_files(output)
  for saved in ("checkpoints", "saved"):
    shutil.rmtree(output / saved, ignore_errors=True)
  begin = time.monotonic()
  log = folder / framework.name / f"{name}.log"
  code, memory = platforms.run(command, output, environment, log)
  text = log.read_text(errors="replace")
  # Without these variables it may have printed its own.
  reports = [path.read_text() for path in dump.glob("*.time.txt")] or [text]
  found = [report for report in map(read_report, reports) if report is not None]
  return Outcome(code, time.monotonic() - begin, memory,
                 *read_log(framework.log, text), max(found, key=lambda r: r.each, default=None),
                 text[-1500:])


# ---- Tables ----

def spread(left: list[float], right: list[float]) -> float:
  """The largest relative difference of two lists of losses; infinite if their lengths differ."""
  if len(left) != len(right) or not left:
    return float("inf")
  return max(abs(a - b) / max(abs(a), abs(b), 1e-30) for a, b in zip(left, right))


def compare_values(framework: Framework, folder: pathlib.Path, site: pathlib.Path) -> tuple[str, bool]:
  """A row of the first table: the same training on JAX's CPU and on minipod."""
  run = framework.values
  cpu = execute(framework, folder, site, run, "cpu", run.cpu_arguments, platforms.environment_of("cpu", DEVICES))
  ours = execute(framework, folder, site, run, "minipod", [],
                 {**platforms.environment_of("minipod", DEVICES), **run.pod_variables})
  apart = spread(cpu.losses, ours.losses)
  is_good = cpu.code == 0 and ours.code == 0 and apart <= run.tolerance
  for title, outcome in (("JAX's CPU", cpu), ("minipod", ours)):
    if outcome.code != 0:
      print(f"{framework.name} on {title} ended with {outcome.code}:\n{outcome.words}", flush=True)
  losses = lambda outcome: " ".join(f"{loss:.7g}" for loss in outcome.losses)
  return (f"| {framework.requirements[0].replace('==', ' ')} | {run.title} | {losses(cpu)} | {losses(ours)} | "
          f"{apart:.1e} | {cpu.wall:.0f} s | {ours.wall:.0f} s | {needed(run.pod_variables)} |", is_good)


def needed(variables: dict) -> str:
  return " ".join(f"`{name}={value}`" for name, value in variables.items()
                  if name.startswith("MINIPOD_")) or "nothing"


def run_on_pod(framework: Framework, folder: pathlib.Path, site: pathlib.Path,
               number: int) -> tuple[str, bool]:
  """A row of the second table: the log compared with the time report."""
  run = framework.pod[number]
  outcome = execute(framework, folder, site, run, f"pod{number}", [], {"JAX_PLATFORMS": "minipod"})
  # The last line often also includes work at the end of the training.
  logged, timed, flops = (statistics.median(values[WARM_STEPS:-1] or [float("nan")])
                          for values in (outcome.seconds, outcome.timed, outcome.teraflops))
  step = outcome.report.every if outcome.report else float("nan")
  is_good = outcome.code == 0 and abs(logged - step) <= SPEED_TOLERANCE * step
  if outcome.code != 0:
    print(f"{framework.name}, {run.title}, ended with {outcome.code}:\n{outcome.words}", flush=True)
  return (f"| {framework.requirements[0].replace('==', ' ')} | {run.title} | "
          f"`{run.variables['MINIPOD_TOPOLOGY']}` | {logged:.3f} s | {step:.3f} s | "
          f"{100 * (logged / step - 1):+.1f} % | {flops:.1f} | {flops * timed / step:.1f} | "
          f"{outcome.wall:.0f} s | {outcome.memory / 2**30:.1f} GiB |", is_good)


VALUES_HEAD = ("| framework | training | losses on JAX's CPU | losses on minipod | apart | CPU | minipod | needs |\n"
               "|---|---|---|---|---|---|---|---|")
POD_HEAD = ("| framework | configuration | pod | step, log | step, report | log to report | TFLOP/s a device, log | "
            "by the report | whole run | memory |\n|---|---|---|---|---|---|---|---|---|---|")


def run_all(names: list[str], folder: pathlib.Path, part: str | None, torch: pathlib.Path | None) -> int:
  """Runs the frameworks of these names, or all; the exit code is 1 if a run failed or its losses or times differ."""
  torch = torch or next(iter((ROOT / ".venv-torch" / "lib").glob("python3*/site-packages")), None)
  values, pods, is_good = [], [], True
  for framework in [each for each in FRAMEWORKS if not names or each.name in names]:
    if framework.needs_torch and torch is None:
      print(f"{framework.name} is left out: it imports torch (tools/test --torch, or --torch DIR)")
      continue
    site = make_environment(framework, folder.resolve(), torch)
    runs = [(values, compare_values, ())] if part != "pod" else []
    runs += [(pods, run_on_pod, (number,)) for number in range(len(framework.pod)) if part != "values"]
    for rows, execute_one, which in runs:
      row, is_right = execute_one(framework, folder.resolve(), site, *which)
      rows.append(row)
      is_good &= is_right
      print(row, flush=True)
  for head, rows in ((VALUES_HEAD, values), (POD_HEAD, pods)):
    if rows:
      print("\n".join(["", head, *rows]))
  return 0 if is_good else 1

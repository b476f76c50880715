"""`minipod run`: starts a script as several processes that share one pod."""

import argparse
import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

from minipod import command
from minipod.command import arguments
from minipod.command import installation

ABOUT = """Starts a script as several processes that share one pod.

Uses mpirun if it is installed; otherwise starts the processes on this host, which then find each
other by jax.distributed, or by the variables of TPU hosts and torchrun, which it sets.  Each output
line begins with the number of its process.  If a process fails, the command ends the others and
exits with the code of the failed one."""
# How long the others have, from the first failure on, to say what they have to say and to end.
GRACE_SECONDS = 5.0
# How the variables begin that processes on other hosts get, too.
_CARRIED = ("MINIPOD_", "JAX_", "XLA_", "PJRT_", "PYTHON")
# Of the addresses of processes that do not exist.
_FIRST_PORT = 8476
# What mpirun puts before each line with --tag-output: [job,rank]<stream>:
_TAG = re.compile(rb"\[\d+,(\d+)\]<\w+>:")


def _parser() -> argparse.ArgumentParser:
  parser = arguments.parser("run", ABOUT)
  parser.add_argument("-n", "--processes", type=int, default=2, metavar="N", help="number of processes; default: 2")
  parser.add_argument("--pod", help="the whole pod, divided among the processes (MINIPOD_TOPOLOGY)")
  parser.add_argument("--devices", type=int, help="devices of each process (MINIPOD_DEVICES)")
  parser.add_argument("--hosts", help="hosts for mpirun, a,b or a file; one process per slot")
  parser.add_argument("--launcher", choices=("auto", "mpirun", "plain"), default="auto",
                      help="plain: start the processes on this host, without mpirun; auto (the default): use mpirun if it is installed")
  parser.add_argument("--only", type=int, metavar="RANK",
                      help="start only this process, which stands for all: the others count as equal to it (MINIPOD_BOOTSTRAP=absent;"
                      " needs MINIPOD_VALUES=shapes)")
  parser.add_argument("--no-prefix", action="store_true", help="print lines without the number of their process")
  parser.add_argument("command", nargs=argparse.REMAINDER, metavar="script.py ...",
                      help="a script (or -m MODULE) for this Python, or another command")
  return parser


def _environment(asked: argparse.Namespace) -> dict[str, str]:
  env = {**os.environ, "PYTHONUNBUFFERED": "1"}
  if asked.pod:
    env["MINIPOD_TOPOLOGY"] = asked.pod
    env.pop("MINIPOD_DEVICES", None)
  if asked.devices:
    env["MINIPOD_DEVICES"] = str(asked.devices)
  if asked.only is not None:
    env["MINIPOD_BOOTSTRAP"] = "absent"
  return env


class _Printer:
  """Copies lines of processes to our own streams, whole."""

  def __init__(self, has_prefix: bool):
    self._lock = threading.Lock()
    self._has_prefix = has_prefix
    self._threads: list[threading.Thread] = []

  def follow(self, stream, target, rank: int | None) -> None:
    thread = threading.Thread(target=self._copy, args=(stream, target, rank), daemon=True)
    thread.start()
    self._threads.append(thread)

  def wait(self, seconds: float) -> None:
    end = time.monotonic() + seconds
    for thread in self._threads:
      thread.join(max(0.0, end - time.monotonic()))

  def _copy(self, stream, target, rank: int | None) -> None:
    """Whole lines; mpirun puts its tags before each piece of one, and mixes those of processes."""
    begun: dict[int | None, bytes] = {}
    for line in iter(stream.readline, b""):
      words = _TAG.split(line)  # text, rank, text, rank, text, ...
      pieces = [(rank, words[0]), *((int(tag), text) for tag, text in zip(words[1::2], words[2::2]))]
      for at, piece in pieces:
        # The newline behind a piece is that of the line, which was the last process's.
        begun[at] = begun.get(at, b"") + piece
        if begun[at].endswith(b"\n"):
          self._write(target, at, begun.pop(at))
    for at, piece in begun.items():
      if piece:
        self._write(target, at, piece + b"\n")

  def _write(self, target, rank: int | None, line: bytes) -> None:
    prefix = f"[{rank}] ".encode() if self._has_prefix and rank is not None else b""
    with self._lock:
      target.buffer.write(prefix + line)
      target.flush()


def _code(returned: int) -> int:
  """The status as in shells: a signal is 128 and its number."""
  return returned if returned >= 0 else 128 - returned


def _run_mpi(asked: argparse.Namespace, words: list[str], printer: _Printer) -> int:
  env = _environment(asked)
  flags = ["--bind-to", "none", "--oversubscribe", "--tag-output", "-n", str(asked.processes)]
  if os.geteuid() == 0:
    flags.append("--allow-run-as-root")
  if asked.hosts:
    flags += ["--hostfile" if os.path.isfile(asked.hosts) else "--host", asked.hosts]
    # On other hosts mpirun sets none of the variables that are set here, unless -x lists them.
    for name in sorted(env):
      if name.startswith(_CARRIED):
        flags += ["-x", name]
  with subprocess.Popen(["mpirun", *flags, *words], env=env, stdin=subprocess.DEVNULL,
                        stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
    printer.follow(process.stdout, sys.stdout, None)
    printer.follow(process.stderr, sys.stderr, None)
    try:
      code = process.wait()
    except KeyboardInterrupt:  # mpirun has heard it, too
      code = process.wait()
    printer.wait(GRACE_SECONDS)
  return _code(code)


def _free_ports(count: int) -> list[int]:
  """Different ones: the system may give a port again as soon as it is closed."""
  with contextlib.ExitStack() as held:
    probes = [held.enter_context(socket.socket()) for _ in range(count)]
    for probe in probes:
      probe.bind(("127.0.0.1", 0))
    return [probe.getsockname()[1] for probe in probes]


def _place(ports: list[int], rank: int) -> dict[str, str]:
  """The variables that TPU hosts and torchrun give a process, for frameworks that find each other by them."""
  count = len(ports) - 1
  addresses = [f"localhost:{port}" for port in ports[:count]]
  return {"TPU_PROCESS_ADDRESSES": ",".join(addresses), "TPU_PROCESS_PORT": str(ports[rank]),
          "CLOUD_TPU_TASK_ID": str(rank), "TPU_WORKER_ID": str(rank), "RANK": str(rank), "WORLD_SIZE": str(count),
          "LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": str(count), "MASTER_ADDR": "localhost",
          "MASTER_PORT": str(ports[count])}


def _run_only(asked: argparse.Namespace, words: list[str]) -> int:
  """Runs one process in the place of this one; nothing listens on the ports."""
  ports = range(_FIRST_PORT, _FIRST_PORT + asked.processes + 1)
  env = {"TF_CPP_MIN_LOG_LEVEL": "2", **_environment(asked), **_place(list(ports), asked.only)}
  os.execvpe(words[0], words, env)


def _start_plain(asked: argparse.Namespace, words: list[str], printer: _Printer, pipe: int):
  """The processes, each of which joins the others when it imports JAX or uses a TPU of PyTorch (member.py).

  A process writes to the pipe when its script fails.
  """
  if words[0] != sys.executable:
    raise ValueError("without mpirun it has to be a Python script: the processes meet in Python")
  port_of_jax, *ports = _free_ports(asked.processes + 2)
  processes = []
  for rank in range(asked.processes):
    # JAX warns when the first process, which has its service, ends first.
    env = {"TF_CPP_MIN_LOG_LEVEL": "2", **_environment(asked), **_place(ports, rank), "MINIPOD_BOOTSTRAP": "kv"}
    if asked.processes == 1:  # there are no others to find
      env["MINIPOD_BOOTSTRAP"] = "auto"
    process = subprocess.Popen(
        [sys.executable, "-m", "minipod.command.member", f"127.0.0.1:{port_of_jax}", str(asked.processes), str(rank),
         str(pipe), *words[1:]], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, pass_fds=[pipe])
    printer.follow(process.stdout, sys.stdout, rank)
    printer.follow(process.stderr, sys.stderr, rank)
    processes.append(process)
  return processes


def _end(processes) -> None:
  for sign in (signal.SIGTERM, signal.SIGKILL):
    for process in processes:
      if process.poll() is None:
        process.send_signal(sign)
    end = time.monotonic() + 2
    while time.monotonic() < end and any(process.poll() is None for process in processes):
      time.sleep(0.02)


def _first_failure(processes, told: bytes) -> tuple[int, int] | None:
  """The process that has failed first, and its exit code; None: none has.

  One that a signal has ended has told nothing; what others tell then is what follows from that.
  """
  ended = [(rank, process.returncode) for rank, process in enumerate(processes) if process.returncode]
  for rank, code in ended:
    if code < 0:
      return rank, _code(code)
  if told:
    rank, code = map(int, told.split()[:2])
    return rank, code
  return ended[0] if ended else None


def _run_plain(asked: argparse.Namespace, words: list[str], printer: _Printer) -> int:
  reading, writing = os.pipe()
  os.set_blocking(reading, False)
  try:
    return _watch_plain(_start_plain(asked, words, printer, writing), printer, reading)
  finally:
    os.close(reading)
    os.close(writing)


def _watch_plain(processes, printer: _Printer, pipe: int) -> int:
  first, deadline, told = None, None, b""

  def look() -> tuple[int, int] | None:
    nonlocal told
    with contextlib.suppress(BlockingIOError):
      told += os.read(pipe, 4096)
    return _first_failure(processes, told)

  try:
    # All are asked each time, so that the first that fails is seen first.
    while None in [process.poll() for process in processes]:
      if deadline is None:
        first = look()
        if first is not None:
          deadline = time.monotonic() + GRACE_SECONDS
          print(f"minipod run: process {first[0]} has ended with exit code {first[1]}", file=sys.stderr)
      elif time.monotonic() > deadline:
        break
      time.sleep(0.02)
  except KeyboardInterrupt:
    first = 0, _code(-signal.SIGINT)
  finally:
    _end(processes)
    printer.wait(GRACE_SECONDS)
  if first is None:
    first = look()
  return 0 if first is None else first[1]


def main(words: list[str]) -> int:
  parser = _parser()
  asked = parser.parse_args(words)
  rest = arguments.words(parser, asked.command, "script")
  if asked.processes < 1:
    parser.error(f"-n {asked.processes}: at least one process")
  if asked.only is not None and not 0 <= asked.only < asked.processes:
    parser.error(f"--only {asked.only}: the processes are 0 to {asked.processes - 1}")
  launcher = "plain" if asked.only is not None else asked.launcher
  has_mpi, why = installation.mpi()
  if launcher == "auto":
    launcher = "mpirun" if has_mpi else "plain"
  if launcher == "mpirun" and not has_mpi:
    return command.complain("run", f"mpirun cannot be used: {why} (apt install openmpi-bin)")
  if launcher == "plain" and asked.hosts:
    return command.complain("run", "--hosts needs mpirun (apt install openmpi-bin)")
  if not shutil.which(arguments.as_command(rest)[0]):
    return command.complain("run", f"there is no command '{rest[0]}'")
  if rest[0].endswith(".py") and not os.path.isfile(rest[0]):
    return command.complain("run", f"there is no script '{rest[0]}'")
  if asked.only is not None:
    return _run_only(asked, arguments.as_command(rest))
  start = _run_mpi if launcher == "mpirun" else _run_plain
  try:
    return start(asked, arguments.as_command(rest), _Printer(not asked.no_prefix))
  except ValueError as error:
    return command.complain("run", str(error))

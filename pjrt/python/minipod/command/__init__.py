"""The command `minipod`: a verb and its arguments.

The library implements the verbs about pods, networks and programs (pjrt/command/).  The verbs that start processes or
inspect the installation are modules of this package, each with `main(arguments) -> exit code`.

Exit codes: 0 success; 1 failed; 2 usage error.
"""

import ctypes
import difflib
import importlib
import os
import subprocess
import sys

import minipod

# In the order of the help, with the implementation: the library, or a module of this package.
LIBRARY = None
VERBS: dict[str, tuple[str | None, str]] = {
    "topo": (LIBRARY, "print or draw the pod that this machine, a line or a file describes"),
    "network": (LIBRARY, "print how long a collective takes on a pod, by algorithm"),
    "info": ("info", "print versions, the pod, and every option with the source of its value"),
    "doctor": ("doctor", "print what is missing or wrong in the installation, and how to fix it"),
    "top": ("top", "show, repeatedly, what the devices of running processes are doing"),
    "run": ("run", "start a script as several processes that share one pod"),
    "sweep": ("sweep", "run a script on several pods and print a table of times"),
    "report": ("report", "print the time report of a run, or compare two runs"),
    "loads": ("loads", "print how busy each link was, from the timeline of a run"),
    "step": ("step", "draw a step, from the timeline of a run"),
    "opt": (LIBRARY, "verify and print a StableHLO program, or propagate its shardings"),
    "partition": (LIBRARY, "print the program of one device, and its communication"),
    "chip": (LIBRARY, "print programs as a described chip runs them: kernels, times, memory"),
    "exec": (LIBRARY, "run a StableHLO program; print, write or compare its results"),
    "options": (LIBRARY, "print the table of options as JSON"),
    "man": ("man", "print the manual page"),
    "completion": ("completion", "print a completion script for a shell"),
}


def _usage() -> str:
  lines = ["usage: minipod VERB [ARGUMENT ...]", "", "Simulates a pod of TPUs or GPUs on this machine.", ""]
  lines += [f"  {verb:10} {about}" for verb, (_, about) in VERBS.items()]
  lines += ["", "minipod VERB --help lists the arguments of a verb; minipod --version."]
  return "\n".join(lines)


def call_library(verb: str, arguments: list[str]) -> int:
  """Runs a verb of the library, which prints to the standard output by itself."""
  library = ctypes.CDLL(minipod.library_path())
  words = [os.fsencode(word) for word in (f"minipod {verb}", *arguments)]
  sys.stdout.flush()
  return library.minipod_command(verb.encode(), len(words),
                                 (ctypes.c_char_p * (len(words) + 1))(*words, None))


def _topo(words: list[str]) -> int:
  """Runs a verb of the library; `topo --loads` may get a timeline."""
  from minipod.command import loads

  try:
    with loads.prepared(words) as prepared:
      return call_library("topo", prepared)
  except ValueError as error:
    return complain("topo", str(error))


def ask_library(verb: str, *arguments: str) -> subprocess.CompletedProcess:
  """Runs a verb in a process of its own, and returns its output."""
  return subprocess.run([sys.executable, "-m", "minipod", verb, *arguments], capture_output=True,
                        text=True)


def complain(verb: str, message: str, code: int = 1) -> int:
  print(f"minipod {verb}: {message}", file=sys.stderr)
  return code


def main(arguments: list[str] | None = None) -> int:
  """Runs the command; the arguments of the process by default."""
  verb, *rest = (sys.argv[1:] if arguments is None else arguments) or ["--help"]
  if verb in ("-h", "--help", "help"):
    print(_usage())
    return 0
  if verb == "--version":
    print(f"minipod {minipod.__version__}")
    return 0
  if verb not in VERBS:
    near = difflib.get_close_matches(verb, VERBS, 1)
    hint = f"did you mean '{near[0]}'?" if near else "`minipod --help` lists them"
    print(f"minipod: there is no verb '{verb}': {hint}", file=sys.stderr)
    return 2
  module = VERBS[verb][0]
  try:
    if verb == "topo":
      return _topo(rest)
    if module is LIBRARY:
      return call_library(verb, rest)
    return importlib.import_module(f"minipod.command.{module}").main(rest)
  except BrokenPipeError:  # `minipod topo | head`
    return 1
  except OSError as error:
    known = error.filename and error.strerror
    return complain(verb, f"cannot open '{error.filename}': {error.strerror}" if known else str(error))
  except KeyboardInterrupt:
    return 130

"""`minipod man`: the help of all verbs as a manual page."""

import minipod
from minipod import command
from minipod.command import arguments
from minipod.command import completion


def _roff(text: str) -> str:
  """Lines as they are, in a manual page."""
  quoted = text.replace("\\", "\\e").replace("-", "\\-")
  return "\n".join("\\&" + line if line[:1] in (".", "'") else line for line in quoted.splitlines())


def manual(texts: dict[str, str]) -> str:
  """The manual page minipod(1)."""
  parts = [f'.TH MINIPOD 1 "" "minipod {minipod.__version__}" "User commands"',
           ".SH NAME", "minipod \\- simulates a pod of TPUs or GPUs on this machine",
           ".SH SYNOPSIS", ".B minipod", "VERB [ARGUMENT ...]", ".SH VERBS"]
  for verb, (_, about) in command.VERBS.items():
    parts += [".SS " + verb, _roff(about) + ".", ".PP", ".nf", _roff(texts[verb]), ".fi"]
  parts += [".SH EXIT STATUS", "0: success; 1: failed; 2: usage error.",
            ".SH ENVIRONMENT", "MINIPOD_... variables: minipod info lists all of them with their values."]
  return "\n".join(parts) + "\n"


def main(words: list[str]) -> int:
  arguments.parser("man", "Prints the manual page of all verbs: minipod man | man -l -").parse_args(words)
  print(manual(completion.helps()), end="")
  return 0

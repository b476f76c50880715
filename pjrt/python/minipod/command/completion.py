"""`minipod completion`: verbs and options for shells, from the help of all verbs."""

import re

from minipod import command
from minipod.command import arguments

_BASH = """\
# minipod for bash: `minipod completion bash > ~/.local/share/bash-completion/completions/minipod`
_minipod() {{
  local word=${{COMP_WORDS[COMP_CWORD]}}
  if [ "$COMP_CWORD" = 1 ]; then
    COMPREPLY=($(compgen -W "{verbs} --help --version" -- "$word"))
    return
  fi
  case ${{COMP_WORDS[1]}} in
{cases}
  esac
}}
complete -o default -F _minipod minipod
"""
_ZSH = "#compdef minipod\nautoload -U +X bashcompinit && bashcompinit\n"


def helps() -> dict[str, str]:
  """The output of `minipod VERB --help`, for each verb."""
  return {verb: command.ask_library(verb, "--help").stdout for verb in command.VERBS}


def options(text: str) -> list[str]:
  """The long options in a help text, in its order, and --help."""
  return list(dict.fromkeys([*re.findall(r"(?<![\w-])--[a-z][a-z-]*", text), "--help"]))


def completion(shell: str, texts: dict[str, str]) -> str:
  if shell == "fish":
    lines = ["# minipod for fish: `minipod completion fish > ~/.config/fish/completions/minipod.fish`"]
    for verb, (_, about) in command.VERBS.items():
      lines.append(f"complete -c minipod -n __fish_use_subcommand -f -a {verb} -d '{about}'")
      lines += [f"complete -c minipod -n '__fish_seen_subcommand_from {verb}' -l {option[2:]}"
                for option in options(texts[verb])]
    return "\n".join(lines) + "\n"
  cases = "\n".join(f'    {verb}) COMPREPLY=($(compgen -W "{" ".join(options(text))}" -- "$word")) ;;'
                    for verb, text in texts.items())
  script = _BASH.format(verbs=" ".join(command.VERBS), cases=cases)
  return _ZSH + script if shell == "zsh" else script


def main(words: list[str]) -> int:
  parser = arguments.parser("completion", "Prints a completion script: source it, or save it where its first line says.")
  parser.add_argument("shell", choices=("bash", "zsh", "fish"))
  print(completion(parser.parse_args(words).shell, helps()), end="")
  return 0

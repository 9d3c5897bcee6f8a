"""Completion in a shell: a script for bash, zsh or fish, made from the parser itself.

The script knows the commands, their options and the choices of these; everything else completes as
a file. It calls nothing, so that a press of the tab key takes no time.
"""

from __future__ import annotations

import argparse
import shlex
from typing import NamedTuple

BASH = """\
# fitbo completion bash: in ~/.bashrc  source <(fitbo completion bash)
_fitbo() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} command= words= i
  for ((i = 1; i < COMP_CWORD; i++)); do
    case ${{COMP_WORDS[i]}} in -*) ;; *) command=${{COMP_WORDS[i]}}; break ;; esac
  done
  case "$command $before" in
{values}
  esac
  if [[ -z $words ]]; then
    case $command in
{commands}
    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "$word"))
  if [[ ${{#COMPREPLY[@]}} -eq 0 && $word != -* ]]; then
    COMPREPLY=($(compgen -f -- "$word"))
  fi
}}
complete -o filenames -F _fitbo fitbo
"""
ZSH = """\
#compdef fitbo
# fitbo completion zsh: in ~/.zshrc, after compinit,  source <(fitbo completion zsh)
autoload -Uz bashcompinit && bashcompinit
"""


class Command(NamedTuple):
    """What can follow a command's name."""

    name: str
    about: str
    options: list[str]
    choices: list[str]  # of its arguments
    values: dict[str, list[str]]  # choices of an option


def script(parser: argparse.ArgumentParser, shell: str) -> str:
    """The script of a shell."""
    top, commands = _described(parser)
    if shell == "fish":
        return _fish(top, commands)
    bash = _bash(top, commands)
    return bash if shell == "bash" else ZSH + bash


def _described(parser: argparse.ArgumentParser) -> tuple[Command, list[Command]]:
    """The program's own options, and its commands."""
    found: list[Command] = []
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            helps = {each.dest: each.help or "" for each in action._choices_actions}
            found += [_command(name, helps[name], each) for name, each in action.choices.items()]
    return _command("", "", parser), found


def _command(name: str, about: str, parser: argparse.ArgumentParser) -> Command:
    options, choices, values = list[str](), list[str](), dict[str, list[str]]()
    for action in parser._actions:
        listed = [] if isinstance(action, argparse._SubParsersAction) else action.choices or []
        if not action.option_strings:
            choices += map(str, listed)
        options += [option for option in action.option_strings if option.startswith("--")]
        if listed:
            values |= {option: list(map(str, listed)) for option in action.option_strings}
    return Command(name, about, options, choices, values)


def _bash(top: Command, commands: list[Command]) -> str:
    after = [
        f'    "{command.name} {option}") words="{" ".join(choices)}" ;;'
        for command in commands
        for option, choices in command.values.items()
    ]
    names = " ".join([*(command.name for command in commands), *top.options])
    lines = [f'      "") words="{names}" ;;']
    lines += [f'      {c.name}) words="{" ".join(c.choices + c.options)}" ;;' for c in commands]
    return BASH.format(values="\n".join(after), commands="\n".join(lines))


def _fish(top: Command, commands: list[Command]) -> str:
    lines = ["# fitbo completion fish: in config.fish  fitbo completion fish | source"]
    for option in top.options:
        lines.append(f"complete -c fitbo -n __fish_use_subcommand -l {option[2:]}")
    for command in commands:
        about = shlex.quote(command.about)
        lines.append(f"complete -c fitbo -n __fish_use_subcommand -f -a {command.name} -d {about}")
        here = f"complete -c fitbo -n '__fish_seen_subcommand_from {command.name}'"
        for option in command.options:
            choices = command.values.get(option)
            more = f" -x -a {shlex.quote(' '.join(choices))}" if choices else ""
            lines.append(f"{here} -l {option[2:]}{more}")
        if command.choices:
            lines.append(f"{here} -a {shlex.quote(' '.join(command.choices))}")
    return "\n".join(lines) + "\n"

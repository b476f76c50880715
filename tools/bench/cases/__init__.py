"""The cases of the table: a module per section, each with its list CASES."""

import importlib

SECTIONS = ("elementwise", "reductions", "movement", "matmul", "convolution", "linalg", "loops",
            "random", "models", "simulations", "collectives", "dispatch", "compiling", "memory")


def load(sections=SECTIONS, text=""):
  """Section/name of every requested case, in order, and the case."""
  chosen = {}
  for section in sections:
    for case in importlib.import_module(f"cases.{section}").CASES:
      name = f"{section}/{case.name}"
      assert name not in chosen, f"two cases are called {name}"
      if text in name:
        chosen[name] = case
  return chosen

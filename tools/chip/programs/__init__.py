"""The corpus of programs: a module for each class, each of which adds its programs when it is imported."""

import importlib

from .program import PROGRAMS

MODULES = ("matmul", "elementwise", "reduction", "norm", "attention", "lookup", "sort", "layout", "conv", "linalg",
           "randoms", "loss", "optimizer", "model", "moe", "decode", "loop", "stencil", "recurrence",
           "sharded")
for module in MODULES:
  importlib.import_module(f".{module}", __name__)

__all__ = ["PROGRAMS"]

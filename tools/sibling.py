"""A tool of this folder as a module, for another that wants what it knows: tools have no suffix, by which Python would find them."""

import importlib.machinery
import importlib.util
import sys
from pathlib import Path

TOOLS = Path(__file__).resolve().parent


def sibling(name):
    loader = importlib.machinery.SourceFileLoader(name, str(TOOLS / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    sys.modules[name] = module  # where its data classes look for it
    loader.exec_module(module)
    return module

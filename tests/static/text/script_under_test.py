# SPDX-License-Identifier: Apache-2.0
"""Loads a script of scripts/, which has no .py in its name, as a module for its self-test."""
import importlib.machinery
import importlib.util
import sys


def load():
    """Returns the script that the first argument names, and removes the argument."""
    sys.dont_write_bytecode = True
    loader = importlib.machinery.SourceFileLoader("script_under_test", sys.argv.pop(1))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    script = importlib.util.module_from_spec(spec)
    loader.exec_module(script)
    return script

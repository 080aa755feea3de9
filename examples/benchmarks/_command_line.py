"""Scripts called with positional arguments."""

from __future__ import annotations

import argparse
import inspect
import sys
from collections.abc import Callable
from typing import Any


def run_main(main: Callable[..., Any]) -> None:
    """Call a function with the arguments of the command line, each as the type of its default."""
    text = sys.modules[main.__module__].__doc__
    kind = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=text, formatter_class=kind)
    given: list[Any] = []
    for name, parameter in inspect.signature(main).parameters.items():
        if parameter.kind is parameter.VAR_POSITIONAL:
            parser.add_argument(name, nargs="*")
        else:
            default = parameter.default
            parser.add_argument(name, nargs="?", type=type(default), default=default)
    for value in vars(parser.parse_args()).values():
        given += value if isinstance(value, list) else [value]
    main(*given)

"""The command line: fit a model to files of any size, predict, draw, add rows and take them away again.

A command is a function from its arguments to a ``Result``, which is printed as text or as JSON by ``entry`` alone.
Nothing heavy is imported before a command runs: ``vff --help`` answers at once.
"""

from vff.cli.entry import main

__all__ = ["main"]

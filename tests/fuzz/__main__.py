"""``python tests/fuzz --seconds 600``, or one case again: ``python tests/fuzz --kind gaussian --seed 17``."""

import sys
from importlib import import_module
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).parents[1])  # so that this folder is the package ``fuzz``
    sys.exit(import_module("fuzz.runner").main())

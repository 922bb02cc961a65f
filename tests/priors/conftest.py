"""Lets the tests of this folder use the law suites."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

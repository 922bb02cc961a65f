"""The picture of docs/areas.md, from the first map of experiments/disease_map.py: python docs/images/areas.py."""

import io
import sys
from pathlib import Path

from PIL import Image

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "experiments"))

from _common import Run  # noqa: E402
from disease_map import one_map, picture  # noqa: E402

_, land, answers = one_map(Run("areas", quick=False, folder=HERE), 0, 600)
drawn = io.BytesIO()
picture(land, answers).savefig(drawn, dpi=110)
Image.open(drawn).convert("RGB").quantize(255, method=Image.Quantize.FASTOCTREE).save(HERE / "areas.png", optimize=True)

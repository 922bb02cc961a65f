"""The kinds of factors there are: a folder of ``vff.factors`` each, and what users write for them. One line per kind.

Nothing is imported here: ``import vff`` costs nothing, and names can be listed before anything is loaded.
"""

FACTORS = {
    "levels": ("Categorical",),
    "interval": ("Matern12", "Matern32", "Matern52", "Matern72", "Matern92"),
    "blurred": (),
    "circle": ("Periodic",),
    "oscillator": ("Oscillator",),
    "graph": ("Areas", "Ordered"),
    "trend": ("Trend",),
    "sphere": ("Sphere",),
    "line": ("Linear",),
    "missing": (),
}

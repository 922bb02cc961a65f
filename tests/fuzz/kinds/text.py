"""Hostile text and values: to ``parse_kernel``, as names of columns, as options, as arguments of predictions."""

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import vff
from fuzz.findings import Finding, Outcome, accident, is_refusal, is_sentence
from fuzz.kinds.base import Effort, Kind, generator
from fuzz.programs import IMPORTS, used_imports
from fuzz.tables import Rng, chance, one_of

_NAME = "text"
_SHORT_CHAINS = {"draws": 2, "warmup": 2, "chains": 1}
_LONGEST = 10.0  # seconds for a text of any kind

PIECES = (
    *("Matern32", "Matern12", "Matern92", "Categorical", "Sum", "lambda", "__import__", "os.system", "eval"),
    *(
        "(",
        ")",
        "((",
        "))",
        "+",
        "*",
        ",",
        "=",
        "'x'",
        '"y"',
        "`z`",
        "0",
        "-1",
        "1e999",
        "1e-999",
        "nan",
        "inf",
        "0x10",
    ),
    *("lengthscale", "variance", "lengthscale=2", "variance=1e308", "\\", "\\x", "\\N{DASH}", "\n", "\t", "\0", " "),
    *("ünï", "中文", "\u202e", "\ud7ff", "🦔", "'", '"', "#", ";", "__class__", "9" * 400, "1_0", "١"),
)
FORMULAS = (
    "s(x) + te(x, z) + (1 | g) + cc(z, 365.25)",
    "y ~ 1 + s(x, by=g, lengthscale=2) + (0 + z | g)",
    "(1 + x | g) + (x || g) * s(z) + .",
    "s(x, g, bs='fs') + s(g, bs='re') + ti(x, z, bs='cr')",
    "Matern52(x, lengthscale=2) * cat(z) + smooth(x, 5/2):g",
)
"""Over x, z and g, to be bent."""
FORMULA_PIECES = (
    *("s(", "te(", "(1 | g)", "|", "||", "~", "offset(z)", "by=z", "bs='cc'", "k=5", "fixed(2)", "between(1, 2)", "."),
    *("x", "g", "z", ":", "/", "-", "^", "[", "{", "1", "0 +", "log(x)", "w", "`x`"),
)
NAMES = (
    *(
        "x",
        "",
        " ",
        "a b",
        "a+b",
        "a * b",
        "'",
        '"',
        "\\",
        "\n",
        "\t",
        "ünï",
        "中文",
        "🦔",
        "\u202e",
        "0",
        "-1",
        "y",
        "w",
    ),
    *("lambda", "None", "x" * 300, "x__lengthscale", "()", "a, b", "\0", "{}", "%s", "$(ls)", "noise_variance"),
)
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 3, 10**30, -(2**63), 0.5, -0.0, 1e-308, 1e308, float("nan"), float("inf")),
    *("", "auto", "nonsense", "x" * 10_000, b"bytes", (), (1,), (0.0, 1.0), (1.0, 0.0), (0.0, float("nan")), [], [3]),
    *({}, {"x": 3}, {"nonsense": 3}, {0: 3}, {0: (0.0, 1.0)}, {None: None}, {0: "auto"}, {0: -1}, object(), 1 + 2j),
    *(np.float32(2.0), np.int64(4), np.array(3), np.array([1.0, 2.0]), np.nan, range(3), {1, 2}, lambda: 3),
)
OPTIONS = (
    *("kernel", "likelihood", "noise_variance", "frequencies", "domain", "edges", "engine", "optimizer", "normalize_y"),
    *("batch_size", "covariance", "inference", "draws", "warmup", "chains", "sampler", "priors", "random_state"),
)
CALLS = (
    *("predict_quantiles(X, {})", "predict_quantiles({})", "predict({})", "predict_f({})", "effects({})"),
    *("sample_f(X, n_samples={})", "sample_y(X, n_samples={})", "sample_f(X, random_state={})"),
    *("predict_derivative(X, column={})", "log_predictive_density(X, {})", "fit(X, {})", "fit({}, y)"),
    *("fit(X, y, sample_weight={})", "partial_fit(X, {})", "forget(X, {})", "set_params(frequencies={}).fit(X, y)"),
)
BASE = (
    "rng = np.random.default_rng(0)\nX = rng.uniform(size=(12, 1))\ny = np.sin(5 * X[:, 0]) + 0.1 * rng.normal(size=12)"
)


def random_text(rng: Rng) -> str:
    """Pieces of kernels and of other things; now and then a very long or very deep text."""
    way = one_of(rng, ["pieces", "pieces", "pieces", "bent", "bent", "deep", "long"])
    if way == "deep":
        depth = int(rng.integers(1, 50_000))
        return "(" * depth + one_of(rng, ["Matern32(0)", "", "x"]) + ")" * (depth - int(rng.integers(0, 2)))
    if way == "long":
        joint, leaf = one_of(rng, [" + ", " * ", "+", ","]), one_of(rng, ["Matern32(0)", "Categorical('c')", "x", "("])
        return joint.join([leaf] * int(100_000 // (len(leaf) + len(joint))))
    if way == "bent":
        text = list("(Matern32('x', lengthscale=2.5) + Matern12(3)) * Categorical('group', variance=1e-3)")
        for _ in range(int(rng.integers(1, 4))):
            place = int(rng.integers(len(text)))
            text[place : place + int(rng.integers(0, 3))] = one_of(rng, PIECES)
        return "".join(text)
    return "".join(one_of(rng, PIECES) for _ in range(int(rng.integers(0, 30))))


def parse_program(rng: Rng) -> str:
    text = random_text(rng)
    return f"kernel = parse_kernel({text!r})\nassert parse_kernel(repr(kernel)) is not None"


def formula_program(rng: Rng) -> str:
    """A formula with something wrong in it is refused in a sentence, or fitted."""
    text = list(one_of(rng, FORMULAS))
    for _ in range(int(rng.integers(0, 4))):
        place = int(rng.integers(len(text) + 1))
        text[place : place + int(rng.integers(0, 4))] = one_of(rng, [*FORMULA_PIECES, *PIECES, ""])
    written_so = "".join(text)
    return (
        f"{BASE}\nframe = pd.DataFrame({{'x': X[:, 0], 'z': rng.uniform(size=12), 'g': list('ab') * 6, 'y': y}})\n"
        f"model = GPRegressor({written_so!r}, frequencies=3).fit(frame, 'y')\n"
        f"assert model.kernel == {written_so!r}\nassert np.all(np.isfinite(model.predict(frame)))"
    )


def name_program(rng: Rng) -> str:
    """Columns of strange names are modelled by them."""
    names = [NAMES[k] for k in rng.permutation(len(NAMES))[:2]]
    kernel = one_of(rng, ["None", f"Matern32({names[0]!r})", f"Matern32({names[0]!r}) * Matern12({names[1]!r})"])
    model = f"GPRegressor({kernel}, frequencies={one_of(rng, [3, {names[0]: 3}])!r})"
    return (
        f"{BASE}\nframe = pd.DataFrame({{{names[0]!r}: X[:, 0], {names[1]!r}: rng.uniform(size=12)}})\n"
        f"model = {model}.fit(frame, y)\nassert np.all(np.isfinite(model.effects(frame).mean))\n"
        "assert model.kernel_ == parse_kernel(repr(model.kernel_)) or str(model.kernel_)"
    )


def option_program(rng: Rng) -> str:
    options = {one_of(rng, OPTIONS): one_of(rng, range(len(VALUES))) for _ in range(int(rng.integers(1, 3)))}
    words = ", ".join(f"{name}={written(VALUES[k])}" for name, k in options.items())
    if "inference" in options:
        words += "".join(f", {name}={n}" for name, n in _SHORT_CHAINS.items() if name not in options)
    return f"{BASE}\nmodel = GPRegressor({words}).fit(X, y)\nassert np.all(np.isfinite(model.predict(X)))"


def call_program(rng: Rng) -> str:
    value = written(one_of(rng, VALUES))
    call = one_of(rng, CALLS).format(value)
    return f"{BASE}\nmodel = GPRegressor(Matern32(0), frequencies=3, domain=(0, 1)).fit(X, y)\nanswer = model.{call}"


def written(value: Any) -> str:
    """A value in Python."""
    if callable(value):
        return "lambda: 3"
    if type(value) is object:
        return "object()"
    if isinstance(value, np.generic | np.ndarray):
        return f"np.array({value.tolist()!r}, '{value.dtype}')" if value.ndim else f"np.{value.dtype}({value.item()!r})"
    return repr(value).replace("nan", "np.nan").replace("inf", "np.inf")


PROGRAMS: tuple[Callable[[Rng], str], ...] = (
    parse_program,
    formula_program,
    name_program,
    option_program,
    call_program,
)


def broken(program: str) -> tuple[str, str] | None:
    """The law that a program breaks, and how: refusals are sentences, answers are numbers, and no text takes long."""
    names: dict[str, Any] = {}
    began = time.monotonic()
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            exec(compile(f"{IMPORTS}\n{program}", "the program of a random text", "exec"), names)
        except AssertionError as error:
            return "answers are numbers", accident(error)
        except Exception as error:
            if not is_refusal(error, (ValueError, TypeError, FileNotFoundError)) and not _of_python(error):
                return "refusals are sentences", accident(error)
    if time.monotonic() - began > _LONGEST:
        return "no text takes long", f"{time.monotonic() - began:.0f} seconds"
    strays = [each for each in warned if not issubclass(each.category, vff.ExtrapolationWarning)]
    if strays:
        return "no stray warning", f"{strays[0].category.__name__}: {str(strays[0].message)[:200]}"
    if "answer" in names and "np.nan" in program:
        return "what is no number is refused", "an argument that holds NaN was answered"
    return _numbers(names.get("answer"))


def _of_python(error: Exception) -> bool:
    """What Python or scikit-learn says about arguments, before we see them."""
    return type(error) is TypeError and "argument" in str(error) and is_sentence(str(error))


def _numbers(answer: Any) -> tuple[str, str] | None:
    parts = answer if isinstance(answer, tuple) else (answer,)
    for part in parts:
        if isinstance(part, np.ndarray) and part.dtype.kind == "f" and not np.all(np.isfinite(part)):
            return "answers are numbers", "an answer holds NaN or infinity"
    return None


def attempt(seed: int, effort: Effort) -> Outcome:
    rng = generator(_NAME, seed)
    program = one_of(rng, PROGRAMS)(rng) if chance(rng, 0.7) else parse_program(rng)
    found = broken(program)
    if found is None:
        return Outcome(None, {"texts": 1})
    return Outcome(Finding(*found, script=f"{used_imports(program)}\n{program}\n"), {"texts": 1})


KIND = Kind(_NAME, "hostile text, names, options and arguments", attempt, share=1.0, limit=120.0)

"""Where learning starts: a short ladder of lengthscales and noise shares, as for the variational features."""

from collections.abc import Callable, Mapping

from vff.parameters import PositiveVector

# Lengthscales in half ranges of the data, variances in units of the variance of the targets.
LAYOUT = PositiveVector(("variance", "lengthscale", "noise"), (1e-8, 2e-4, 1e-9), (1e6, 2e4, 1e4))
_LENGTHSCALES = (2.0, 0.6, 0.2, 0.06, 0.02)
_NOISE_SHARES = (0.01, 0.1, 1.0)  # noise variance over signal variance

Score = Callable[[Mapping[str, float], bool], tuple[float, float]]
"""(values, rescaled) -> (factor on both variances, bound there); the factor is 1 unless ``rescaled`` sets it free."""


def look(score: Score, given: Mapping[str, float | None]) -> dict[str, float]:
    """The best of a few candidates. ``given`` holds the user's values by parameter name, None where free."""
    values = {name: value for name, value in given.items() if value is not None}
    if len(values) == len(LAYOUT.names):
        return values
    rescaled = "variance" not in values and "noise" not in values
    lengthscales = [values["lengthscale"]] if "lengthscale" in values else _LENGTHSCALES
    best, best_bound = values, float("-inf")
    for lengthscale in lengthscales:
        for variance, noise in _variances(values):
            factor, bound = score({"variance": variance, "lengthscale": lengthscale, "noise": noise}, rescaled)
            if bound > best_bound:
                best = {"variance": factor * variance, "lengthscale": lengthscale, "noise": factor * noise}
                best_bound = bound
    return best


def _variances(values: Mapping[str, float]) -> list[tuple[float, float]]:
    """Candidate (variance, noise) pairs that respect what was given."""
    if "variance" in values and "noise" in values:
        return [(values["variance"], values["noise"])]
    if "noise" in values:
        return [(values["noise"] / share, values["noise"]) for share in _NOISE_SHARES]
    variance = values.get("variance", 1.0)
    return [(variance, share * variance) for share in _NOISE_SHARES]

"""Priors of every kind, by the name of their class."""

from vff.priors import (
    LKJ,
    AbstractPrior,
    Exponential,
    Gamma,
    HalfNormal,
    InverseGamma,
    LogNormal,
    Normal,
    OfSd,
    PenalisedLengthscale,
    penalised_sd,
)

MAKERS: dict[str, dict[str, AbstractPrior]] = {
    "Gamma": {"gamma": Gamma(3.0, 0.5), "gamma with a pole": Gamma(0.7, 2.0)},
    "LogNormal": {"log-normal": LogNormal(0.3, 0.8)},
    "InverseGamma": {"inverse gamma": InverseGamma(2.5, 1.5)},
    "HalfNormal": {"half-normal": HalfNormal(2.0)},
    "Exponential": {"exponential": Exponential(0.4)},
    "LKJ": {"flat correlation": LKJ(1.0), "small correlation": LKJ(3.5)},
    "Normal": {"normal": Normal(-1.0, 1.7)},
    "OfSd": {
        "of a half-normal sd": OfSd(HalfNormal(1.5)),
        "of a log-normal sd": OfSd(LogNormal(2.0, 0.5)),
        "penalised sd": penalised_sd(3.0, 0.05),
    },
    "PenalisedLengthscale": {
        "penalised lengthscale": PenalisedLengthscale(0.2, 0.05),
        "penalised lengthscale of three": PenalisedLengthscale(0.2, 0.1, columns=3),
    },
}
PRIORS = {name: prior for own in MAKERS.values() for name, prior in own.items()}

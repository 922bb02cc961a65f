"""What others ask for: a factor, its functions, or its prior, for rows of which some are missing."""

from vff.basis import Basis, Change, Domain, Same
from vff.factors.missing.basis import FirstMissing, MissingBasis, MissingDomain
from vff.factors.missing.factor import MissingFactor
from vff.factors.missing.prior import NeverMissing, RowsMissing
from vff.factors.protocol import Factor, Prior


def or_missing(factor: Factor) -> Factor:
    """The factor with an effect of missing values beside it."""
    return factor if isinstance(factor, MissingFactor) else MissingFactor(factor)


def admitting(domain: Domain, basis: Basis) -> tuple[Domain, Basis, Change]:
    """Domain and functions with missing values beside them, and the way there of sums over rows that have none."""
    if domain.numbers is not domain:
        return domain, basis, Same()
    return MissingDomain(domain), MissingBasis(basis), FirstMissing()


def rows_may_miss(prior: Prior) -> Prior:
    """A prior that answers about rows with missing values, whether its fit has seen any or not."""
    return prior if isinstance(prior, RowsMissing) else NeverMissing(prior)

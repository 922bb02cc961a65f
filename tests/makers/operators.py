"""Every kind of structured matrix, some of each, and Gram matrices with every structure."""

import numpy as np

from vff.basis import ColumnBasis
from vff.features import ColumnPrior
from vff.linalg import (
    AbstractSymmetric,
    BlockDiagonal,
    BlockGram,
    BlocksByLevel,
    Dense,
    Diagonal,
    Eigen,
    Kronecker,
    LevelAxes,
    PositiveBorderedLowRank,
    Repeated,
    ScaledIdentity,
    SingularLowRank,
    SparseBlock,
)


def positive(H: int, Q: int, R: int) -> PositiveBorderedLowRank:
    rng = np.random.default_rng(H + 10 * Q + 100 * R)
    C = rng.normal(size=(R, R + 2))
    return PositiveBorderedLowRank(
        rng.uniform(0.5, 3.0, H),
        rng.normal(size=(H, Q)),
        np.tril(rng.normal(size=(Q, Q))) + 2.0 * np.eye(Q),
        rng.normal(size=(H + Q, R)),
        C @ C.T,
    )


def singular(H: int, Q: int, R: int) -> SingularLowRank:
    """The first harmonic is free, and the first R - 1 edge functions."""
    rng = np.random.default_rng(H + 10 * Q + 100 * R)
    d, C = rng.uniform(0.5, 3.0, H), rng.normal(size=(R, R + 2))
    root = np.tril(rng.normal(size=(Q, Q))) + 2.0 * np.eye(Q)
    d[0], root[: R - 1], root[:, : R - 1] = 0.0, 0.0, 0.0
    return SingularLowRank(d, root, rng.normal(size=(H + Q, R)), C @ C.T, (0, *range(H, H + R - 1)))


def dense() -> Dense:
    rng = np.random.default_rng(5)
    A = rng.normal(size=(7, 12))
    return Dense(A @ A.T)


def diagonal(P: int) -> Diagonal:
    return Diagonal(np.random.default_rng(P).uniform(0.2, 4.0, P))


def eigen(P: int) -> Eigen:
    """The prior of levels that know their neighbours."""
    rng = np.random.default_rng(P)
    return Eigen(np.linalg.qr(rng.normal(size=(P, P)))[0], rng.uniform(0.2, 4.0, P))


def blocks() -> BlockDiagonal:
    """The prior of two Matérn terms and of a column of levels."""
    first, second = ColumnPrior(ColumnBasis(3, 2), 1, 2.0), ColumnPrior(ColumnBasis(5, 0), 0, 7.0)
    return BlockDiagonal((first.matrix().scaled(0.7), diagonal(4), second.matrix()))


def product() -> Kronecker:
    """The prior of a product of two Matérns."""
    first, second = ColumnPrior(ColumnBasis(2, 2), 1, 2.0), ColumnPrior(ColumnBasis(1, 1), 0, 5.0)
    return Kronecker((first.matrix(), second.matrix()), 0.6)


INVERTIBLE = {
    "diagonal and low rank": positive(9, 0, 2),
    "with border": positive(9, 3, 2),
    "rank one": positive(5, 1, 1),
    "prior, paper": ColumnPrior(ColumnBasis(4, 0), 1, 2.0).matrix(),
    "prior, edges": ColumnPrior(ColumnBasis(4, 4), 2, 3.0).matrix(),
    "prior, short lengthscale": ColumnPrior(ColumnBasis(8, 2), 0, 500.0).matrix(),
    "singular but for a rank of one": singular(7, 2, 1),
    "singular but for a rank of two": singular(9, 3, 2),
    "singular without edges": singular(5, 0, 1),
    "block diagonal, with a singular diagonal": BlockDiagonal((positive(5, 1, 1), singular(7, 2, 2))),
    "kronecker, with a singular diagonal": Kronecker((singular(4, 2, 2), diagonal(3)), 0.7),
    "dense": dense(),
    "diagonal": diagonal(6),
    "one level": diagonal(1),
    "multiple of the identity": ScaledIdentity(6, 0.7),
    "block diagonal, exchangeable": BlockDiagonal((positive(5, 1, 1), ScaledIdentity(4, 2.0), product())),
    "kronecker, exchangeable": Kronecker((ScaledIdentity(3, 1.0), positive(5, 1, 1)), 2.5),
    "eigenvectors": eigen(7),
    "block diagonal": blocks(),
    "block diagonal, one block": BlockDiagonal((positive(9, 3, 2),)),
    "block diagonal, with a dense block": BlockDiagonal((dense(), positive(5, 1, 1))),
    "block diagonal, levels alone": BlockDiagonal((diagonal(3), diagonal(2))),
    "kronecker": product(),
    "kronecker, levels first": Kronecker((diagonal(3), positive(5, 1, 1)), 2.5),
    "kronecker, levels last": Kronecker((positive(4, 2, 2), diagonal(2))),
    "kronecker, levels alone": Kronecker((diagonal(3), diagonal(4)), 0.1),
    "kronecker, with eigenvectors": Kronecker((eigen(4), positive(4, 1, 2)), 0.7),
    "block diagonal, with eigenvectors": BlockDiagonal((positive(5, 1, 1), eigen(4), diagonal(3))),
    "kronecker of three": Kronecker((positive(3, 1, 1), diagonal(2), positive(2, 1, 2)), 1.3),
    "kronecker of one": Kronecker((positive(5, 2, 2),), 0.4),
    "block diagonal, with products": BlockDiagonal((positive(5, 1, 1), product(), diagonal(4))),
}


INVERTIBLE |= {
    "repeated by level": Repeated(LevelAxes((3, 4), (0,)), Kronecker((positive(3, 1, 1),), 0.7)),
    "repeated by levels of two": Repeated(
        LevelAxes((3, 2, 2, 3), (0, 2)), Kronecker((diagonal(2), positive(2, 1, 2)), 1.4)
    ),
    "block diagonal, repeated": BlockDiagonal((dense(), Repeated(LevelAxes((7, 2), (1,)), Kronecker((dense(),))))),
}


def symmetric(P: int) -> np.ndarray:
    A = np.random.default_rng(P).normal(size=(P, P))
    return A @ A.T


def grams(sizes: tuple[int, ...]) -> dict[str, AbstractSymmetric]:
    """Gram matrices over terms of these sizes: written out, diagonal, and blocks of both."""
    P, rng = sum(sizes), np.random.default_rng(sum(sizes))
    parts = [Diagonal(rng.uniform(0.0, 3.0, size)) if s % 2 else Dense(symmetric(size)) for s, size in enumerate(sizes)]
    pairs = [(s, t) for s in range(len(sizes)) for t in range(s + 1, len(sizes))]
    between = {(s, t): rng.normal(size=(sizes[s], sizes[t])) for s, t in pairs}
    seen = {pair: block * (rng.random(block.shape) < 0.4) for pair, block in between.items()}
    levels = next((count for count in range(2, P + 1) if P % count == 0), 1)
    by_level = np.array([symmetric(P // levels) for _ in range(levels)])
    return {
        "by level": BlocksByLevel(LevelAxes((levels, P // levels), (0,)), by_level),
        "dense": Dense(symmetric(P)),
        "diagonal": Diagonal(rng.uniform(0.0, 3.0, P)),
        "blocks": BlockGram(tuple(parts), between),
        "sparse blocks": BlockGram(tuple(parts), {pair: SparseBlock.of(block) for pair, block in seen.items()}),
    }

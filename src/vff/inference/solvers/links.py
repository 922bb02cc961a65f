"""Two columns of levels at a ratio of noise to the variance of each: solutions, volume and traces (theory §30).

No row has two levels of one column, so that only the block between the columns, C, is not diagonal, and it has an entry
for every pair of levels that a row has:

    M = [[n_1 + t_1, C], [C', n_2 + t_2]],      Q = n_2 + t_2 - C'D C,      D = 1 / (n_1 + t_1)
    log |M| = sum log(n_1 + t_1) + log |Q|,     tr (M^-1)_22 = tr Q^-1,     tr (M^-1)_11 = tr D + tr(Q^-1 C'D^2 C)

Q is written out and factored where that takes seconds. Else it is solved with by conjugate gradients, whose products
are two with C, and volume and traces are probed.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse
from scipy.linalg import eigh

from vff.linalg import Factor, NotPositiveDefinite, Solution, SparseBlock, conjugate_gradients, factorise

LARGEST_FACTORED = 4500  # levels of the second column
CHEAP_SECONDS = 0.2  # for a factor at one setting, which nobody waits for
_PER_PRODUCT, _PER_FLOP = 15e-9, 4e-11  # seconds
_MOST_SQUARED = 2000  # levels of the second column whose covariance is multiplied for curvature
_WRITTEN = 512  # rows of a product at a time
LEAST_PROBES, _MOST_PROBES = 16, 128
_GOOD_ERROR = 0.5  # nats
_NEXT_TO_NOTHING = 1e-9
_LEADING, _POWER_STEPS = 24, 4
_TOLERANCE, _PROBE_TOLERANCE, _MOST_ITERATIONS = 1e-10, 1e-6, 1000
_ERRORS = 3.0  # standard errors, the width of what is stated

Ratios = tuple[float, float]
Both = tuple[np.ndarray, np.ndarray]
"""Of the levels of the first column, and of the second."""


@dataclass(frozen=True)
class Links:
    """What the rows of every level weigh, and those of every pair."""

    n: Both
    C: SparseBlock
    """(L_1, L_2)."""

    @cached_property
    def factored(self) -> bool:
        """Whether Q is written out: where that takes no time, or where probes know too little of it."""
        L, pairs = self.C.shape[1], np.diff(self.C.starts).astype(float)
        if L > LARGEST_FACTORED:
            return False
        seconds = _PER_PRODUCT * float(pairs @ pairs) + _PER_FLOP * float(L) ** 3
        return seconds < CHEAP_SECONDS or self._tried > _GOOD_ERROR

    @cached_property
    def probes(self) -> int:
        """As many as the bound takes to be known well, within reason."""
        if self._tried <= _GOOD_ERROR:
            return LEAST_PROBES
        return int(min(_MOST_PROBES, np.ceil(LEAST_PROBES * (self._tried / _GOOD_ERROR) ** 2)))

    @cached_property
    def _unit(self) -> float:
        """What a pair weighs on average."""
        return float(self.C.entries.mean()) if self.C.entries.size else 1.0

    @cached_property
    def _tried(self) -> float:
        """How far a few probes are off log |Q|, where levels are told apart by a row or so."""
        return IteratedLinks(self, (self._unit, self._unit), LEAST_PROBES).error

    @cached_property
    def squares(self) -> sparse.csr_array:
        """C with every entry squared."""
        own = self.C
        return sparse.csr_array((own.entries**2, own.places, own.starts), shape=own.shape)

    def product(self, d: np.ndarray) -> np.ndarray:
        """C' diag(d) C, (L_2, L_2): every level of the first column adds the products of its own pairs."""
        turned, weighed = self.C.T.matrix, sparse.csr_array(self.C.matrix * d[:, None])
        L, found = self.C.columns, np.empty((self.C.columns, self.C.columns))
        for start in range(0, L, _WRITTEN):
            some = slice(start, start + _WRITTEN)
            found[some] = (turned[some] @ weighed).toarray()
        return found

    @cached_property
    def leading(self) -> np.ndarray:
        """Directions in which the columns stand in for one another most, the constant among them, (L_2, R)."""
        (n, m), C = self.n, self.C.matrix
        least = (
            _NEXT_TO_NOTHING * self._unit
        )  # what only ratios tell apart, as the constant, is found to the last digit
        d, root = 1.0 / (n + least), 1.0 / np.sqrt(m + least)
        some = min(_LEADING, m.size)
        U = np.random.default_rng(20240).standard_normal((m.size, some))
        U[:, 0] = 1.0 / root
        for _ in range(_POWER_STEPS):
            U = np.linalg.qr(U)[0]
            U = root[:, None] * (C.T @ (d[:, None] * (C @ (root[:, None] * U))))
        return root[:, None] * np.linalg.qr(U)[0]

    def at(self, t: Ratios) -> "LinkedLevels":
        """M at some ratios."""
        return FactoredLinks(self, t) if self.factored else IteratedLinks(self, t, self.probes)


@dataclass(frozen=True)
class LinkedLevels(ABC):
    """M at one setting."""

    links: Links
    t: Ratios

    def __post_init__(self) -> None:
        if not min(float((n + t).min(initial=np.inf)) for n, t in zip(self.links.n, self.t, strict=True)) > 0.0:
            raise NotPositiveDefinite("sites of a level weigh less than nothing; try another likelihood")

    @cached_property
    def d(self) -> np.ndarray:
        """D, (L_1,)."""
        return 1.0 / (self.links.n[0] + self.t[0])

    @cached_property
    def diagonal(self) -> np.ndarray:
        """Of Q, (L_2,)."""
        return self.links.n[1] + self.t[1] - self.links.squares.T @ self.d

    @abstractmethod
    def solve_second(self, v: np.ndarray) -> np.ndarray:
        """Q^-1 v, (L_2, S)."""

    def solve(self, v: Both) -> Both:
        """M^-1 v, for (L_1, S) and (L_2, S)."""
        C, d = self.links.C.matrix, self.d[:, None]
        second = self.solve_second(v[1] - C.T @ (d * v[0]))
        return d * (v[0] - C @ second), second

    @property
    def log_gain(self) -> float:
        """log |M| less what it is without rows."""
        first = float(np.sum(np.log1p(self.links.n[0] / self.t[0])))
        return first + self.log_volume_of_second - self.links.n[1].size * float(np.log(self.t[1]))

    @property
    @abstractmethod
    def log_volume_of_second(self) -> float:
        """log |Q|."""

    @property
    @abstractmethod
    def traces(self) -> tuple[float, float]:
        """Of the blocks of M^-1."""

    @property
    def squares(self) -> np.ndarray | None:
        """Sums of squares of the blocks of M^-1, (2, 2); None where they take too long."""
        return None

    @property
    def error(self) -> float:
        """How far log |Q| may be off."""
        return 0.0


@dataclass(frozen=True)
class FactoredLinks(LinkedLevels):
    """With a factor of Q."""

    @cached_property
    def factor(self) -> Factor:
        Q = -self.links.product(self.d)
        Q[np.diag_indices_from(Q)] += self.links.n[1] + self.t[1]
        return factorise(Q)

    @cached_property
    def inverse(self) -> np.ndarray:
        """Q^-1, (L_2, L_2)."""
        return self.factor.inverse()

    def solve_second(self, v: np.ndarray) -> np.ndarray:
        return self.factor.solve(v)

    @property
    def log_volume_of_second(self) -> float:
        return self.factor.logdet()

    @cached_property
    def _through(self) -> np.ndarray:
        """H = C'D^2 C."""
        return self.links.product(self.d**2)

    @cached_property
    def traces(self) -> tuple[float, float]:  # pyright: ignore[reportIncompatibleMethodOverride]  # remembered
        through = float(np.sum(self.inverse * self._through))
        return float(self.d.sum()) + through, float(np.trace(self.inverse))

    @property
    def squares(self) -> np.ndarray | None:
        """|Q^-1|^2, |D C Q^-1|^2 = tr(Q^-1 H Q^-1), and |D + D C Q^-1 C'D|^2 multiplied out."""
        if self.diagonal.size > _MOST_SQUARED:
            return None
        V, moved = self.inverse, self.inverse @ self._through
        first = float(self.d @ self.d) + 2.0 * float(np.sum(V * self.links.product(self.d**3)))
        first, across = first + float(np.sum(moved * moved.T)), float(np.sum(moved * V))
        return np.array([[first, across], [across, float(np.sum(V * V))]])


@dataclass(frozen=True)
class IteratedLinks(LinkedLevels):
    """By conjugate gradients, in coordinates W in which Q is nearly the identity: its diagonal is one, and so is the
    block of the leading directions U; Q^ = W Q W', W = (I + U (H^-1/2 - I) U') diag(Q)^-1/2, H that block before.
    """

    probes: int

    @cached_property
    def signs(self) -> np.ndarray:
        """Random signs, the same at every setting, (L_2, S)."""
        return np.random.default_rng(20240).choice([-1.0, 1.0], size=(self.links.C.shape[1], self.probes))

    @cached_property
    def _root(self) -> np.ndarray:
        """diag(Q)^-1/2, (L_2, 1)."""
        diagonal = self.diagonal
        if not diagonal.min() > 0.0:
            raise NotPositiveDefinite("rounding leaves nothing of the levels of one column beside those of another")
        return 1.0 / np.sqrt(diagonal)[:, None]

    @cached_property
    def _U(self) -> np.ndarray:
        return np.linalg.qr(self.links.leading / self._root)[0]

    def _plain(self, v: np.ndarray) -> np.ndarray:
        """Q scaled to a diagonal of ones, times v."""
        C, moved = self.links.C.matrix, self._root * v
        own = (self.links.n[1] + self.t[1])[:, None] * moved
        return self._root * (own - C.T @ (self.d[:, None] * (C @ moved)))

    @cached_property
    def _H(self) -> Both:
        """Eigenvalues and eigenvectors of U'QU."""
        H = self._U.T @ self._plain(self._U)
        values, vectors = eigh(0.5 * (H + H.T))
        if not values[0] > 0.0:
            raise NotPositiveDefinite("rounding leaves nothing of the levels of one column beside those of another")
        return values, vectors

    def _turned(self, v: np.ndarray, power: float) -> np.ndarray:
        """(I + U (H^power - I) U') v."""
        values, vectors = self._H
        rotated = self._U @ vectors
        return v + rotated @ ((values**power - 1.0)[:, None] * (rotated.T @ v))

    def to_white(self, v: np.ndarray) -> np.ndarray:
        """W v."""
        return self._turned(self._root * v, -0.5)

    def from_white(self, v: np.ndarray) -> np.ndarray:
        """W'v."""
        return self._root * self._turned(v, -0.5)

    def _mv(self, v: np.ndarray) -> np.ndarray:
        return self._turned(self._plain(self._turned(v, -0.5)), -0.5)

    def solve_second(self, v: np.ndarray) -> np.ndarray:
        return self.from_white(conjugate_gradients(self._mv, self.to_white(v), _TOLERANCE, _MOST_ITERATIONS).X)

    @cached_property
    def _probed(self) -> Solution:
        return conjugate_gradients(self._mv, self.signs, _PROBE_TOLERANCE, _MOST_ITERATIONS)

    @cached_property
    def _remainders(self) -> np.ndarray:
        """z'(log Q^ - Q^ + I)z of every probe."""
        return self.diagonal.size * self._probed.quadrature(lambda x: np.log(x) - x + 1.0)

    @property
    def log_volume_of_second(self) -> float:
        values, _ = self._H
        known = float(np.log(self.diagonal).sum() + np.log(values).sum() + np.sum(1.0 - values))
        return known + float(self._remainders.mean())

    @property
    def error(self) -> float:
        return _ERRORS * float(self._remainders.std(ddof=1)) / np.sqrt(self.probes)

    @cached_property
    def traces(self) -> tuple[float, float]:  # pyright: ignore[reportIncompatibleMethodOverride]  # remembered
        """W'W exactly, and W'(Q^^-1 - I)W along the probes."""
        values, vectors = self._H
        C, d, root = self.links.C.matrix, self.d[:, None], self._root
        away, signs = self.from_white(self._probed.X - self.signs), self.from_white(self.signs)
        rotated, more = root * (self._U @ vectors), 1.0 / values - 1.0
        second = float(np.sum(root**2)) + float(more @ np.sum(rotated**2, axis=0))
        second += float(np.sum(away * signs)) / self.probes
        seen = d * (C @ np.concatenate([rotated, away, signs], axis=1))
        k, S = more.size, self.probes
        through = float(root[:, 0] ** 2 @ (self.links.squares.T @ self.d**2))
        through += float(more @ np.sum(seen[:, :k] ** 2, axis=0))
        through += float(np.sum(seen[:, k : k + S] * seen[:, k + S :])) / S
        return float(self.d.sum()) + through, second

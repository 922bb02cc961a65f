"""Closed-form regression without a factor of A: conjugate gradients, and a bound that knows its own error (theory §11).

``whitening`` supplies products with A = K + tau G and coordinates in which it is nearly the identity; the corner
C = L L' of the leading functions of all terms is factored here, and with L^-1 in W, A~ = W A W' is the identity there.
The random signs z are the same at every setting (common random numbers), so that the bound is a smooth function; the
same solutions give A^-1 = W'W + W'(A~^-1 - I)W.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import solve_triangular

from vff.inference.solvers.linear_gaussian import LinearGaussian
from vff.inference.solvers.whitening import WhitenedTerm
from vff.linalg import (
    BlockDiagonal,
    Factor,
    OuterView,
    Solution,
    StructuredCotangent,
    conjugate_gradients,
    factorise,
    slices_of,
)
from vff.moments import KeyedByPairs, Pair

PROBES = 24
_TOLERANCE, _MOST_ITERATIONS = 1e-9, 400
_PROBE_TOLERANCE = 1e-4
_ERRORS = 3.0  # standard errors, the width of what is stated


@dataclass(frozen=True)
class IterativeLinearGaussian(KeyedByPairs, LinearGaussian):
    """A linear-Gaussian model at one setting of its hyperparameters, solved without a factor of A."""

    stored_as: ClassVar[str] = "IterativeForm"

    prior: BlockDiagonal
    terms: tuple[WhitenedTerm, ...]
    blocks: dict[Pair, np.ndarray]
    """G between terms, in the coordinates of the prior."""
    probes: int = PROBES

    def __getstate__(self) -> dict[str, Any]:
        # cotangents point back to this form, which formats that follow no references cannot write; they are made anew
        return {name: value for name, value in super().__getstate__().items() if name != "cotangents"}

    def with_noise(self, noise: float) -> "IterativeLinearGaussian":
        return replace(self, terms=tuple(replace(term, tau=1.0 / noise) for term in self.terms), noise=noise)

    @property
    def jitter(self) -> float:
        return self._corner_factor.jitter

    @cached_property
    def _cross(self) -> dict[Pair, np.ndarray]:
        """tau W_s G_st W_t'."""
        return {
            (s, t): self.tau * self.terms[t].to_white(self.terms[s].to_white(block).T).T
            for (s, t), block in self.blocks.items()
        }

    @cached_property
    def corner_places(self) -> tuple[slice, ...]:
        """Where each term's functions stand in the corner."""
        return slices_of(term.corner_places.size for term in self.terms)

    @cached_property
    def _corner(self) -> np.ndarray:
        """Where the corner's functions stand among all of them."""
        both = zip(self.terms, self.prior.slices, strict=True)
        return np.concatenate([place.start + term.corner_places for term, place in both])

    @cached_property
    def _corner_factor(self) -> Factor:
        """C = L L', the leading functions of all terms together."""
        C, places = np.zeros((self._corner.size, self._corner.size)), self.corner_places
        for term, place in zip(self.terms, places, strict=True):
            C[place, place] = term.corner_matrix()
        for (s, t), block in self._cross.items():
            part = block[np.ix_(self.terms[s].corner_places, self.terms[t].corner_places)]
            C[places[s], places[t]], C[places[t], places[s]] = part, part.T
        return factorise(C)

    @cached_property
    def _corner_inverse(self) -> np.ndarray:
        return self._corner_factor.inverse()

    def corner_excess(self, s: int, t: int) -> np.ndarray:
        """D_s^-1/2 (C^-1 - I)_st D_t^-1/2: what W'W has in the corner beside U D^-1 U', in the coordinates of U."""
        block = self._corner_inverse[self.corner_places[s], self.corner_places[t]].copy()
        if s == t:
            block[np.diag_indices_from(block)] -= 1.0
        return self.terms[s].corner_root * block * self.terms[t].corner_root.T

    def _to_corner(self, v: np.ndarray, *, transposed: bool) -> np.ndarray:
        """L^-1 v, or L^-T v, in the corner; nothing elsewhere."""
        v, L = v.copy(), self._corner_factor.lower
        v[self._corner] = solve_triangular(L, v[self._corner], lower=True, trans=int(transposed), check_finite=False)
        return v

    def mv(self, v: np.ndarray) -> np.ndarray:
        """A~ v, (P, S)."""
        return self._to_corner(self._mv(self._to_corner(v, transposed=True)), transposed=False)

    def _mv(self, v: np.ndarray) -> np.ndarray:
        """The same before the corner is taken together."""
        places = self.prior.slices
        image = np.concatenate([term.mv(v[place]) for term, place in zip(self.terms, places, strict=True)])
        for (s, t), block in self._cross.items():
            image[places[s]] += block @ v[places[t]]
            image[places[t]] += block.T @ v[places[s]]
        return image

    def to_prior(self, v: np.ndarray) -> np.ndarray:
        """W'v."""
        v = self._to_corner(v, transposed=True)
        both = zip(self.terms, self.prior.slices, strict=True)
        return np.concatenate([term.to_prior(v[place]) for term, place in both])

    def to_white(self, v: np.ndarray) -> np.ndarray:
        """W v."""
        both = zip(self.terms, self.prior.slices, strict=True)
        white = np.concatenate([term.to_white(v[place]) for term, place in both])
        return self._to_corner(white, transposed=False)

    def solve(self, v: np.ndarray, tolerance: float = _TOLERANCE) -> np.ndarray:
        """A^-1 v, (P, S), in the coordinates of the prior."""
        return self.to_prior(conjugate_gradients(self.mv, self.to_white(v), tolerance, _MOST_ITERATIONS).X)

    @cached_property
    def _white_solutions(self) -> Solution:
        return conjugate_gradients(self.mv, self.to_white(self.right_sides), _TOLERANCE, _MOST_ITERATIONS)

    @cached_property
    def solutions(self) -> np.ndarray:
        return self.to_prior(self._white_solutions.X)

    @cached_property
    def signs(self) -> np.ndarray:
        """Random signs, the same at every setting, (P, S)."""
        rng = np.random.default_rng(20240)
        return rng.choice([-1.0, 1.0], size=(self.b.size, self.probes))

    @cached_property
    def probed(self) -> Solution:
        """A~^-1 z for the probes."""
        return conjugate_gradients(self.mv, self.signs, _PROBE_TOLERANCE, _MOST_ITERATIONS)

    @property
    def explained(self) -> float:
        return sum(self.explained_by_term)

    @property
    def explained_by_term(self) -> list[float]:
        return [term.explained for term in self.terms]

    def energy_of(self, c: np.ndarray) -> float:
        places = self.prior.slices
        between = sum(float(c[places[s]] @ block @ c[places[t]]) for (s, t), block in self.blocks.items())
        return sum(self._energies(c)) + 2.0 * between

    def energies(self) -> list[float]:
        return self._energies(self.mean)

    def _energies(self, c: np.ndarray) -> list[float]:
        return [term.energy(c[place, None]) for term, place in zip(self.terms, self.prior.slices, strict=True)]

    @cached_property
    def _remainders(self) -> np.ndarray:
        """z'(log A~ - A~ + I)z of every probe."""
        return self.b.size * self.probed.quadrature(lambda x: np.log(x) - x + 1.0)

    @property
    def log_gain(self) -> float:
        known = sum(term.trace + term.log_volume for term in self.terms)
        known += self._corner_factor.logdet() + self._corner.size - self.b.size
        return known + float(self._remainders.mean())

    @property
    def error(self) -> float:
        """Three standard errors over the probes."""
        return 0.5 * _ERRORS * float(self._remainders.std(ddof=1)) / np.sqrt(self.probes)

    @cached_property
    def projected_alone(self) -> StructuredCotangent:
        away = self.to_prior(self.probed.X - self.signs)
        outer = self.prior.project(OuterView(away, self.to_prior(self.signs)))
        known = tuple(term.preconditioner(self.corner_excess(s, s)) for s, term in enumerate(self.terms))
        return StructuredCotangent(known) + (1.0 / self.probes) * outer

    @property
    def projected_sandwich(self) -> StructuredCotangent:
        return StructuredCotangent(tuple(term.sandwich() for term in self.terms))

    @property
    def converged(self) -> bool:
        """Whether the iterations for the mean and the probes ended before their limit."""
        return self._white_solutions.converged and self.probed.converged

"""``CoxProcess``: the intensity of a point pattern, a log Gaussian Cox process on a grid of cells."""

from collections.abc import Iterator
from math import prod
from statistics import NormalDist
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from vff.estimators.arguments import interval_level, seeded, whole_number
from vff.estimators.formulas import over_points
from vff.estimators.named import introduce, recognised
from vff.estimators.options import check_choice, check_domain
from vff.estimators.pattern import (
    Box,
    Count,
    Grid,
    Intensity,
    Space,
    as_box,
    as_table,
    check_exposed,
    check_inside,
    coordinates,
    exposure_on,
    factors_of,
    make_grid,
    range_of,
    region_volumes,
)
from vff.estimators.regressor import GPRegressor
from vff.factors import Factor, FactorOptions
from vff.inference import inferences
from vff.kernels import Kernel, Matern32
from vff.likelihoods import Poisson
from vff.moments import ColumnSummary

_AT_ONCE = 2**24  # numbers drawn together
_BAND_DRAWS = 1000
_OWN = ("kernel", "grid", "domain")  # parameters that the model of the cells does not have as they are


class PatternOnGrid(NamedTuple):
    """A checked point pattern on its grid."""

    space: Space
    window: Box
    grid: Grid
    counts: np.ndarray
    exposure: np.ndarray


class CoxProcess(BaseEstimator):
    """The intensity of a point pattern in one to three columns, with its uncertainty.

    The points are a Poisson process with log intensity c + f(s), f a Gaussian process and c a constant. The window is
    cut into cells; the points of a cell are Poisson with mean intensity(centre) * volume * exposure. A ``GPRegressor``
    with a Poisson likelihood is fitted to these counts. It takes c as known; the intervals here do not.

    Parameters
    ----------
    kernel : kernel expression, str or None
        Over the columns of the points. None is the product of one ``Matern32`` per column.
    grid : "auto", int, tuple or dict by column
        Cells per column. "auto" is 256 in one column, about 4096 in all in two (64 x 64, or cells about as wide as high
        up to an aspect of four) and 16 each in three. A dictionary may leave columns to "auto". Cells should be smaller
        than what is to be seen: within one, the intensity is taken as that of its centre.
    frequencies : as for ``GPRegressor``
    domain : (a, b), "auto" or dict by column
        Interval of the features, which must hold the window. "auto" is the window (padded, with ``edges=0``).
    edges : as for ``GPRegressor``
    inference : "variational" or "mcmc"
        A Gaussian posterior, or Markov chains.
    draws, warmup, chains, sampler, priors
        Of Markov chains, as for ``GPRegressor``.
    random_state : int, RandomState or None
        For draws, when they are asked for without one.
    verbose : int
        1 prints progress and notes to standard error.

    Attributes
    ----------
    model_ : the fitted ``GPRegressor`` of the counts of cells with an exposure
        Its rows have the coordinates of a centre, then the product of exposure and volume of the cell.
    counts_, exposure_ : points and exposure of every cell, arrays of the shape of the grid
    grid_ : the cells, with ``edges`` by column, ``centres``, ``shape`` and ``cell_volume``
    window_ : (low, high) of every column
    points_ : the points, (N, d); times are days since 1970-01-01
    kinds_ : what every column holds: "number", "datetime", "duration" or "boolean"
    kernel_ : the learnt kernel
    samples_ : draws of the hyperparameters, with ``inference="mcmc"``; else None
    inference_ : how it was learnt
    elbo_ : float
        Lower bound on the log probability of the counts, nats. That of another grid cannot be compared with it.
    notes_ : tuple of str
    n_features_in_, feature_names_in_ : number of columns of the points, and their names if they have some

    Examples
    --------
    >>> points = vff.datasets.load_coal().X
    >>> model = vff.CoxProcess(grid=32, frequencies=8).fit(points, window=(1851, 1963))
    >>> early, late = model.intensity([1870.0, 1950.0]).mean
    >>> bool(early > 2 * late)  # disasters a year
    True
    """

    def __init__(
        self,
        kernel: Kernel | str | None = None,
        *,
        grid: Any = "auto",
        frequencies: int | str | dict = "auto",
        domain: tuple[float, float] | str | dict = "auto",
        edges: int | str | dict = "auto",
        inference: str = "variational",
        draws: int = 500,
        warmup: int | None = None,
        chains: int = 4,
        sampler: str = "nuts",
        priors: dict | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.grid = grid
        self.frequencies = frequencies
        self.domain = domain
        self.edges = edges
        self.inference = inference
        self.draws = draws
        self.warmup = warmup
        self.chains = chains
        self.sampler = sampler
        self.priors = priors
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, points: Any, window: Any = None, exposure: Any = None) -> Self:
        """Learn the intensity of a pattern.

        Parameters
        ----------
        points : array (N,) or (N, d), or a frame of d columns
            Points that are given twice count twice.
        window : (low, high), a sequence of such pairs, a dict by column, or None
            Where points were looked for. None takes the range of the points, which is too small: the intensity is then
            too high at the edges, and a note says so.
        exposure : function of the centres (cells, d), array of the shape of the grid, or None
            How long or how well every cell was looked at. Cells of zero exposure were not, and are left out.

        Returns
        -------
        CoxProcess
            The model itself, fitted.

        Examples
        --------
        >>> vff.CoxProcess(grid=32, frequencies=8).fit(np.sqrt(np.linspace(0, 1, 60)), window=(0, 1)).counts_.shape
        (32,)
        """
        check_choice("inference", self.inference, inferences())
        table = as_table(points)
        space = Space.of(table)
        x = coordinates(table)
        pattern = self._pattern(x, space, window, exposure)
        model = self._model(pattern)
        seen = pattern.exposure.ravel() > 0.0
        sizes = pattern.exposure.ravel()[seen] * pattern.grid.cell_volume
        model.fit(space.table(pattern.grid.centres[seen], sizes), pattern.counts.ravel()[seen])
        introduce(self, table)
        self._store(x, pattern, model, self.inference, (*((_NO_WINDOW,) if window is None else ()), *model.notes_))
        return self

    def _store(
        self, x: np.ndarray, pattern: PatternOnGrid, model: GPRegressor, inference: str, notes: tuple[str, ...]
    ) -> None:
        self._space, self.window_, self.grid_, self.counts_, self.exposure_ = pattern
        self.kinds_, self.points_, self.model_ = pattern.space.kinds, x, model
        self.inference_, self.kernel_, self.elbo_ = inference, model.kernel_, model.elbo_
        self.samples_, self.notes_ = model.samples_, notes

    def _pattern(self, x: np.ndarray, space: Space, window: Any, exposure: Any) -> PatternOnGrid:
        if len(x) == 0:
            raise ValueError(
                "points holds no point, and nothing can be learnt of an intensity that showed none; give at least one"
            )
        box = range_of(x, space) if window is None else as_box(window, space, "window")
        check_inside(x, box, space, "widen the window, or leave these points out")
        grid = make_grid(self.grid, box, space)
        found = exposure_on(grid, exposure)
        check_exposed(x, grid, found)
        return PatternOnGrid(space, box, grid, grid.counts(x), found)

    def _model(self, pattern: PatternOnGrid) -> GPRegressor:
        """The regression of the counts, not fitted yet."""
        space = pattern.space
        kernel = over_points(self.kernel, space)
        if kernel is None:
            kernel = prod((Matern32(column) for column in space.columns[1:]), start=Matern32(space.columns[0]))
        used = factors_of(kernel, space).items()
        domain = {
            space.columns[index]: self._domain(index, factor, pattern)
            for index, factor in used
            if "domain" in factor.options
        }
        return GPRegressor(
            kernel,
            likelihood=Poisson(exposure=space.exposure),
            domain=domain or "auto",
            hyperparameters="maximise",  # the mean of exp(f) is that of a Gaussian f, which averages are not
            **{name: value for name, value in self.get_params(deep=False).items() if name not in _OWN},
        )

    def _domain(self, index: int, factor: Factor, pattern: PatternOnGrid) -> tuple[float, float]:
        """The interval of one column: as asked, or the window."""
        space, (low, high) = pattern.space, pattern.window[index]
        requested = self.domain
        if isinstance(requested, dict):
            requested = space.by_column(requested, "domain").get(index, "auto")
        given = check_domain(requested, repr(space.columns[index]))
        if given is None:
            values = self.edges.values() if isinstance(self.edges, dict) else (self.edges,)
            padded = any(0 in np.atleast_1d(np.asarray(value, object)) for value in values)
            least = factor.least(FactorOptions(0 if padded else "auto", None, ()))
            given = factor.settled(ColumnSummary(low, high), [least], growing=False).ends or (low, high)
        if given[0] > low or given[1] < high:
            raise ValueError(
                f"the domain of {space.label(index)} is [{given[0]:g}, {given[1]:g}] and must hold its window "
                f"[{low:g}, {high:g}]; widen it, or leave domain='auto'"
            )
        return given

    def intensity(self, points: Any = None, level: float = 0.9, random_state: Any = None) -> Intensity:
        """Posterior mean of the intensity at points of the window, and a central interval.

        Parameters
        ----------
        points : array (N,) or (N, d), a frame, or None
            None is the centres of all cells, in the shape of the grid.
        level : float, probability of the interval
        random_state : int, RandomState or None

        Returns
        -------
        Intensity
            ``mean``, ``lower`` and ``upper``: points per unit volume and unit exposure.

        Examples
        --------
        >>> model = vff.CoxProcess(grid=32, frequencies=8).fit(np.sqrt(np.linspace(0, 1, 60)), window=(0, 1))
        >>> model.intensity().mean.shape
        (32,)
        """
        check_is_fitted(self, "model_")
        interval_level(level)
        if points is None:
            found = self._intensity_at(self.grid_.centres, level, random_state)
            return Intensity(*(part.reshape(self.grid_.shape) for part in found))
        x = coordinates(recognised(self, as_table(points), range(self._space.size)))
        check_inside(x, self.window_, self._space, "the intensity is known inside the window alone: leave these out")
        return self._intensity_at(x, level, random_state)

    def _intensity_at(self, x: np.ndarray, level: float, random_state: Any) -> Intensity:
        if self.inference_ == "variational":
            mean, variance = self.model_.predict_f(self._rows(x))
            half = NormalDist().inv_cdf(0.5 + 0.5 * level) * np.sqrt(variance)
            return Intensity(np.exp(mean + variance / 2), np.exp(mean - half), np.exp(mean + half))
        state = seeded(self.random_state if random_state is None else random_state)
        seed, noise = state.randint(2**31), np.random.default_rng(state.randint(2**31))
        parts = []
        for start in range(0, len(x), _AT_ONCE // _BAND_DRAWS):
            some = self._rows(x[start : start + _AT_ONCE // _BAND_DRAWS])
            values, rest = self.model_._function_draws(some, _BAND_DRAWS, seed)
            mean = np.exp(values + rest[:, None] / 2).mean(axis=1)
            values += np.sqrt(rest)[:, None] * noise.standard_normal(values.shape)
            parts.append((mean, *np.exp(np.quantile(values, _ends(level), axis=1))))
        return Intensity(*(np.concatenate(part) for part in zip(*parts, strict=True)))

    def expected_count(
        self, region: Any = None, level: float = 0.9, n_samples: int = 1000, random_state: Any = None
    ) -> Count:
        """How many points a region has on average: the intensity times the exposure, summed over it.

        Parameters
        ----------
        region : box, boolean array of the shape of the grid, or None
            A box is written as a window (a dictionary may leave columns out); cells that its edge cuts count by the
            volume they have in it. None is the whole window.
        level : float, probability of the interval
        n_samples : int
            Draws of the intensity that standard deviation and interval are taken from.
        random_state : int, RandomState or None

        Returns
        -------
        Count
            ``mean``, ``std``, ``lower`` and ``upper``: how well this mean is known. A new count scatters around it as a
            Poisson number does.

        Examples
        --------
        >>> model = vff.CoxProcess(grid=32, frequencies=8).fit(np.sqrt(np.linspace(0, 1, 60)), window=(0, 1))
        >>> round(model.expected_count(random_state=0).mean, -1)
        60.0
        """
        check_is_fitted(self, "model_")
        interval_level(level)
        whole_number("n_samples", n_samples)
        sizes = region_volumes(region, self.grid_, self.window_, self._space) * self.exposure_
        inside = sizes.ravel() > 0.0
        if not inside.any():
            return Count(0.0, 0.0, 0.0, 0.0)
        x, w = self.grid_.centres[inside], sizes.ravel()[inside]
        draws = self._draws(x, n_samples, random_state)
        counts = np.concatenate([w @ np.exp(values + rest[:, None] / 2) for values, rest in draws])
        mean = w @ self._intensity_at(x, level, None).mean if self.inference_ == "variational" else counts.mean()
        return Count(float(mean), float(counts.std()), *map(float, np.quantile(counts, _ends(level))))

    def to_arviz(self) -> Any:
        """Draws of ``inference="mcmc"`` for ArviZ, as ``GPRegressor.to_arviz`` gives them.

        Returns
        -------
        arviz.InferenceData

        Examples
        --------
        >>> model = vff.CoxProcess(grid=16, inference="mcmc", draws=20, warmup=20)
        >>> draws = model.fit([0.2, 0.3, 0.7], window=(0, 1)).to_arviz()  # doctest: +SKIP
        """
        check_is_fitted(self, "model_")
        return self.model_.to_arviz()

    @property
    def functions_(self) -> tuple[GPRegressor]:
        """The model of the log intensity, which is one function."""
        return (self.model_,)

    def sample_points(self, n_samples: int = 1, random_state: Any = None) -> list[np.ndarray]:
        """New patterns in the same window with the same exposure, as the posterior expects them.

        Parameters
        ----------
        n_samples : int
        random_state : int, RandomState or None

        Returns
        -------
        list of arrays (N_i, d), one per pattern

        Examples
        --------
        >>> model = vff.CoxProcess(grid=32, frequencies=8).fit(np.sqrt(np.linspace(0, 1, 60)), window=(0, 1))
        >>> len(model.sample_points(3, random_state=0))
        3
        """
        check_is_fitted(self, "model_")
        whole_number("n_samples", n_samples)
        state = seeded(self.random_state if random_state is None else random_state)
        rng = np.random.default_rng(state.randint(2**31))
        x, sizes = self.grid_.centres, self.exposure_.ravel() * self.grid_.cell_volume
        widths = np.array([edge[1] - edge[0] for edge in self.grid_.edges])
        patterns = []
        for values, rest in self._draws(x, n_samples, state):
            values += np.sqrt(rest)[:, None] * rng.standard_normal(values.shape)
            for f in values.T:
                chosen = np.repeat(x, rng.poisson(sizes * np.exp(f)), axis=0)
                patterns.append(chosen + widths * rng.uniform(-0.5, 0.5, chosen.shape))
        return patterns

    def _draws(self, x: np.ndarray, n_samples: int, random_state: Any) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Draws of the log intensity, joint over rows, a few at a time, and the variance by row that they leave out."""
        state = seeded(self.random_state if random_state is None else random_state)
        step, rows = max(1, _AT_ONCE // len(x)), self._rows(x)
        for start in range(0, n_samples, step):
            try:
                yield self.model_._function_draws(rows, min(step, n_samples - start), state)
            except ValueError as error:
                raise ValueError(
                    f"the intensity must be drawn at all cells of the region together, and {error}; take a smaller "
                    "region, a coarser grid, or fewer frequencies"
                ) from error

    def _rows(self, x: np.ndarray) -> Any:
        """Places (N, d) as rows of the inner model."""
        return self._space.table(x, np.full(len(x), self.grid_.cell_volume))


_NO_WINDOW = (
    "the window was taken from the range of the points, which is smaller than the one they were looked for in; the "
    "intensity is biased upward at its edges: give fit the window"
)


def _ends(level: float) -> tuple[float, float]:
    return 0.5 - 0.5 * level, 0.5 + 0.5 * level

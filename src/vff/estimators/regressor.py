"""``GPRegressor``: Gaussian process regression, in one pass over the data where noise is Gaussian."""

from dataclasses import replace
from typing import Any, Self

from sklearn.exceptions import NotFittedError

from vff.estimators.arguments import flag
from vff.estimators.collecting import CollectingModel
from vff.estimators.options import check_column, check_noise
from vff.estimators.predict_numbers import RegressionMixin
from vff.estimators.prior import PriorMixin
from vff.kernels import Kernel
from vff.likelihoods import AbstractLikelihood, ErrorBars, by_name
from vff.parameters import start_of
from vff.words import shown


class GPRegressor(PriorMixin, RegressionMixin, CollectingModel):
    """Gaussian process regression with variational Fourier features.

    Parameters
    ----------
    kernel : kernel expression, str or None
        ``Matern32("x") + Categorical("y")`` and the like, or a text that means one when the columns are known, as
        "s(hour) + te(lon, lat) + (1 | house)" does: docs/formulas.md. None is a ``Matern32`` per column of numbers and,
        in a frame, a ``Categorical`` per column of text. Text that reads as numbers or dates, periods, intervals and
        times of the day are refused: convert them, or name the column in a kernel.
    likelihood : str or likelihood
        "gaussian", "student-t", "poisson", "negative-binomial", "gamma", "beta", "ordinal", "bernoulli", or an object
        of ``vff.likelihoods``, which may hold parameters fixed, name a column of exposure or trials, or be a function
        of your own. All but "gaussian" are fitted by natural gradients.
    noise_variance : float or None
        Where learning starts (or what is used with ``optimizer=None``); None starts from the data. Given starts, here
        and in the kernel, compete with those from the data and are left when they are far worse. ``fixed(number)``
        holds it, ``between(low, high)`` bounds it. Beside error bars it is of what these leave unexplained, and 0 holds
        none.
    noise_std : str, int or None
        Column of standard deviations of y that are known, row by row: y = f + N(0, noise_std² + noise_variance). It is
        no feature. Predictions of y are with that of their own row, so the column must be there (zeros for an
        instrument without error). For the Gaussian likelihood.
    frequencies : int, "auto" or dict by column or product
        Harmonics per column. In a dictionary, "a" is the term of column a, and "a * b" the product, with one number for
        both or one each; a column without a term of its own speaks for its products. "auto" grows them until the bound
        has next to nothing to gain: half a nat, or 1e-6 nats per row, or 0.02 nats per coefficient that the data
        determine, whichever is most.
    domain : (a, b), "auto" or dict by column
        Interval of the features in the column's units. "auto" hugs the data (or pads them, with ``edges=0``).
    edges : int, "auto" or dict by column or product
        Edge functions, which add the polynomials up to that degree to the span. "auto" is p + 2 for a
        Matérn-(p+1/2); 0 is the paper.
    engine : "auto", "dense", "nufft", "table" or "grid"
        How the rows are summed. All agree.
    optimizer : "lbfgs" or None
        None keeps the given hyperparameters.
    normalize_y : bool
        The function has a constant with a weak prior (ten standard deviations of y around its mean), which is
        integrated out; with False its prior mean is zero and there is none. With other likelihoods than "gaussian" the
        prior is around the constant that fits best, and its standard deviation is 10 where f is not in the units of y.
    batch_size : int or None
        Rows per step of likelihoods that are not Gaussian; None is all of them. Batches make the first steps cheap on
        very many rows; the bound is then not climbed to its very top.
    covariance : "full", "kronecker", "two kroneckers" or "factorised"
        Of the approximate posterior, for likelihoods that are not Gaussian. The structured ones make room for products
        of tens of thousands of features, and their terms and the constant are independent of one another: a Kronecker
        product over the columns of each term, a sum of two of them, or dense within a term. What is to be learnt
        (hyperparameters, parameters of the likelihood) is learnt first with the full covariance and at most about 600
        features, and held; with ``optimizer=None`` and all given, nothing is. ``partial_fit`` needs "full".
    inference : "variational" or "mcmc"
        A Gaussian posterior at the best hyperparameters, or Markov chains: over hyperparameters and function together,
        or, with Gaussian noise, over hyperparameters alone, at a cost that does not depend on the number of rows. All
        predictions average over the draws then. Needs BlackJAX: ``pip install 'vff[mcmc]'``.
    hyperparameters : "auto", "maximise" or "integrate"
        The best ones are taken for known, or draws around them, weighted by bound and priors (those of Markov chains,
        docs/markov-chains.md), are averaged over: intervals of few rows then hold what they say, at no look at the rows
        and a few dozen times the cost of a step of learning. "auto" averages where not knowing them would add more than
        a fiftieth to the variance of f or of Gaussian noise, by an estimate that ``fit_.doubt`` keeps, and takes them
        for known elsewhere. ``kernel_``, ``noise_variance_`` and ``elbo_`` are those of the best ones.
    draws : int
        Of every Markov chain.
    warmup : int or None
        Steps of every chain before its draws. None is 200 where the shape of the posterior is known beforehand, with
        Gaussian noise or at most 500 white variables, and 500 elsewhere.
    chains : int
    sampler : "nuts" or "hmc"
    priors : dict or None
        By hyperparameter ("lengthscale[x]", "variance", "noise_variance", ...) a prior of ``vff.priors``, or a number
        at which it is held. A name without brackets is meant for all of its kind. The best hyperparameters are then the
        maximum a posteriori of their logarithms, and below 20 rows those not named have weak priors. With Markov chains
        those not named have the priors of docs/markov-chains.md, and "constant" may be named unless noise is Gaussian.
    offset : str, int or None
        Column that is added to the function, on the scale of the link, known where it is predicted, too: predictions,
        draws and scores have it in them, ``effects`` and the mean of the function over the rows do not. It is no
        feature.
    missing : "effect", "drop" or "refuse"
        What a missing value in a column of numbers is: an effect of its own, a reason to leave the row out, or to
        refuse it.
    interactions : "auto", int or None
        Products of two terms of a column each that may join the sum, best first, as long as each raises the bound by
        more than 3 nats plus the logarithm of the number of pairs: at most 5, or so many. Rows are read several times.
    random_state : int, RandomState or None
        For Markov chains, and for ``sample_y`` when it is called without one.
    verbose : int
        1 prints progress and the fit's notes to standard error.

    Attributes
    ----------
    kernel_, noise_variance_ : the learnt hyperparameters, in the user's units
        (``noise_variance_`` is NaN unless the likelihood is "gaussian")
    likelihood_ : the likelihood with its parameters learnt; ``likelihood_.values`` has them by name
    intercept_, intercept_std_ : float
        Mean of the function over the rows of the fit, from which ``effects`` are measured, and its standard deviation.
    elbo_ : float
        Lower bound on log p(y), nats, for y in the user's units.
    elbo_gap_ : (float, float)
        How far below log p(y) the bound is expected to lie at these hyperparameters, nats, if the model is right. With
        other likelihoods: what more features might add to it (NaN with a structured covariance, whose own price is not
        known).
    elbo_error_ : float
        How far ``elbo_`` itself may be off, nats (three standard errors); 0 unless ``solver_`` is "iterative".
    solver_ : "direct", "low-rank", "iterative" or the name of a structured covariance
        Whether a P x P matrix was factored, one as large as the few rows, or products with it were enough.
    evidence_upper_bound_ : float
        Upper bound on log p(y) at the same hyperparameters, right or not; cautious, and loose when rows are many. NaN
        where there is none, as for uncertain inputs.
    domain_, frequencies_, edges_ : what was chosen, by column
    engine_, engine_reason_ : how the rows were summed, and why
    samples_ : draws of the hyperparameters, with ``inference="mcmc"`` or where they were integrated; else None
        ``print(samples_)`` is a table; ``samples_.values`` has the draws by name, in the user's units. With
        ``inference="mcmc"``, ``elbo_`` is NaN unless noise is Gaussian, and ``kernel_`` has the medians.
    interactions_ : what was tried to join the sum, with ``interactions``; else None
        ``print(interactions_)`` is a table; every pair has ``columns``, ``expected`` and ``gain`` in nats, ``joined``,
        and ``why`` it did not.
    timing_ : seconds of the last fit by phase: "survey", "pass", "learn", and "pairs" where these were looked at
    statistics_ : the sums over the rows, to which ``partial_fit`` adds
    fit_ : the record of the fit, with every M on the way
    notes_ : tuple of str
        What limits the bound, if anything, and how learning ended.

    Examples
    --------
    >>> X = np.linspace(0, 6, 50)[:, None]
    >>> y = np.sin(X[:, 0]) + 0.1 * np.random.default_rng(0).standard_normal(50)
    >>> model = vff.GPRegressor(vff.Matern32(0)).fit(X, y)
    >>> model.predict([[1.5]]).round(1)
    array([0.9])
    """

    def __init__(
        self,
        kernel: Kernel | str | None = None,
        *,
        likelihood: str | AbstractLikelihood = "gaussian",
        noise_variance: float | None = None,
        noise_std: str | int | None = None,
        frequencies: int | str | dict = "auto",
        domain: tuple[float, float] | str | dict = "auto",
        edges: int | str | dict = "auto",
        engine: str = "auto",
        optimizer: str | None = "lbfgs",
        normalize_y: bool = True,
        batch_size: int | None = None,
        covariance: str = "full",
        inference: str = "variational",
        hyperparameters: str = "auto",
        draws: int = 500,
        warmup: int | None = None,
        chains: int = 4,
        sampler: str = "nuts",
        priors: dict | None = None,
        offset: str | int | None = None,
        missing: str = "effect",
        interactions: str | int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            kernel=kernel, likelihood=likelihood, frequencies=frequencies, domain=domain, edges=edges, engine=engine,
            optimizer=optimizer, batch_size=batch_size, covariance=covariance, inference=inference,
            hyperparameters=hyperparameters, draws=draws, warmup=warmup, chains=chains, sampler=sampler, priors=priors,
            random_state=random_state, verbose=verbose, offset=offset, missing=missing, interactions=interactions,
        )  # fmt: skip
        self.noise_variance = noise_variance
        self.noise_std = noise_std
        self.normalize_y = normalize_y

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, noise_std: Any = None) -> Self:
        """Fit to a table X and a vector y.

        Parameters
        ----------
        X : array (N, D), frame, or what ``vff.scan`` takes
            Columns of a frame go by name: one to predict at may have them in any order, and others beside them. Files,
            chunks, Dask collections and tables of databases are read twice, or once when ``domain`` is given for every
            column of numbers.
        y : array (N,) or name of a column of X
            A column that is named is no feature. Where X is not in memory, y and the weights are names.
        sample_weight : array (N,), name of a column of X, or None
            A row of weight w counts as w equal rows. How well a row was measured is ``noise_std``.
        noise_std : array (N,) or None
            Known standard deviations of y, of rows in memory, where they are no column of X that the model names.
            Predictions then have the noise beside them alone.

        Returns
        -------
        GPRegressor
            The model itself, fitted.

        Examples
        --------
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"x": np.linspace(0, 1, 40), "g": ["a", "b"] * 20})
        >>> frame["y"] = 2 * frame.x + (frame.g == "b")
        >>> model = vff.GPRegressor(frequencies=5).fit(frame, "y")
        >>> model.predict(pd.DataFrame({"g": ["b"], "x": [0.5]})).round(1)
        array([2.])
        """
        return self._absorb(X, y, sample_weight, None, growing=False, noise_std=noise_std)

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None, noise_std: Any = None) -> Self:
        """Add rows to those already seen and learn again, at a cost that does not depend on the rows seen before.

        With Gaussian noise the result is that of all rows together. With another likelihood, earlier rows are
        remembered by the Gaussian factors that stood for them when they were seen, and ``elbo_`` is NaN from then on.

        Parameters
        ----------
        X, y, sample_weight, noise_std
            As for ``fit``.

        Returns
        -------
        GPRegressor
            The model itself, fitted to all rows seen.

        Examples
        --------
        >>> X = np.linspace(0, 6, 60)[:, None]
        >>> model = vff.GPRegressor(domain=(0, 6), frequencies=10)
        >>> for part in (slice(0, 30), slice(30, 60)):
        ...     model = model.partial_fit(X[part], np.sin(X[part, 0]))
        >>> model.predict([[1.5]]).round(1)
        array([1.])
        """
        return self._absorb(X, y, sample_weight, self._before(), growing=True, noise_std=noise_std)

    def _requested_likelihood(self) -> AbstractLikelihood:
        likelihood, column = by_name(self.likelihood), self._noise_std()
        if likelihood.known_errors and (column is not None or likelihood.column is None or not likelihood.conjugate):
            raise ValueError(
                f"error bars are named once, GPRegressor(noise_std='column'), and what is beside them starts from "
                f"noise_variance; got likelihood={shown(likelihood)}"
            )
        return likelihood if column is None else self._with_errors(likelihood, column)

    def _given_likelihood(self) -> AbstractLikelihood:
        likelihood = self._requested_likelihood()
        noise = start_of(self._noise(likelihood))
        if likelihood.conjugate and noise is not None:
            return replace(likelihood, variance=noise)  # pyright: ignore[reportArgumentType]
        unknown = [entry.name for entry in likelihood.entries if entry.value is None]
        if unknown:
            what = "noise_variance" if likelihood.conjugate else f"{', '.join(unknown)} of the likelihood"
            raise NotFittedError(
                f"This {type(self).__name__} instance is not fitted yet; call fit first, or, to ask the prior, give "
                f"{what}"
            )
        return likelihood

    def _centred(self) -> bool:
        return flag("normalize_y", self.normalize_y)

    def _likelihood_of_rows(self, errors: bool) -> AbstractLikelihood:
        likelihood = self._requested_likelihood()
        if errors and likelihood.known_errors:
            raise ValueError(
                f"error bars are in column {shown(likelihood.column)} of X, as the model says, and fit was given "
                "others; leave one of them out"
            )
        return self._with_errors(likelihood, None) if errors else likelihood

    def _with_errors(self, likelihood: AbstractLikelihood, column: str | int | None) -> AbstractLikelihood:
        """Gaussian noise beside error bars."""
        if not likelihood.conjugate:
            raise ValueError(
                f"noise_std is for likelihood='gaussian', whose noise is beside the error bars; got "
                f"{shown(likelihood)}: leave one of them out"
            )
        return ErrorBars(noise_std=column)

    def _noise(self, likelihood: AbstractLikelihood) -> float | None:
        return check_noise(self.noise_variance, error_bars=likelihood.known_errors)

    def _noise_std(self) -> str | int | None:
        return check_column("noise_std", self.noise_std)

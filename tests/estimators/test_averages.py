"""Rows that are averages, or whose inputs have error bars: against quadrature, loops and dense algebra."""

from functools import partial
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from numpy.polynomial.hermite_e import hermegauss
from numpy.polynomial.legendre import leggauss
from scipy.stats import multivariate_normal

import vff
from vff import GPClassifier, GPRegressor, Matern12, Matern32, Matern52, Matern72, Matern92, parse_kernel
from vff.baselines import ExactGP
from vff.factors.blurred.basis import BlurredBasis
from vff.factors.blurred.variance import between_uncertain, between_widths, mean_square
from vff.kernels import HalfInteger

ORDERS = [Matern12, Matern32, Matern52, Matern72, Matern92]
WIDTH, STD = Matern32("t", width="h"), Matern32("t", std="h")


def gauss(kind: str, nodes: int = 40) -> tuple[np.ndarray, np.ndarray]:
    """Places in units of a width or a standard deviation, and their weights in an average."""
    z, w = leggauss(nodes) if kind == "width" else hermegauss(nodes)
    return (0.5 * z if kind == "width" else z), w / w.sum()


def wave(t: np.ndarray, h: np.ndarray | float = 0.0) -> np.ndarray:
    """sin(2 t), averaged over a width."""
    return np.sin(2.0 * t) * np.sinc(h * 2.0 / (2.0 * np.pi))


def table(n: int = 80, widest: float = 1.0, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"t": rng.uniform(0.0, 10.0, n), "h": rng.uniform(0.0, widest, n), "z": rng.uniform(size=n)})
    X["g"] = np.array(["a", "b", "c"])[rng.integers(3, size=n)]
    return X, wave(X["t"], X["h"]).to_numpy() + 0.1 * rng.standard_normal(n)


# --- covariances and features ----------------------------------------------------------------------------------------


def pieces(low: float, high: float, *breaks: float, nodes: int = 16) -> tuple[np.ndarray, np.ndarray]:
    """A quadrature over an interval in pieces."""
    z, w = leggauss(nodes)
    ends = sorted({low, high, *(one for one in breaks if low < one < high)})
    every = [(a + (b - a) * (z + 1) / 2, w * (b - a) / 2) for a, b in pairwise(ends)]
    return np.concatenate([x for x, _ in every]), np.concatenate([w for _, w in every])


def averaged_covariance(p: int, s: float, one: float, other: float) -> float:
    """Of averages over two intervals, by a quadrature on either side of the kink of k."""
    kernel, total = HalfInteger(p, 1.0), 0.0
    breaks = [side * 0.5 * other + s for side in (-1, 1)]
    for x, w in zip(*pieces(-0.5 * one, 0.5 * one, *breaks), strict=True):
        z, v = pieces(s - 0.5 * other, s + 0.5 * other, x)
        total += w * float(v @ kernel.covariance(z - x)) / (one * other)
    return total


@pytest.mark.parametrize("p", range(5))
def test_covariances_of_averages(p):
    cases = [(0.0, 1.3, 1.3), (0.7, 1.3, 0.4), (5.0, 2.0, 3.0), (0.2, 0.01, 0.02), (0.0, 6.0, 6.0)]
    for s, one, other in cases:
        got = between_widths(p, np.array([s]), np.array([one]), np.array([other]))[0]
        assert got == pytest.approx(averaged_covariance(p, s, one, other), abs=1e-9)
    for h in (1e-4, 0.3, 1.0, 5.0):
        assert mean_square(p, np.array([h]))[0] == pytest.approx(averaged_covariance(p, 0.0, h, h), abs=1e-11)
    assert mean_square(p, np.zeros(1))[0] == 1.0
    kernel = HalfInteger(p, 1.0)
    for s, one in ((0.0, 0.8), (1.5, 0.3)):  # a point and an average, and two points
        x, w = pieces(s - 0.5 * one, s + 0.5 * one, 0.0)
        got = between_widths(p, np.array([s]), np.array([one]), np.array([0.0]))[0]
        assert got == pytest.approx(w @ kernel.covariance(x) / one, abs=1e-12)
    assert between_widths(p, np.array([0.4]), np.zeros(1), np.zeros(1))[0] == kernel.covariance(np.array([0.4]))[0]
    for s, spread in ((0.0, 0.5), (1.0, 0.3), (3.0, 2.0)):
        z, w = pieces(-10.0, 10.0, -s / spread, nodes=60)
        expected = w @ (kernel.covariance(s + spread * z) * np.exp(-0.5 * z**2)) / np.sqrt(2 * np.pi)
        assert between_uncertain(p, np.array([s]), np.array([spread]))[0] == pytest.approx(expected, abs=1e-11)


@pytest.mark.parametrize("kind", ["width", "std"])
@pytest.mark.parametrize("q", range(7))
def test_features_and_gram_matrices_are_averages(kind, q):
    rng, (z, w) = np.random.default_rng(q), gauss(kind, 60)
    reach = {"width": 0.9, "std": 0.12}[kind]
    basis = BlurredBasis(7, q, kind, reach)
    t = np.stack([rng.uniform(-0.4, 0.4, 12), rng.uniform(0.0, reach, 12)], axis=1)
    phi = np.stack([basis.plain.evaluate(at + h * z) for at, h in t])
    mean = np.einsum("k,nkp->np", w, phi)
    gram = mean.T @ mean if kind == "width" else np.einsum("k,nkp,nkq->pq", w, phi, phi)
    np.testing.assert_allclose(basis.evaluate(t), mean, atol=1e-13)
    np.testing.assert_allclose(basis.pairs(basis.double.evaluate(t).sum(axis=0)), gram, atol=1e-12)
    for letters in (basis.single, basis.double):  # as engines sum them
        parts = [part.evaluate(t[:, d]) for d, part in enumerate(letters.parts)]
        products = (parts[0][:, :, None] * parts[1][:, None]).reshape(12, -1)
        np.testing.assert_allclose(letters.merged(products.T).T, letters.evaluate(t), atol=1e-12)


# --- bounds ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("leaf", ORDERS)
def test_the_bound_is_below_the_evidence_of_averages_and_close(leaf):
    X, y = table(25)
    kernel, n = leaf("t", width="h", variance=1.2, lengthscale=2.0), len(X)
    t, h, rate = X["t"].to_numpy(), X["h"].to_numpy(), np.sqrt(2 * leaf.order + 1) / 2.0
    z, w = gauss("width", 24)
    k = np.empty((n, n))
    for i in range(n):  # by quadrature; where intervals overlap, in pieces
        for j in range(i + 1):
            if abs(t[i] - t[j]) < 0.5 * (h[i] + h[j]) + 1e-9:
                own = averaged_covariance(leaf.order, rate * (t[i] - t[j]), *(rate * max(h[m], 1e-3) for m in (i, j)))
            else:
                apart = np.subtract.outer(t[i] + h[i] * z, t[j] + h[j] * z)
                own = w @ HalfInteger(leaf.order, rate).covariance(apart) @ w
            k[i, j] = k[j, i] = 1.2 * own
    exact = multivariate_normal(np.zeros(n), k + 0.01 * np.eye(n)).logpdf(y)
    how = {"noise_variance": 0.01, "optimizer": None, "normalize_y": False}
    bounds = [GPRegressor(kernel, frequencies=M, **how).fit(X, y).elbo_ for M in (15, 60)]
    assert bounds[0] <= bounds[1] + 1e-9 <= exact + 1e-4
    assert bounds[1] > exact - (0.1 if leaf.order else 10.0)  # the spectrum of a Matérn-1/2 ends late
    assert ExactGP(kernel, noise_variance=0.01, optimizer=None, normalize_y=False).fit(
        X, y
    ).log_marginal_likelihood_ == (pytest.approx(exact, abs=1e-3))


def loops(model: GPRegressor, X: pd.DataFrame, y: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
    """The bound with q(x) = p(x) at the values of a model, by its definition, and the coefficients under q."""
    prior, variance, noise = model.fit_.posterior.terms[0].factors[0], model.kernel_.variance, model.noise_variance_
    plain = Matern32("t").factor.prior(prior.domain.interval, prior.prior.basis, prior.values)
    z, w = gauss("std", 50)
    P = prior.basis.size
    G, b = np.zeros((P, P)), np.zeros(P)
    for (t, s), target in zip(X[["t", "h"]].to_numpy(), y, strict=True):
        for at, weight in zip(t + s * z, w, strict=True):
            phi = plain.features(np.array([at]))[0]
            G += weight * np.outer(phi, phi)
            b += weight * target * phi
    K = plain.K.to_dense() / variance
    A = K + G / noise
    mean = np.linalg.solve(A, b / noise)
    n, (_, first), (_, second) = len(y), np.linalg.slogdet(A), np.linalg.slogdet(K)
    misfit = y @ y / noise - (b / noise) @ mean
    rest = (n * variance - np.trace(np.linalg.solve(K, G))) / noise
    return -0.5 * (n * np.log(2 * np.pi * noise) + first - second + misfit + rest), mean, np.linalg.inv(A)


def test_the_bound_with_uncertain_inputs_is_its_definition():
    X, y = table(50, 0.3)
    kernel = Matern32("t", std="h", variance=1.2, lengthscale=2.0)
    how = {"noise_variance": 0.05, "optimizer": None, "normalize_y": False}
    model = GPRegressor(kernel, frequencies=12, domain=(-3.0, 13.0), **how).fit(X, y)
    bound, mean, S = loops(model, X, y)
    assert model.elbo_ == pytest.approx(bound, abs=1e-6)
    with pytest.raises(ValueError, match=r"reaches a std of 0\.4 of the inputs in column 't', and the features were"):
        model.predict_f(X.assign(h=0.4))
    # new rows: the mean over inputs, and the variance over both the input and the function
    prior, (z, w) = model.fit_.posterior.terms[0].factors[0], gauss("std", 50)
    plain = Matern32("t").factor.prior(prior.domain.interval, prior.prior.basis, prior.values)
    new = pd.DataFrame({"t": [1.0, 5.0, 7.3], "h": [0.25, 0.0, 0.28], "z": 0.0, "g": "a"})
    got = model.predict_f(new)
    for n, (t, s) in enumerate(new[["t", "h"]].to_numpy()):
        phi = plain.features(t + s * z)
        f, v = phi @ mean, 1.2 - 1.2 * plain.carried(t + s * z) + np.einsum("np,pq,nq->n", phi, S, phi)
        assert got[0][n] == pytest.approx(w @ f, abs=1e-7)
        assert got[1][n] == pytest.approx(w @ (v + f**2) - (w @ f) ** 2, abs=1e-7)


@pytest.mark.parametrize("kind", ["width", "std"])
def test_gradients_are_those_of_the_bound(kind):
    X, y = table(60, 0.4)
    model = GPRegressor(Matern52("t", **{kind: "h"}), frequencies=10).fit(X, y)

    def bound(**change):
        values = {"variance": model.kernel_.variance, "lengthscale": model.kernel_.lengthscale}
        noise = model.noise_variance_ * change.pop("noise", 1.0)
        values = {name: value * change.get(name, 1.0) for name, value in values.items()}
        kernel = Matern52("t", **{kind: "h"}, **values)
        return GPRegressor(kernel, frequencies=10, noise_variance=noise, optimizer=None).fit(X, y).elbo_

    best = bound()
    assert best == pytest.approx(model.elbo_, abs=1e-6)
    for name in ("variance", "lengthscale", "noise"):
        step = 1e-3
        slope = (bound(**{name: np.exp(step)}) - bound(**{name: np.exp(-step)})) / (2 * step)
        assert abs(slope) < 0.02
        assert max(bound(**{name: 1.2}), bound(**{name: 1 / 1.2})) < best


@pytest.mark.parametrize("kernel", [WIDTH, STD])
def test_rows_without_a_width_are_points(kernel):
    X, y = table(120)
    zero = X.assign(h=0.0)
    how = {"frequencies": 20, "hyperparameters": "maximise"}  # averages are not for inputs that may be uncertain
    one, other = GPRegressor(kernel, **how).fit(zero, y), GPRegressor(Matern32("t"), **how).fit(X, y)
    assert one.elbo_ == pytest.approx(other.elbo_, abs=1e-8)
    for left, right in zip(one.predict_f(zero), other.predict_f(X), strict=True):
        np.testing.assert_allclose(left, right, atol=1e-8)
    # nor do they in a domain that has room for others: at the same values, the same sums
    held = {"optimizer": None, "noise_variance": 0.01, "frequencies": 20}
    values = {"variance": 1.0, "lengthscale": 2.0}
    roomy = GPRegressor(kernel.set_params(**values), domain={"t": (-6.0, 16.0), "h": (0.0, 1.1)}, **held).fit(zero, y)
    plain = GPRegressor(Matern32("t", **values), domain=(-6.0, 16.0), **held).fit(X, y)
    kernel.set_params(variance=None, lengthscale=None)
    assert roomy.elbo_ == pytest.approx(plain.elbo_, abs=1e-10 * abs(plain.elbo_) + 1e-8)
    np.testing.assert_allclose(roomy.predict_f(zero)[0], plain.predict_f(X)[0], atol=1e-10)


# --- what it is for --------------------------------------------------------------------------------------------------


def test_coarse_bins_are_seen_through():
    """Draws of a Matérn-5/2 of lengthscale one, whose mean period is 4.9; bins are a third of that wide."""
    inside, errors, width = [], {"averages": [], "points": []}, 4.87 / 3.0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        omega, phase = rng.standard_t(5, size=400), rng.uniform(0.0, 2.0 * np.pi, 400)

        def f(t: np.ndarray, h: float, omega: np.ndarray = omega, phase: np.ndarray = phase) -> np.ndarray:
            waves = np.cos(np.multiply.outer(t, omega) + phase) * np.sinc(omega * h / (2.0 * np.pi))
            return np.sqrt(2.0 / omega.size) * waves.sum(axis=1)

        t = rng.uniform(1.0, 29.0, 300)
        y = f(t, width) + 0.1 * rng.standard_normal(t.size)
        at = np.linspace(2.0, 28.0, 200)
        new, truth = pd.DataFrame({"t": at, "h": 0.0}), f(at, 0.0)
        for name, kernel in (("averages", Matern52("t", width="h")), ("points", Matern52("t"))):
            model = GPRegressor(kernel, frequencies=50).fit(pd.DataFrame({"t": t, "h": width}), y)
            mean, variance = model.predict_f(new)
            errors[name].append(np.mean((mean - truth) ** 2))
            if name == "averages":
                inside.append(np.abs(mean - truth) < 1.96 * np.sqrt(variance))
    assert np.sqrt(np.mean(errors["averages"])) < 0.75 * np.sqrt(np.mean(errors["points"]))
    assert 0.9 <= np.mean(inside) <= 0.99


def test_noise_holds_what_uncertain_inputs_scatter():
    """With q(x) = p(x), the bound takes the misfit on average over inputs: (24.5). That is more than what y scatters.

    Inputs that follow the rows, by a loop over q(x) outside, give the noise back to the inputs.
    """
    rng = np.random.default_rng(3)
    x, s = rng.uniform(0.0, 10.0, 400), 0.15
    X = pd.DataFrame({"t": x + s * rng.standard_normal(400), "h": s})
    y = 1.5 * wave(x) + 0.2 * rng.standard_normal(400)
    plain = GPRegressor(Matern52("t"), frequencies=16).fit(X, y)
    fixed = GPRegressor(Matern52("t", std="h"), frequencies=16).fit(X, y)
    mean, variance = fixed.predict_f(X)  # of f over its input and itself
    assert fixed.noise_variance_ == pytest.approx(np.mean((y - mean) ** 2 + variance), rel=1e-3)
    assert fixed.noise_variance_ > plain.noise_variance_ > 2.0 * 0.2**2
    q, room = X.copy(), {"t": (-1.5, 11.5), "h": (0.0, 1.01 * s)}
    for _ in range(12):  # towards N(x | X, s^2) N(y | f(x), noise), f being straight near the middle of q(x)
        free = GPRegressor(Matern52("t", std="h"), frequencies=16, domain=room).fit(q, y)
        f, near = (free.predict(q.assign(t=q["t"] + step, h=0.0)) for step in (0.0, 1e-3))
        slope, noise = (near - f) / 1e-3, free.noise_variance_
        precision = s**-2 + slope**2 / noise
        aim = (X["t"] / s**2 + slope * (y - f + slope * q["t"]) / noise) / precision
        q = pd.DataFrame(
            {"t": q["t"] + 0.5 * (aim - q["t"]).clip(-0.1, 0.1), "h": (0.5 / q["h"] ** 2 + 0.5 * precision) ** -0.5}
        )
        q["t"] = q["t"].clip(-0.7, 10.7)
    assert np.sqrt(free.noise_variance_) == pytest.approx(0.2, abs=0.07)
    new = pd.DataFrame({"t": np.linspace(0.5, 9.5, 100), "h": 0.0})
    errors = [float(np.std(model.predict(new) - 1.5 * wave(new["t"]))) for model in (free, plain, fixed)]
    assert errors[0] < errors[1] < errors[2]


# --- everywhere ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["width", "std"])
def test_products_and_sums_have_the_gram_matrices_of_loops(kind):
    """Two terms that share an uncertain input: between them, too, products are averaged, not averages multiplied."""
    X, y = table(40, 0.3)
    leaf = Matern32("t", **{kind: "h"}, lengthscale=2.0)
    how = {"optimizer": None, "noise_variance": 0.1, "normalize_y": False, "engine": "auto"}
    kernel = leaf * Matern32("z", lengthscale=1.0) + leaf
    model = GPRegressor(kernel, frequencies={"t": 4, "t * z": (3, 2)}, **how).fit(X, y)
    terms, moments = model.fit_.posterior.terms, model.rows_.moments
    z, w = gauss(kind)
    blocks = {(s, t): np.zeros((terms[s].size, terms[t].size)) for s, t in ((0, 0), (0, 1), (1, 1))}
    for at, h, other in X[["t", "h", "z"]].to_numpy():
        unit = terms[0].domains[0].interval.to_unit(at + h * z)
        first, second = (term.factors[0].basis.plain.evaluate(unit) for term in terms)
        beside = terms[0].factors[1].basis.evaluate(terms[0].domains[1].to_unit(np.array([other])))[0]
        every = [np.kron(first, beside), second]
        weights = w
        if kind == "width":
            every, weights = [(w @ own)[None] for own in every], np.ones(1)
        for (s, t), block in blocks.items():
            block += every[s].T @ (weights[:, None] * every[t])
    np.testing.assert_allclose(moments.term(0).gram().dense(), blocks[0, 0], atol=1e-9)
    np.testing.assert_allclose(moments.term(1).gram().dense(), blocks[1, 1], atol=1e-9)
    np.testing.assert_allclose(moments.blocks[0, 1], blocks[0, 1], atol=1e-9)
    marginals, joint = model.predict_f(X), model.predict_f(X, full_covariance=True)
    np.testing.assert_allclose(np.diagonal(joint[1]), marginals[1], atol=1e-9)
    assert model.effects(X).mean.shape == (40, 2)
    np.testing.assert_allclose(model.effects(X).mean.sum(axis=1) + model.intercept_, marginals[0], atol=1e-9)


@pytest.mark.parametrize("kernel", [WIDTH, STD])
def test_sources_engines_and_parts_agree(kernel, tmp_path):
    X, y = table(150, 0.3)
    X["h"] = X["h"].round(1)
    whole = GPRegressor(kernel, frequencies=8).fit(X, y)
    X.assign(y=y).to_csv(tmp_path / "rows.csv", index=False)
    found = [GPRegressor(kernel, frequencies=8).fit(str(tmp_path / "rows.csv"), "y")]
    found += [GPRegressor(kernel, frequencies=8, engine=engine).fit(X, y) for engine in ("dense", "nufft", "table")]
    dask = pytest.importorskip("dask.dataframe")
    found.append(GPRegressor(kernel, frequencies=8).fit(dask.from_pandas(X.assign(y=y), npartitions=3), "y"))
    parts = GPRegressor(kernel, frequencies=8, domain=whole.domain_)
    found.append(parts.partial_fit(X[:70], y[:70]).partial_fit(X[70:], y[70:]))
    for model in found:
        assert model.elbo_ == pytest.approx(whole.elbo_, abs=1e-6)
        np.testing.assert_allclose(model.predict(X), whole.predict(X), atol=1e-6)


def test_a_database_answers_too():
    duckdb, pa = pytest.importorskip("duckdb"), pytest.importorskip("pyarrow")
    X, y = table(150, 0.3)
    X = X.round(1)
    rows = duckdb.from_arrow(pa.table({"t": X["t"].to_numpy(), "h": X["h"].to_numpy(), "y": y}))
    whole = GPRegressor(WIDTH, frequencies=8).fit(X, y)
    assert GPRegressor(WIDTH, frequencies=8).fit(vff.scan(rows), "y").elbo_ == pytest.approx(whole.elbo_, abs=1e-6)


@pytest.mark.parametrize("kernel", [WIDTH, STD])
def test_any_likelihood(kernel):
    X, _ = table(300, 0.5)
    rng, f = np.random.default_rng(1), wave(X["t"])
    counts = GPRegressor(kernel, likelihood="poisson", frequencies=10).fit(X, rng.poisson(np.exp(1.0 + f)))
    new = X.assign(h=0.0)
    assert np.corrcoef(counts.predict_f(new)[0], f)[0, 1] > 0.9
    posterior, x = counts.fit_.posterior, X[["t", "h"]].to_numpy()
    for one, other in zip(posterior.inside(posterior.rows(x), {}), posterior.marginals(x), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-10)
    labels = rng.uniform(size=300) < 1.0 / (1.0 + np.exp(-3.0 * f))
    assert GPClassifier(kernel, frequencies=10).fit(X, labels).score(X, labels) > 0.7


def test_draws_have_the_moments_of_predictions():
    X, y = table(100, 0.3)
    for kernel in (WIDTH, STD):
        model = GPRegressor(kernel, frequencies=8).fit(X, y)
        mean, std = model.predict(X[:10], return_std=True)
        drawn = model.sample_y(X[:10], 4000, random_state=0)
        np.testing.assert_allclose(drawn.mean(axis=1), mean, atol=5 * std.max() / np.sqrt(4000))
        np.testing.assert_allclose(drawn.std(axis=1), std, rtol=0.06)


# --- at the door -----------------------------------------------------------------------------------------------------


def test_texts_parameters_and_files(tmp_path):
    assert repr(Matern32("t", width="h", lengthscale=2.0)) == "Matern32('t', lengthscale=2, width='h')"
    for kernel in (WIDTH, Matern12(0, std=3), WIDTH * vff.Categorical("g") + STD):
        assert parse_kernel(repr(kernel)) == kernel
    assert WIDTH.columns == ("t", "h")
    assert WIDTH.name == "t"
    assert vff.kernels.normal_form(WIDTH)[0].key == ((("t", "h"), "Matern32"),)
    X, y = table(60)
    model = GPRegressor(WIDTH * vff.Categorical("g"), frequencies=5).fit(X, y)
    model.save(tmp_path / "model.vff")
    again = vff.load(tmp_path / "model.vff")
    assert again.kernel_ == model.kernel_
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    indices = GPRegressor(Matern32(0, width=1), frequencies={0: 5}, domain={0: (-1.0, 11.0)})
    assert indices.fit(X[["t", "h"]].to_numpy(), y).domain_[0] == (-1.0, 11.0)


def test_what_cannot_be_is_refused():
    X, y = table(60, 0.4)
    with pytest.raises(ValueError, match="a width or has an uncertain input, got width='h' and std='z'; name one"):
        Matern32("t", width="h", std="z")
    with pytest.raises(TypeError, match=r"Matern32: width must be a name or an index, got 1\.5"):
        Matern32("t", width=1.5)
    with pytest.raises(ValueError, match="takes 2 different columns"):
        Matern32("t", width="t")
    with pytest.raises(ValueError, match="column 'h' is the width of the rows in column 't' and holds -1"):
        GPRegressor(WIDTH).fit(X.assign(h=-1.0), y)
    with pytest.raises(ValueError, match="all rows must lie inside: widen its domain"):
        GPRegressor(WIDTH, domain=(0.0, 10.0)).fit(X, y)
    for kernel in (WIDTH, STD):
        model = GPRegressor(kernel, frequencies=5).fit(X, y)
        with pytest.raises(ValueError, match=r"X has no column 'h'.* X.assign\(h=0.0\) asks for the function itself"):
            model.predict(X.drop(columns="h"))
        with pytest.raises(ValueError, match="read together with another, as on a globe or where rows are averages"):
            model.predict_derivative(X, "t")
    with pytest.raises(ValueError, match="uncertain inputs must lie 5 of it inside the domain"):
        model.predict(X.assign(t=11.5))
    with pytest.raises(ValueError, match="inference='mcmc' takes rows with known inputs, and term t has uncertain"):
        GPRegressor(STD, inference="mcmc").fit(X, y)
    with pytest.raises(ValueError, match="whose inputs are uncertain, and baselines"):
        ExactGP(STD).fit(X, y)


def test_rows_may_look_beyond_the_domain_of_the_fit():
    """Averages go on across an edge, where features are tails, as the average of what points there say."""
    X, y = table(100, 0.5)
    model = GPRegressor(WIDTH, frequencies=10).fit(X, y)
    b = model.domain_["t"][1]
    z, w = pieces(b - 1.0, b + 2.0, b, nodes=40)
    with pytest.warns(vff.ExtrapolationWarning):
        points = model.predict_f(pd.DataFrame({"t": z, "h": 0.0}))[0]
    with pytest.warns(vff.ExtrapolationWarning):
        average = model.predict_f(pd.DataFrame({"t": [b + 0.5], "h": [3.0]}))[0]
    assert average[0] == pytest.approx(w @ points / 3.0, abs=1e-9)
    # and a width that no row of the fit had, within it
    z, w = pieces(2.0, 6.0, nodes=60)
    points = model.predict_f(pd.DataFrame({"t": z, "h": 0.0}))[0]
    average = model.predict_f(pd.DataFrame({"t": [4.0], "h": [4.0]}))[0]
    assert average[0] == pytest.approx(w @ points / 4.0, abs=1e-9)


def test_pictures_show_the_function_itself():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("Agg")
    X, y = table(100, 0.5)
    model = GPRegressor(WIDTH, frequencies=10).fit(X, y)
    drawn = vff.plot.fit(model, X, y).data
    expected = model.predict(pd.DataFrame({"t": drawn["x"], "h": 0.0}))
    np.testing.assert_allclose(drawn["mean"], expected, atol=1e-9)
    figure = vff.plot.effects(model)
    assert figure.axes[0].get_title().endswith("at h = 0")
    pyplot.close("all")


@pytest.mark.parametrize("kind", ["width", "std"])
def test_rows_with_a_missing_input_are_a_level_of_their_own(kind):
    rng = np.random.default_rng(5)
    frame = pd.DataFrame({"t": rng.uniform(1.0, 9.0, 60), "h": rng.uniform(0.0, 0.15, 60)})
    y = np.sin(frame.t) + 0.2 * rng.standard_normal(60)
    frame.loc[:4, "t"], frame.loc[3:9, "h"] = np.nan, np.nan
    gone = frame.isna().any(axis=1)
    y = y.where(~gone, y + 3.0).to_numpy()
    kernel = Matern32("t", variance=0.8, lengthscale=1.5, **{kind: "h"})
    settled = {"frequencies": 8, "domain": {"t": (0.0, 10.0), "h": (0.0, 0.15)}, "optimizer": None}
    make = partial(GPRegressor, kernel, **settled, noise_variance=0.04, normalize_y=False)
    model, there = make().fit(frame, y), make().fit(frame[~gone], y[~gone])
    alike = multivariate_normal(np.zeros(10), 0.8 * np.ones((10, 10)) + 0.04 * np.eye(10)).logpdf(y[gone])
    assert model.elbo_ == pytest.approx(there.elbo_ + alike, abs=1e-6)
    np.testing.assert_allclose(model.predict(frame[~gone]), there.predict(frame[~gone]), atol=1e-8)
    np.testing.assert_allclose(model.predict(frame[gone]), 0.8 * y[gone].sum() / (0.8 * 10 + 0.04), rtol=1e-8)
    parts = make().partial_fit(frame[~gone], y[~gone]).partial_fit(frame[gone], y[gone])
    assert parts.elbo_ == pytest.approx(model.elbo_, abs=1e-6)


def test_a_width_beside_a_name_is_a_name():
    with pytest.raises(TypeError, match=r"Matern32\('t'\): width names a column, as 't' does, got 3"):
        Matern32("t", width=3)
    assert Matern32(0, width=1).columns == (0, 1)
    with pytest.raises(TypeError, match=r"^Matern32.__init__\(\) got an unexpected keyword argument 'lenghtscale'"):
        Matern32("t", lenghtscale=2)


def test_a_domain_too_small_for_widths_says_so():
    X, y = table(40)
    with pytest.raises(ValueError, match=r"\(which is \[2, 9\] less 0.\d+ at each end, half the largest width or"):
        GPRegressor(WIDTH, domain={"t": (2, 9)}).fit(X, y)


def test_texts_name_widths_as_they_name_columns():
    X, y = table(40)
    for text in ("Matern32(t, width=h)", "s(t, width=h)", "s(t, width='h')", "smooth(t, 3/2, width=h) "):
        assert parse_kernel(text) == WIDTH
        assert parse_kernel(text, X) == WIDTH
    assert parse_kernel("s(t, std=`h`)", X) == STD
    assert parse_kernel("s(t, width=h) + .", X) == WIDTH + Matern32("z") + vff.Categorical("g")
    with pytest.raises(ValueError, match="perhaps 'h' was meant"):
        parse_kernel("s(t, width=hh)", X)
    assert GPRegressor("s(t, width=h)", frequencies=5).fit(X, y).column_indices_ == (0, 1)

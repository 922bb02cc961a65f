"""Functions on the globe: no seam, no pole, bounds under the exact evidence, and every way in and out."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from numpy.polynomial import Legendre
from scipy.stats import multivariate_normal
from sklearn.base import clone

import vff
from vff import GPClassifier, GPRegressor, Matern32, Periodic, Sphere, parse_kernel
from vff.baselines import ExactGP
from vff.cli import main
from vff.factors.sphere.basis import Globe
from vff.factors.sphere.factor import angles
from vff.factors.sphere.matern import SphereMatern, total

POLES = pd.DataFrame({"lat": [90.0] * 4 + [-90.0] * 3, "lon": [0.0, 57.0, -170.0, 300.0, 3.0, 180.0, -180.0], "t": 4.0})
SEAM = [pd.DataFrame({"lat": np.linspace(-80.0, 80.0, 9), "lon": lon, "t": 4.0}) for lon in (180.0, -180.0, 540.0)]


def stations(n: int = 300, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    lat, lon = np.degrees(np.arcsin(rng.uniform(-1.0, 1.0, n))), rng.uniform(-180.0, 180.0, n)
    return pd.DataFrame({"lat": lat, "lon": lon, "t": rng.uniform(0.0, 10.0, n)})


def field(X: pd.DataFrame) -> np.ndarray:
    lat, lon = np.radians(X["lat"]), np.radians(X["lon"])
    return np.asarray(np.sin(2.0 * lat) * np.cos(lon) + np.cos(lat) ** 2 * np.sin(2.0 * lon))


def noisy(X: pd.DataFrame, seed: int = 1) -> np.ndarray:
    return field(X) + 0.2 * np.random.default_rng(seed).standard_normal(len(X))


# --- the kernel ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("s", "a"), [(2.5, 0.03), (2.5, 3.0), (3.5, 800.0), (5.5, 0.5), (2.5, 1e5)])
def test_the_sum_over_all_degrees(s, a):
    """Term by term up to two million, and the integral of the rest."""
    k, N = np.arange(2_000_000.0), 2_000_000
    terms = (2.0 * k + 1.0) * (a + k * (k + 1.0)) ** -s
    expected = np.sum(terms[::-1]) + (N**2 + a - 0.25) ** (1.0 - s) / (s - 1.0)
    assert total(s, a) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("order", [1, 2, 4])
def test_slopes_of_variances(order):
    k, h = np.arange(9.0), 1e-6
    for lengthscale in (0.05, 0.4, 5.0):
        ends = [np.log(SphereMatern(order, lengthscale * np.exp(step)).power(k)) for step in (h, -h)]
        slope = SphereMatern(order, lengthscale).log_power_slope(k)
        np.testing.assert_allclose(slope, (ends[0] - ends[1]) / (2.0 * h), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("order", "lengthscale"), [(1, 2.0), (1, 0.3), (2, 0.1)])
def test_the_correlation_is_its_legendre_series(order, lengthscale):
    angle, kernel = np.array([0.0, 1e-3, 0.02, 0.3, 1.0, 3.0, np.pi]), SphereMatern(order, lengthscale)
    k = np.arange(100_000.0)
    power, expected = (2.0 * k + 1.0) * kernel.power(k), np.zeros(angle.size)
    before, now = np.ones(angle.size), np.cos(angle)
    for n in range(k.size):
        expected += power[n] * before
        before, now = now, ((2 * n + 3) * np.cos(angle) * now - (n + 1) * before) / (n + 2)
    np.testing.assert_allclose(kernel.correlation(angle), expected, atol=2e-10)
    assert kernel.correlation(np.zeros(1))[0] == pytest.approx(1.0, abs=1e-10)


def test_the_addition_theorem():
    x = Globe().to_unit(stations(12)[["lat", "lon"]].to_numpy())
    Y, cosine = vff.factors.sphere.basis.SphereBasis(6).evaluate(x), np.cos(angles(x, x))
    for degree in range(7):
        own = Y[:, degree**2 : (degree + 1) ** 2]
        np.testing.assert_allclose(own @ own.T, (2 * degree + 1) * Legendre.basis(degree)(cosine), atol=1e-12)


def test_degrees_of_arc():
    """A lengthscale of one degree in Norway is one in Kenya; near places are as the Matérn of the plane has them."""
    kernel = Sphere(0, 1, variance=1.0, lengthscale=5.0)
    for lat in (0.0, 60.0, 89.0):
        north = kernel([[lat, 10.0]], [[lat - 5.0, 10.0]])[0, 0]
        assert north == pytest.approx(kernel([[0.0, 0.0]], [[0.0, 5.0]])[0, 0], abs=1e-9)
    s = np.sqrt(3.0)
    assert kernel([[0.0, 0.0]], [[0.0, 5.0]])[0, 0] == pytest.approx((1.0 + s) * np.exp(-s), abs=3e-3)


# --- fits ------------------------------------------------------------------------------------------------------------


def test_no_seam_and_no_pole():
    X = stations()
    model = GPRegressor(Sphere("lat", "lon")).fit(X, noisy(X))
    for moment in zip(*(model.predict_f(own) for own in SEAM), strict=True):
        np.testing.assert_allclose(moment[0], moment[1], rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(moment[0], moment[2], rtol=1e-9, atol=1e-12)
    for moment in model.predict_f(POLES):
        assert np.ptp(moment[:4]) < 1e-9
        assert np.ptp(moment[4:]) < 1e-9
    new = stations(500, 7)
    assert np.std(model.predict(new) - field(new)) < 0.1


@pytest.mark.parametrize("order", [1, 2])
def test_the_bound_is_below_the_exact_evidence_and_close(order):
    X = stations(120)
    x, y = X[["lat", "lon"]].to_numpy(), noisy(X)
    kernel = Sphere("lat", "lon", variance=0.7, lengthscale=60.0, order=order)
    K = kernel(x, x) + 0.04 * np.eye(len(x))
    exact = multivariate_normal(np.zeros(len(x)), K).logpdf(y)
    held = {"noise_variance": 0.04, "optimizer": None, "normalize_y": False}
    bounds = [GPRegressor(kernel, frequencies=L, **held).fit(X, y).elbo_ for L in (6, 12, 24)]
    assert bounds[0] < bounds[1] < bounds[2] <= exact + 1e-8
    assert exact - bounds[2] < (0.3 if order == 1 else 0.01)
    model = GPRegressor(kernel, frequencies=24, **held).fit(X, y)
    new = stations(30, 5)
    k = kernel(new[["lat", "lon"]].to_numpy(), x)
    np.testing.assert_allclose(model.predict_f(new)[0], k @ np.linalg.solve(K, y), atol=3e-3)
    variance = 0.7 - np.einsum("ij,ji->i", k, np.linalg.solve(K, k.T))
    np.testing.assert_allclose(model.predict_f(new)[1], variance, atol=3e-3)


def test_the_exact_process_learns_the_same():
    X = stations(80)
    y = noisy(X)
    exact = ExactGP(Sphere("lat", "lon", order=2)).fit(X, y)
    model = GPRegressor(Sphere("lat", "lon", order=2), frequencies=24, hyperparameters="maximise").fit(X, y)
    assert model.kernel_.lengthscale == pytest.approx(exact.kernel_.lengthscale, rel=0.02)
    np.testing.assert_allclose(model.predict(X), exact.predict(X), atol=5e-3)


def test_products_and_sums():
    """A product with time, and a sum with other terms over its columns, which are other readings of them."""
    X = stations(200)
    y = noisy(X) * (1.0 + 0.1 * X["t"].to_numpy()) + 0.02 * X["lat"].to_numpy()
    kernel = Sphere("lat", "lon") * Matern32("t") + Matern32("lat") + Periodic("lon", 360.0)
    model = GPRegressor(kernel, frequencies={"(lat, lon) * t": (5, 3), "lat": 6, "lon": 4}).fit(X, y)
    assert model.frequencies_["(lat, lon) * t"] == (5, 3)
    assert np.std(y - model.predict(X)) < 0.5 * np.std(y)
    for moment in zip(*(model.predict_f(own) for own in SEAM), strict=True):
        np.testing.assert_allclose(moment[0], moment[1], rtol=1e-9, atol=1e-12)
    assert model.effects(X).names == ("(lat, lon) * t", "lat", "lon")
    assert model.get_params()["kernel__lat_lon__lengthscale"] is None
    dense = GPRegressor(kernel, frequencies={"(lat, lon) * t": (5, 3), "lat": 6, "lon": 4}, engine="dense").fit(X, y)
    assert dense.elbo_ == pytest.approx(model.elbo_, rel=1e-6)


def test_the_product_is_that_of_the_dense_kernels():
    X = stations(90)
    y, x = noisy(X), X[["lat", "lon"]].to_numpy()
    globe, time = (
        Sphere("lat", "lon", variance=0.7, lengthscale=80.0, order=2),
        Matern32("t", lengthscale=20.0, variance=1.0),
    )
    K = globe(x, x) * time(X["t"], X["t"]) + 0.1 * np.eye(len(x))
    exact = multivariate_normal(np.zeros(len(x)), K).logpdf(y)
    held = {"noise_variance": 0.1, "optimizer": None, "normalize_y": False}
    model = GPRegressor(globe * time, frequencies=(12), **held).fit(X, y)
    assert exact - 1.0 < model.elbo_ <= exact


def test_iterations_agree_with_a_factor():
    """Beyond the features that a factor is made for; its nodes stand for the rows."""
    X = stations(150)
    y, kernel = noisy(X), Sphere("lat", "lon", variance=0.7, lengthscale=60.0)
    held = {"noise_variance": 0.04, "optimizer": None}
    small, large = (GPRegressor(kernel, frequencies=L, **held).fit(X, y) for L in (40, 68))
    assert large.elbo_ == pytest.approx(small.elbo_, abs=1.0)
    np.testing.assert_allclose(large.predict(X), small.predict(X), atol=2e-2)


def test_other_likelihoods():
    X = stations(400)
    rng = np.random.default_rng(3)
    counts = rng.poisson(np.exp(1.0 + field(X)))
    model = GPRegressor(Sphere("lat", "lon"), likelihood="poisson", frequencies=8).fit(X, counts)
    assert np.corrcoef(np.log(model.predict(X)), field(X))[0, 1] > 0.95
    assert np.ptp(model.predict(POLES)[:4]) < 1e-8
    labels = np.where(field(X) + 0.1 * rng.standard_normal(400) > 0.0, "warm", "cold")
    classes = GPClassifier(Sphere("lat", "lon"), frequencies=8).fit(X, labels)
    assert classes.score(X, labels) > 0.9
    factored = GPRegressor(
        Sphere("lat", "lon") * Matern32("t"), likelihood="poisson", frequencies=3, covariance="kronecker"
    )
    assert np.corrcoef(factored.fit(X, counts).predict(X), counts)[0, 1] > 0.5


def test_chains():
    X = stations(150)
    plan = {"inference": "mcmc", "random_state": 0, "chains": 2, "warmup": 150, "draws": 150}
    y = noisy(X)
    variational = GPRegressor(Sphere("lat", "lon"), frequencies=5).fit(X, y)
    sampled = GPRegressor(Sphere("lat", "lon"), frequencies=5, **plan).fit(X, y)
    np.testing.assert_allclose(sampled.predict(X), variational.predict(X), atol=0.1)
    assert np.ptp(sampled.predict_f(POLES)[0][:4]) < 1e-8
    counts = np.random.default_rng(3).poisson(np.exp(1.0 + field(X)))
    poisson = GPRegressor(Sphere("lat", "lon"), frequencies=4, likelihood="poisson", **plan).fit(X, counts)
    assert np.corrcoef(np.log(poisson.predict(X)), field(X))[0, 1] > 0.9


# --- ways in and out -------------------------------------------------------------------------------------------------


def test_files_hold_it(tmp_path):
    X = stations(100)
    model = GPRegressor(Sphere("lat", "lon") + Sphere("lat", "lon", order=2) * Matern32("t"), frequencies=3)
    model.fit(X, noisy(X)).save(tmp_path / "globe.vff")
    again = vff.load(tmp_path / "globe.vff")
    assert again.kernel_ == model.kernel_
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_texts():
    kernel = Sphere("lat", "lon", lengthscale=20.0, order=2) * Matern32("t") + Sphere("lat", "lon")
    assert repr(kernel) == "Sphere('lat', 'lon', lengthscale=20, order=2) * Matern32('t') + Sphere('lat', 'lon')"
    assert parse_kernel(repr(kernel)) == kernel
    with pytest.raises(ValueError, match="and another column, of 2 that Sphere reads, was expected"):
        parse_kernel("Sphere('lat')")
    with pytest.raises(ValueError, match="2 different columns"):
        Sphere("lat", "lat")
    with pytest.raises(ValueError, match="order must be one of 1, 2, 3, 4"):
        Sphere("lat", "lon", order=7)
    with pytest.raises(ValueError, match="one factor per column"):
        _ = Sphere("lat", "lon") * Sphere("lat", "lon")


def test_the_command_line(tmp_path, capsys):
    X = stations(200)
    X.assign(warm=noisy(X)).to_csv(tmp_path / "stations.csv", index=False)
    files = [str(tmp_path / name) for name in ("stations.csv", "model.vff", "new.csv", "map.png", "map.csv")]
    terms = ["--terms", "sphere(lat, lon) + t", "--frequencies", "`(lat, lon)`=8, t=3"]
    assert main(["fit", files[0], "--target", "warm", *terms, "--out", files[1]]) == 0
    assert main(["predict", files[1], files[0], "--out", files[2]]) == 0
    assert np.std(pd.read_csv(files[2])["mean"] - field(X)) < 0.2
    assert main(["effects", files[1], "--out", files[3]]) == 0
    assert main(["effects", files[1], "--out", files[4]]) == 0
    assert main(["info", files[1]]) == 0
    assert "(lat, lon)" in capsys.readouterr().out


def test_sources_agree(tmp_path):
    dask, duckdb = pytest.importorskip("dask.dataframe"), pytest.importorskip("duckdb")
    X = stations(400).round({"lat": 0, "lon": -1, "t": 0})
    frame = X.assign(y=noisy(X))
    model = GPRegressor(Sphere("lat", "lon") + Matern32("t"), frequencies={"(lat, lon)": 6, "t": 3})
    whole = clone(model).fit(X, frame["y"])
    parts = clone(model).fit(dask.from_pandas(frame, npartitions=3), "y")
    asked = clone(model).fit(duckdb.from_arrow(pa.Table.from_pandas(frame)), "y")
    frame.to_parquet(tmp_path / "stations.parquet")
    read = clone(model).fit(tmp_path / "stations.parquet", "y")
    for other in (parts, asked, read):
        assert other.elbo_ == pytest.approx(whole.elbo_, rel=1e-8)
        np.testing.assert_allclose(other.predict(X), whole.predict(X), rtol=1e-5, atol=1e-6)


def test_what_is_not_on_the_globe_is_refused():
    X, y = stations(50), noisy(stations(50))
    with pytest.raises(ValueError, match=r"expects its latitude first.* write Sphere\('lat', 'lon'\)"):
        GPRegressor(Sphere("lon", "lat")).fit(X, y)
    with pytest.raises(ValueError, match="give degrees north of the equator"):
        GPRegressor(Sphere("lat", "lon")).fit(X.assign(lat=3.0 * X["lat"]), y)
    model = GPRegressor(Sphere("lat", "lon"), frequencies=3).fit(X, y)
    with pytest.raises(ValueError, match=r"column 'lat' reaches \[100, 100\]"):
        model.predict(X.assign(lat=100.0))
    with pytest.raises(ValueError, match="it uses '\\(lat, lon\\)'"):
        GPRegressor(Sphere("lat", "lon"), frequencies={"lat": 3}).fit(X, y)
    with pytest.raises(ValueError, match="which has no domain"):
        GPRegressor(Sphere("lat", "lon"), domain={"(lat, lon)": (0.0, 1.0)}).fit(X, y)


def test_maps():
    X = stations(80)
    both = GPRegressor(Sphere("lat", "lon") + Matern32("lat"), frequencies=4).fit(X, noisy(X))
    for model in (GPRegressor(Sphere("lat", "lon"), frequencies=4).fit(X, noisy(X)), both):
        figure = vff.plot.map(model, X, noisy(X))
        ax = next(own for own in figure.axes if own.get_label() == "mean")
        assert (ax.get_xlim(), ax.get_ylim()) == ((-180.0, 180.0), (-90.0, 90.0))
        assert (ax.get_xlabel(), figure.axes[0].get_ylabel()) == ("lon", "lat")
        figure.canvas.draw()
        assert {own.get_text() for own in ax.get_xticklabels()} >= {"60° W", "0°", "60° E", "180°"}
        assert {own.get_text() for own in ax.get_yticklabels()} >= {"30° S", "0°", "90° N"}
    product = GPRegressor(Matern32("t") * Sphere("lat", "lon"), frequencies=3).fit(X, noisy(X))
    (panel, *_) = vff.plot.effects(product).axes
    assert (panel.get_xlabel(), panel.get_ylabel()) == ("lon", "lat")


def test_interactions_are_looked_for():
    X = stations(300)
    y = noisy(X) * np.where(X["t"] > 5.0, 2.0, -1.0)
    model = GPRegressor(Sphere("lat", "lon") + Matern32("t"), frequencies=4).fit(X, y)
    (best,) = vff.suggest_interactions(model, X, y)
    assert best.columns == ("(lat, lon)", "t")
    assert best.gain > 10.0


def test_a_globe_has_two_columns_and_no_slope_along_one():
    with pytest.raises(TypeError, match="needs two columns, latitude and longitude; write Sphere"):
        Sphere("lat")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"lat": rng.uniform(-60, 60, 80), "lon": rng.uniform(-180, 180, 80)})
    model = GPRegressor(Sphere("lat", "lon") + vff.Linear("lat"), frequencies=3).fit(frame, frame["lat"])
    with pytest.raises(ValueError, match="read together with another"):
        model.predict_derivative(frame, "lat")

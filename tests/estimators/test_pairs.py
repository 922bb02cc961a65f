"""Pairs that join a sum: the true one does, none where there is none, from any source and under any likelihood."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import vff
from vff import Categorical, GPClassifier, GPRegressor, Linear, Matern32, between, fixed, suggest_interactions
from vff.estimators.pairs import At, Trials
from vff.estimators.tried import TriedInteractions, TriedPair
from vff.likelihoods import Poisson
from vff.parameters import bounds_of
from vff.priors import LogNormal

NAMES = ("a", "b", "c")
MAINS = Matern32("a") + Matern32("b") + Matern32("c")
DOMAIN = dict.fromkeys(NAMES, (-1.0, 1.0))


def table(strength: float, n: int = 240, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Few values per column, so that a database counts them; b and c interact."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({name: rng.integers(-10, 11, n) / 10.0 for name in NAMES}).assign(g=rng.choice(list("xy"), n))
    f = np.sin(3 * frame.a) + 0.5 * frame.b + strength * frame.b * frame.c
    return frame, f.to_numpy()


def regressor(**more) -> GPRegressor:
    return GPRegressor(**{"interactions": "auto", "frequencies": 4, "domain": DOMAIN, **more})


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    frame, f = table(2.0)
    rng = np.random.default_rng(1)
    return frame.assign(
        y=f + 0.2 * rng.normal(size=len(f)),
        count=rng.poisson(np.exp(f)),
        label=np.where(rng.uniform(size=len(f)) < 1.0 / (1.0 + np.exp(-3.0 * f)), "yes", "no"),
    )


@pytest.fixture(scope="module")
def fitted(rows) -> GPRegressor:
    return regressor().fit(rows[[*NAMES, "g", "y"]], "y")


@pytest.fixture(scope="module")
def memory(rows) -> GPRegressor:
    return regressor().fit(rows[[*NAMES, "y"]], "y")


@pytest.fixture(scope="module")
def additive(rows) -> GPRegressor:
    return regressor(interactions=None, hyperparameters="maximise").fit(rows[[*NAMES, "y"]], "y")


@pytest.fixture(scope="module")
def counted(rows) -> GPRegressor:
    return regressor(likelihood="poisson").fit(rows[[*NAMES, "count"]], "count")


def joined(model) -> list[str]:
    return [pair.name for pair in model.interactions_.joined]


def test_the_true_pair_joins_and_no_other(fitted):
    tried = fitted.interactions_
    assert joined(fitted) == ["b * c"]
    assert len(tried) == 6
    assert tried.needed == pytest.approx(3.0 + np.log(6.0))
    assert tried[0].gain > tried.needed
    assert all(pair.gain is None and pair.why for pair in list(tried)[1:])
    assert len(fitted.kernel_.terms) == 5
    assert "b * c" in fitted.frequencies_
    assert "pairs" in fitted.timing_
    assert fitted.notes_[0].startswith("1 of 6 pairs joined the sum and raised the bound by ")
    assert f"the next, {tried[1].name}, would have gained about" in fitted.notes_[0]


def test_the_fit_is_that_of_the_kernel_with_the_product(fitted, rows):
    kernel = MAINS + Categorical("g") + Matern32("b") * Matern32("c")
    written = GPRegressor(kernel, frequencies=4, domain=DOMAIN).fit(rows[[*NAMES, "g", "y"]], "y")
    assert fitted.elbo_ > written.elbo_ - 1.0  # from another start
    assert fitted.statistics_.binding.identity == written.statistics_.binding.identity
    np.testing.assert_allclose(fitted.predict(rows), written.predict(rows), atol=0.05)


def test_the_gain_of_a_pair_is_that_of_a_fit(rows):
    """With the same functions, the bound rises by what the sums said; with more, by no less."""
    X = rows[list(NAMES)]
    chosen = GPRegressor(MAINS, interactions=1, frequencies=4).fit(X, rows.y)
    (pair,) = chosen.interactions_.joined
    assert chosen.interactions_.rise is not None
    assert pair.gain is not None
    assert pair.gain < chosen.interactions_.rise + 0.1
    kernel = MAINS + Matern32("b") * Matern32("c")
    harmonics = {**dict.fromkeys(NAMES, 4), pair.name: 5}
    some = GPRegressor(kernel, frequencies=harmonics, edges={pair.name: 2}).fit(X, rows.y)
    rise = some.elbo_ - GPRegressor(MAINS, frequencies=4).fit(X, rows.y).elbo_
    assert pair.gain == pytest.approx(rise, abs=0.1)


HELD_B = Matern32("b", variance=between(0.1, 10.0), lengthscale=fixed(0.6))
SAID = {
    "error bars": {"noise_std": "err"},
    "a noise that is held": {"noise_variance": fixed(0.08)},
    "a lengthscale that is held": {"kernel": Matern32("a") + HELD_B + Matern32("c")},
    "priors": {"priors": {"lengthscale": LogNormal(0.4, 0.1), "noise_variance": LogNormal(0.1, 0.1)}},
}


@pytest.mark.parametrize("name", SAID)
def test_the_gain_of_a_pair_is_that_of_a_fit_with_what_was_said_beforehand(name, rows):
    """Error bars, held numbers, bounds and priors are those of the fit while pairs are tried."""
    rng, f = np.random.default_rng(5), table(2.0)[1]
    err = np.where(rng.uniform(size=len(rows)) < 0.5, 0.05, 2.0)
    own = rows[list(NAMES)].assign(err=err, y=f + err * rng.normal(size=len(rows)))
    own = own if name == "error bars" else own.assign(y=rows.y)
    how = {"kernel": MAINS, **SAID[name]}
    chosen = GPRegressor(**how, interactions=1, frequencies=4).fit(own, "y")
    (pair,) = chosen.interactions_.joined
    assert pair.name == "b * c"
    left = HELD_B.bare(but_known=True) if name == "a lengthscale that is held" else Matern32("b")
    harmonics = {**dict.fromkeys(NAMES, 4), pair.name: 5}
    more = {**how, "kernel": how["kernel"] + left * Matern32("c")}
    some = GPRegressor(**more, frequencies=harmonics, edges={pair.name: 2}).fit(own, "y")
    alone = GPRegressor(**how, frequencies=4).fit(own, "y")
    assert pair.gain == pytest.approx(some.elbo_ - alone.elbo_, abs=0.1, rel=5e-3)  # one top or another
    product = chosen.kernel_.terms[-1]
    if name == "a lengthscale that is held":
        assert bounds_of(product.factors[0].lengthscale) == (0.6, 0.6)
        assert bounds_of(product.factors[0].variance) is None
        (best, *_) = suggest_interactions(alone, own, "y")
        assert bounds_of(best.kernel.factors[0].lengthscale) == (0.6, 0.6)
        assert bounds_of(best.kernel.factors[0].variance) is None


def test_noise_that_is_known_hides_no_pair():
    """Where noise may not be what a sum misses, rough terms leave no residuals: pairs are seen with noise learnt."""
    rng, n = np.random.default_rng(0), 100
    own = pd.DataFrame({"a": rng.uniform(0, 10, n), "b": rng.uniform(0, 1, n)}).assign(err=0.02)
    own["y"] = 2.0 * np.sin(own.a) * own.b + 0.02 * rng.normal(size=n)
    how = {"kernel": Matern32("a") + Matern32("b"), "noise_std": "err", "noise_variance": 0.0}
    model = GPRegressor(**how, interactions=1).fit(own, "y")
    assert joined(model) == ["a * b"]
    assert model.interactions_.rise > 50.0
    assert model.noise_variance_ == 0.0


@pytest.mark.parametrize("seed", range(3))
def test_no_pair_joins_where_there_is_none(seed):
    frame, f = table(0.0, seed=seed)
    y = f + 0.5 * np.random.default_rng(seed + 100).normal(size=len(f))
    model = regressor().fit(frame, y)
    assert joined(model) == []
    assert model.interactions_.rise is None
    assert model.notes_[0].startswith("none of 6 pairs joined the sum; the best, ")
    assert model.elbo_ == pytest.approx(regressor(interactions=None).fit(frame, y).elbo_, abs=1e-6)


def test_at_most_as_many_join_as_may():
    frame, f = table(2.0, n=400)
    y = f + np.where(frame.g == "x", 2.0, -2.0) * frame.a + 0.2 * np.random.default_rng(0).normal(size=len(f))
    both, one = regressor().fit(frame, y), regressor(interactions=1).fit(frame, y)
    assert sorted(joined(both)) == ["a * g", "b * c"]
    assert len(joined(one)) == 1
    assert one.interactions_[1].why == "enough had joined"
    assert "enough had joined" in one.notes_[0]


def test_two_pairs_that_tell_one_story_do_not_both_join_and_a_hidden_one_does():
    """c is nearly b, so that a * b and a * c rank first; d * e shows when a * b is there."""
    rng = np.random.default_rng(0)
    a, b, d, e = rng.uniform(-1, 1, (4, 300))
    X = pd.DataFrame({"a": a, "b": b, "c": b + 0.2 * rng.normal(size=300), "d": d, "e": e})
    y = 3 * a * b + 0.4 * d * e + 0.1 * rng.normal(size=300)
    model = GPRegressor(interactions="auto", frequencies=3).fit(X, y)
    assert joined(model) == ["a * b", "d * e"]
    first = GPRegressor(frequencies=3).fit(X, y)
    assert [one.name for one in suggest_interactions(first, X, y)][:2] == ["a * b", "a * c"]


@pytest.fixture(scope="module")
def sources(rows, tmp_path_factory):
    pytest.importorskip("pyarrow")
    folder = tmp_path_factory.mktemp("rows")

    def of(name: str, target: str):
        own = rows[[*NAMES, target]]
        if name == "csv":
            own.to_csv(folder / f"{target}.csv", index=False)
            return str(folder / f"{target}.csv")
        if name == "chunks":
            return lambda: iter([own.iloc[:100], own.iloc[100:]])
        if name == "dask":
            return pytest.importorskip("dask.dataframe").from_pandas(own, npartitions=2)
        return pytest.importorskip("duckdb").from_df(own)

    return of


@pytest.mark.parametrize("name", ["csv", "chunks", "dask", "duckdb"])
def test_the_same_pairs_join_wherever_the_rows_are(name, memory, additive, sources):
    model = regressor().fit(sources(name, "y"), "y")
    assert joined(model) == joined(memory) == ["b * c"]
    for one, other in zip(model.interactions_, memory.interactions_, strict=True):
        assert one.expected == pytest.approx(other.expected, rel=1e-6, abs=1e-3)
    assert model.elbo_ == pytest.approx(memory.elbo_, abs=1e-5)
    best = suggest_interactions(additive, sources(name, "y"), "y")[0]
    assert best.columns == ("b", "c")
    assert best.gain == pytest.approx(memory.interactions_[0].expected, rel=1e-6)


@pytest.mark.parametrize("name", ["csv", "duckdb"])
def test_counts_from_memory_and_elsewhere(name, counted, sources):
    model = regressor(likelihood="poisson").fit(sources(name, "count"), "count")
    assert joined(model) == joined(counted) == ["b * c"]
    assert model.elbo_ == pytest.approx(counted.elbo_, abs=0.1)
    assert counted.interactions_.rise > counted.interactions_.needed


def test_an_offset_of_counts_is_an_exposure(rows):
    """log(exposure) is added to the function either way: the same is expected, gained and learnt."""
    log_exposure = np.random.default_rng(3).normal(size=len(rows))
    mean = np.log(rows["count"] + 0.5) + log_exposure
    own = rows[[*NAMES]].assign(
        off=log_exposure, e=np.exp(log_exposure), count=np.random.default_rng(4).poisson(np.exp(mean))
    )
    kinds = ({"likelihood": "poisson", "offset": "off"}, {"likelihood": Poisson(exposure="e")})
    tried = [regressor(kernel=MAINS, frequencies=2, interactions=1, **own_kind).fit(own, "count") for own_kind in kinds]
    assert joined(tried[0]) == joined(tried[1]) == ["b * c"]
    for one, other in zip(*(model.interactions_ for model in tried), strict=True):
        assert one.columns == other.columns
        assert one.expected == pytest.approx(other.expected, abs=1e-3)
    one, other = (model.interactions_[0] for model in tried)
    assert one.gain == pytest.approx(other.gain, abs=1e-2)


def test_labels(rows, sources):
    model = GPClassifier(interactions="auto", frequencies=4).fit(rows[[*NAMES, "label"]], "label")
    assert joined(model) == ["b * c"]
    additive = GPClassifier(frequencies=4).fit(rows[list(NAMES)], rows.label)
    found = [
        suggest_interactions(additive, *own)
        for own in ((rows[list(NAMES)], rows.label), (sources("csv", "label"), "label"))
    ]
    assert found[0][0].columns == found[1][0].columns == ("b", "c")
    assert found[1][0].gain == pytest.approx(found[0][0].gain, rel=1e-6)


def test_every_class_chooses_its_own_pairs(rows, tmp_path: Path):
    labels = np.where(rows.a > 0.3, "third", rows.label)
    model = GPClassifier(interactions=1, frequencies=2).fit(rows[["b", "c"]], labels)
    assert len(model.estimators_) == 3
    assert sum("1 pair joined the sum" in note for note in model.notes_) == 3
    model.save(tmp_path / "classes.vff")
    assert vff.load(tmp_path / "classes.vff").notes_ == model.notes_
    with pytest.raises(ValueError, match=r"one for each of 3 classes; ask for estimators_\[k\]"):
        suggest_interactions(model, rows[["b", "c"]], labels)


def test_pairs_of_the_kernel_stay_and_lines_keep_their_origin(rows):
    X = rows[list(NAMES)].assign(b=rows.b + 7.0)
    kernel = Linear("b") + Linear("c") + Matern32("a") + Matern32("a") * Linear("c")
    model = GPRegressor(kernel, frequencies=4, interactions=3).fit(X, rows.y)
    names = [pair.name for pair in model.interactions_]
    assert sorted(names) == ["b * a", "b * c"]
    assert joined(model) == ["b * c"]
    product = model.kernel_.terms[-1]
    assert [type(factor).__name__ for factor in product.factors] == ["Linear", "Linear"]
    assert product.factors[0].origin == pytest.approx(7.0, abs=0.1)


def test_files_keep_what_was_tried(fitted, rows, tmp_path: Path):
    fitted.save(tmp_path / "m.vff")
    loaded = vff.load(tmp_path / "m.vff")
    assert loaded.interactions_ == fitted.interactions_
    assert loaded.notes_ == fitted.notes_
    assert (loaded.predict(rows) == fitted.predict(rows)).all()
    more = loaded.partial_fit(rows[[*NAMES, "g"]], rows.y)
    assert joined(more) == ["b * c"]
    assert len(more.kernel_.terms) == 5


def test_rows_that_come_later_find_the_pairs_settled(fitted, rows):
    parts = [rows[[*NAMES, "g", "y"]].iloc[:160], rows[[*NAMES, "g", "y"]].iloc[160:]]
    model = regressor().partial_fit(parts[0], "y").partial_fit(parts[1], "y")
    assert joined(model) == ["b * c"]
    assert model.elbo_ == pytest.approx(fitted.elbo_, abs=0.1)
    back = model.forget(parts[1], "y")
    assert back.statistics_.n == 160
    assert joined(back) == ["b * c"]
    with pytest.raises(ValueError, match="collect sums rows for the terms of a kernel, and interactions are products"):
        regressor().collect(parts[0], "y")


def test_an_offset_in_the_text_is_found_by_later_rows(rows):
    own = rows[[*NAMES, "y"]].rename(columns={"a": "off"})
    own["y"] += own.off
    model = regressor(kernel="s(b) + s(c) + offset(off)", domain={"b": (-1.0, 1.0), "c": (-1.0, 1.0)})
    model.partial_fit(own[:150], "y").partial_fit(own[150:], "y")
    assert joined(model) == ["b * c"]
    assert model.offset_ == "off"
    left = model.statistics_.moments.recentred(0.0).target_squared
    assert left == pytest.approx(np.sum((own.y - own.off) ** 2))
    alone = clone(model).set_params(interactions=None).fit(own, "y")
    best, *_ = suggest_interactions(alone, own, "y")
    written = clone(alone).set_params(kernel="s(b) + s(c)", offset="off").fit(own, "y")
    assert best.gain == pytest.approx(suggest_interactions(written, own, "y")[0].gain)
    with pytest.raises(ValueError, match="offset is now 'b', but"):
        model.set_params(kernel="s(b) + s(c)", offset="b").partial_fit(own, "y")


def test_priors_by_column_are_of_the_term_of_that_column(rows):
    """A product that joins in the middle of a fit changes no name."""
    own = rows[[*NAMES, "y"]]
    by_name = {"lengthscale[b]": 0.7, "lengthscale[c]": LogNormal(0.5, 0.1)}
    model = regressor(kernel=MAINS, priors=by_name).fit(own, "y")
    assert joined(model) == ["b * c"]
    _, b, c, product = model.kernel_.terms
    assert b.lengthscale == pytest.approx(0.7)
    assert c.lengthscale == pytest.approx(0.5, rel=0.3)
    assert product.factors[0].lengthscale != pytest.approx(0.7, rel=1e-3)
    kernel = MAINS + Matern32("b") * Matern32("c")
    earlier = {"lengthscale[b in b]": 0.7, "lengthscale[b in b * c]": 0.9}
    written = regressor(kernel=kernel, interactions=None, priors=earlier).fit(own, "y")
    assert written.kernel_.terms[1].lengthscale == pytest.approx(0.7)
    assert written.kernel_.terms[3].factors[0].lengthscale == pytest.approx(0.9)


def test_a_second_fit_chooses_again(rows):
    model = regressor().fit(rows[list(NAMES)], rows.y)
    assert joined(model) == ["b * c"]
    assert (
        joined(model.fit(rows[list(NAMES)], np.sin(rows.a) + 0.3 * np.random.default_rng(0).normal(size=len(rows))))
        == []
    )
    model.set_params(interactions=None).fit(rows[list(NAMES)], rows.y)
    assert model.interactions_ is None


def test_chains_sample_the_pairs_that_were_chosen(rows):
    pytest.importorskip("blackjax")
    how = {"inference": "mcmc", "draws": 20, "warmup": 20, "chains": 1, "random_state": 0}
    model = GPRegressor(interactions=1, frequencies=2, **how).fit(rows[["b", "c"]], rows.y)
    assert joined(model) == ["b * c"]
    assert any("b * c" in name for name in model.samples_.values)


def test_structured_covariances_fit_the_pairs_that_were_chosen(rows):
    how = {"likelihood": "poisson", "covariance": "factorised", "frequencies": 2}
    model = GPRegressor(interactions=1, **how).fit(rows[["b", "c"]], rows["count"])
    assert joined(model) == ["b * c"]
    assert model.solver_ == "factorised"


def test_it_is_a_parameter_like_any_other(rows):
    assert clone(regressor()).interactions == "auto"
    model = GPRegressor(Matern32("b") + Matern32("c"), frequencies=3)
    search = GridSearchCV(model, {"interactions": [None, 1]}, cv=2).fit(rows[list(NAMES)], rows.y)
    assert search.best_params_ == {"interactions": 1}


@pytest.mark.parametrize("value", [0, -1, 1.5, "all", True, [("a", "b")]])
def test_what_is_no_number_of_pairs_is_refused(value, rows):
    with pytest.raises(ValueError, match=r"interactions must be None, 'auto' \(at most 5 pairs\) or a whole number"):
        regressor(interactions=value).fit(rows[list(NAMES)], rows.y)


def test_it_says_what_it_needs(rows):
    with pytest.raises(ValueError, match="optimizer=None keeps those that were given; leave optimizer='lbfgs'"):
        regressor(optimizer=None).fit(rows[list(NAMES)], rows.y)
    with pytest.raises(ValueError, match="reading the rows again, and an iterator gives them once"):
        regressor().fit(iter([rows[[*NAMES, "y"]]]), "y")


def test_a_sum_without_pairs_says_so(rows):
    model = GPRegressor(Matern32("a"), interactions="auto", frequencies=4).fit(rows, rows.y)
    assert len(model.interactions_) == 0
    assert repr(model.interactions_) == "no pairs of terms to look at"
    assert model.notes_[0] == "interactions: the sum has no two terms of different columns to multiply"


def test_too_many_levels_are_not_looked_at():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"h": rng.permutation(np.arange(300) % 150).astype(str), "x": rng.uniform(size=300)})
    kernel = Categorical("h") + Matern32("x")
    model = GPRegressor(kernel, interactions="auto", frequencies=3).fit(frame, rng.normal(size=300))
    (pair,) = model.interactions_
    assert (pair.expected, pair.joined) == (None, False)
    assert "features are too many to look at" in pair.why
    assert model.notes_[0] == "none of 1 pair joined the sum"


def test_the_weakest_pairs_go_where_features_are_few():
    """As many as gained less, all together, than the others are expected to miss; never all."""
    gains = ((0, 900.0), (1, 300.0), (2, 100.0))
    trials = Trials(None, None, [], [], [], 5.0, At(np.zeros(1), np.ones(1, bool)), gains, (0, 1, 2))  # pyright: ignore
    assert trials.strongest(0.0) is None
    assert trials.strongest(60.0) is None
    for gap, left in ((100.0, (0, 1)), (270.0, (0,)), (1e6, (0,))):
        fewer = trials.strongest(gap)
        assert fewer is not None
        assert fewer.joined == left
        assert len(fewer.reasons) == 3 - len(left)


def test_printed_as_a_table(fitted):
    lines = repr(fitted.interactions_).splitlines()
    assert lines[0].split() == ["interaction", "expected", "(nats)", "gained", "(nats)", "joined"]
    assert len(lines) == 8
    place = lines[0].index("joined")
    assert lines[1][place:] == "yes"
    assert all(line[place:].startswith("no: ") and line[place - 1] == " " for line in lines[2:-1])
    assert lines[-1] == "a pair joins when it gains 4.8 nats, and at most 5 do"


def test_the_sentence_says_what_the_table_says():
    pairs = (TriedPair(("a", "b"), -0.123, None, False, "expected to gain too little"),)
    tried = TriedInteractions(pairs, 4.0, 5)
    assert "would have gained about -0.1 nats" in tried.note
    assert "  -0.1  " in repr(tried)
    nothing = TriedInteractions((replace(pairs[0], expected=-0.01),), 4.0, 5)
    assert "would have gained about 0.0 nats" in nothing.note
    assert "  0.0  " in repr(nothing)

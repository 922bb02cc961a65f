"""Functions of our own in JAX, and their derivatives, against SciPy far out in both tails."""

import numpy as np
import pytest
from scipy.special import expit

from vff.likelihoods.float64 import float64


@pytest.mark.parametrize("x", [-700.0, -40.0, -3.0, 0.0, 3.0, 30.0, 36.0, 40.0, 300.0])
def test_the_sigmoid_and_its_derivative_keep_their_digits(x):
    import jax

    from vff.likelihoods.numerics import sigmoid

    with float64():
        value, slope = jax.value_and_grad(sigmoid)(x)
    assert float(value) == pytest.approx(expit(x), rel=1e-14, abs=0.0)
    assert float(slope) == pytest.approx(expit(x) * expit(-x), rel=1e-13, abs=0.0)


def test_softplus_has_the_sigmoid_for_its_derivative():
    import jax

    from vff.likelihoods.numerics import softplus

    with float64():
        slopes = [float(jax.grad(softplus)(x)) for x in np.linspace(-40.0, 40.0, 17)]
    assert slopes == pytest.approx(expit(np.linspace(-40.0, 40.0, 17)), rel=1e-13)

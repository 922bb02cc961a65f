"""Threads of the pass over the rows."""

import numpy as np
import pytest

from vff.moments.threads import workers


@pytest.mark.parametrize("over", ["ignore", "raise"])
def test_threads_take_what_leaves_float64_as_their_caller_does(over):
    with np.errstate(over=over), workers(2) as pool:
        assert set(pool.map(lambda _: np.geterr()["over"], range(8))) == {over}

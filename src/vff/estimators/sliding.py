"""The last batches of rows and no others: a model that follows the times."""

from collections import deque
from functools import reduce
from typing import Any

from vff.estimators.arguments import is_whole
from vff.estimators.regressor import GPRegressor
from vff.estimators.statistics import Statistics
from vff.words import shown


class SlidingWindow:
    """A model of the last batches of rows, learnt again after every one at a cost that no row enters.

    The sums of every batch are kept, and those in the window are added up anew each time, so that nothing of an old
    batch is left behind, not even rounding.

    Parameters
    ----------
    model : GPRegressor
        With Gaussian noise, and a ``domain`` wide enough for all rows to come.
    length : int
        Batches that the window holds.

    Examples
    --------
    >>> window = vff.SlidingWindow(vff.GPRegressor(domain=(0, 24), frequencies=10), length=2)
    >>> hour = np.linspace(0, 24, 50)[:, None]
    >>> for day in range(3):
    ...     model = window.push(hour, np.sin(hour[:, 0] / 4) + day)
    >>> len(window), bool(1 < model.predict([[0.0]])[0] < 2)  # of the days 1 and 2
    (2, True)
    """

    def __init__(self, model: GPRegressor, length: int) -> None:
        if not is_whole(length, 1):
            raise ValueError(f"length must be a whole number of batches, 1 or more; got {shown(length)}")
        self.model = model
        self.length = int(length)
        self._batches: deque[Statistics] = deque(maxlen=self.length)

    def __len__(self) -> int:
        """Batches in the window."""
        return len(self._batches)

    def push(self, X: Any, y: Any = None, sample_weight: Any = None) -> GPRegressor:
        """Take in a batch, and let go of the oldest when there are too many.

        Parameters
        ----------
        X, y, sample_weight
            As for ``GPRegressor.fit``.

        Returns
        -------
        GPRegressor
            The model of the window, learnt again.

        Examples
        --------
        >>> X = np.linspace(0, 1, 30)[:, None]
        >>> window = vff.SlidingWindow(vff.GPRegressor(domain=(0, 1), frequencies=5), length=1)
        >>> window.push(X, X[:, 0]).predict([[0.5]]).round(1)
        array([0.5])
        """
        first = self._batches[-1].emptied() if self._batches else None
        batch = self.model._collected(X, y, sample_weight, first)
        kept = [*self._batches, batch][-self.length :]
        self.model._learnt_from(reduce(Statistics.merged, kept))
        self._batches.append(batch)
        return self.model

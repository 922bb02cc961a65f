"""Rows for levels.py: ``python _levels_data.py FOLDER ROWS LEVELS columns|integer|text|crossed`` writes them there.

``columns`` are X.npy, g.npy and y.npy, and the same for R; ``integer`` and ``text`` are a Parquet file of g and y.
``crossed`` are two columns of levels, g.npy and item.npy, the second of as many as a fifth argument says. With them go
ids.npy and effects.npy: the levels and what was drawn for them. A process of its own, since it holds all rows.
"""

import sys
from pathlib import Path

import numpy as np

NOISE, LEVEL, ITEM = 1.0, 0.5, 0.25
"""Variances that the rows are drawn with."""
TAIL = 1.2  # exponent of the Pareto: the mean exists, the variance does not
PIECE = 500_000  # rows of a group in the file


def sizes(rng: np.random.Generator, rows: int, levels: int) -> np.ndarray:
    """Rows of every level: one, and of the others a share that is drawn from a Pareto."""
    weight = 1.0 + rng.pareto(TAIL, levels)
    return 1 + rng.multinomial(rows - levels, weight / weight.sum())


def smooth(X: np.ndarray) -> np.ndarray:
    """Four smooth functions of a column each, added; lines are a part of all but the third."""
    a, b, c, d = X.T
    return np.sin(6.0 * a) + 2.0 * b**2 + np.exp(-(((c - 0.4) / 0.15) ** 2)) + d + 0.3 * np.sin(12.0 * d)


def write_columns(folder: Path, rng: np.random.Generator, ids: np.ndarray, code: np.ndarray, y: np.ndarray) -> None:
    """Arrays for Python; plain numbers, column after column, for R."""
    X, g = rng.uniform(size=(code.size, 4)), ids[code]
    y = y + smooth(X)
    for name, values in (("X", X), ("g", g), ("y", y)):
        np.save(folder / f"{name}.npy", values)
        (values.astype(np.int32) if name == "g" else values.T).tofile(folder / f"{name}.bin")


def write_parquet(path: Path, ids: np.ndarray, code: np.ndarray, y: np.ndarray, text: bool) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    level = pa.array([f"c{n:010d}" for n in ids] if text else ids)
    with parquet.ParquetWriter(path, pa.schema({"g": level.type, "y": pa.float64()})) as file:
        for start in range(0, code.size, PIECE):
            piece = slice(start, start + PIECE)
            file.write_table(pa.table({"g": level.take(pa.array(code[piece])), "y": y[piece]}))


def write_crossed(folder: Path, rng: np.random.Generator, code: np.ndarray, y: np.ndarray, levels: int) -> None:
    """Two columns of codes, for Python and for R; a few levels of the second column have far more rows than others."""
    effects = np.sqrt(ITEM) * rng.normal(size=levels)
    item = rng.permutation(np.repeat(np.arange(levels), sizes(rng, code.size, levels)))
    for name, values in (("g", code), ("item", item), ("y", y + effects[item])):
        np.save(folder / f"{name}.npy", values)
        (values if name == "y" else values.astype(np.int32)).tofile(folder / f"{name}.bin")


def main() -> None:
    folder, rows, levels, form = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    rng = np.random.default_rng(0)
    ids = np.sort(rng.choice(2**31 - 1, levels, replace=False))  # as those of customers: far apart, not 0, 1, 2
    effects = np.sqrt(LEVEL) * rng.normal(size=levels)
    code = rng.permutation(np.repeat(np.arange(levels), sizes(rng, rows, levels)))
    y = effects[code] + np.sqrt(NOISE) * rng.normal(size=rows)
    np.save(folder / "ids.npy", ids)
    np.save(folder / "effects.npy", effects)
    if form == "columns":
        write_columns(folder, rng, ids, code, y)
    elif form == "crossed":
        np.save(folder / "ids.npy", np.arange(levels))
        write_crossed(folder, rng, code, y, int(sys.argv[5]) if len(sys.argv) > 5 else max(levels // 10, 2))
    else:
        write_parquet(folder / "rows.parquet", ids, code, y, text=form == "text")
    counts = np.bincount(code)
    print(f'{{"smallest": {counts.min()}, "median": {np.median(counts)}, "largest": {counts.max()}}}')


if __name__ == "__main__":
    main()

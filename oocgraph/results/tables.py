"""Results as tables of other libraries: streams of Arrow batches, pandas, xarray.

In: a `oocgraph.results.base.VertexResult`. Out: the column ``vertex`` and those of the result. Arrow batches are made as they are asked
for, of as many rows as the memory budget leaves room for; pandas and xarray get whole arrays, which the result does not keep. Where there
is no value, such as the level of an unreached vertex, numbers and ids are -1; ids that are strings are null.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from oocgraph.errors import MissingDependencyError
from oocgraph.results.writer import arrow_batches, arrow_schema

if TYPE_CHECKING:
    from oocgraph.results.base import VertexResult


def to_arrow(result: VertexResult) -> Any:
    """Return a result as a ``pyarrow.RecordBatchReader``."""
    import pyarrow as pa

    return pa.RecordBatchReader.from_batches(arrow_schema(result), arrow_batches(result))


def to_pandas(result: VertexResult) -> Any:
    """Return a result as a pandas.DataFrame.

    Raises
    ------
    MissingDependencyError
        pandas is not installed.
    """
    try:
        import pandas as pd
    except ImportError as error:
        raise _missing("to_pandas", "pandas", result) from error
    names = ("vertices", *result.table_columns)
    arrays = result._in_memory(result._columns_joined(names))
    return pd.DataFrame(dict(zip(("vertex", *result.table_columns), arrays, strict=True)))


def to_xarray(result: VertexResult) -> Any:
    """Return a result as an xarray.Dataset.

    Raises
    ------
    MissingDependencyError
        xarray is not installed.
    """
    try:
        import xarray as xr
    except ImportError as error:
        raise _missing("to_xarray", "xarray", result) from error
    joined, *values = result._columns_joined(("vertices", *result.table_columns))
    (vertices,) = result._in_memory([joined])
    columns = {name: ("vertex", column) for name, column in zip(result.table_columns, values, strict=True)}
    return xr.Dataset(columns, {"vertex": vertices}, {"algorithm": result.algorithm, "graph": result.ids.store.url})


def _missing(method: str, package: str, result: VertexResult) -> MissingDependencyError:
    *others, last = (f"result.{name}" for name in ("vertices", *result.table_columns))
    return MissingDependencyError(
        f"{method} needs {package}, which is not installed: `pip install {package}`; {', '.join(others)} and {last} are arrays"
    )

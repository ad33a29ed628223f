"""Results as a table of pandas, which is optional.

In: columns by name. Out: a data frame, or an error that says how to install pandas.
"""

from __future__ import annotations

from typing import Any

from oocgraph.errors import MissingDependencyError


def data_frame(**columns: Any) -> Any:
    """Return a pandas.DataFrame of arrays of one length.

    Raises
    ------
    MissingDependencyError
        pandas is not installed.

    Examples
    --------
    >>> data_frame(vertex=[3, 5], level=[0, 1]).level.tolist()
    [0, 1]
    """
    try:
        import pandas as pd
    except ImportError as error:
        *others, last = (f"result.{name}" for name in columns)
        raise MissingDependencyError(
            "to_pandas needs pandas, which is not installed: `pip install pandas` or `pip install oocgraph[notebooks]`; "
            f"{', '.join(others)} and {last} are arrays"
        ) from error
    return pd.DataFrame(columns)

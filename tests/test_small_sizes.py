"""Some draws of `tests.small_sizes`."""

import pytest

from tests.small_sizes import compare


@pytest.mark.parametrize("seed", range(1, 9))
def test_small_sizes_change_no_answer(tmp_path, seed):
    assert compare(seed, tmp_path) == []

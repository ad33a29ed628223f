"""Some draws of `tests.small_sizes`, and of those of builds, clusters and devices."""

import pytest

from tests import small_sizes_builds, small_sizes_cluster, small_sizes_device
from tests.small_sizes import compare


@pytest.mark.parametrize("seed", range(1, 9))
def test_small_sizes_change_no_answer(tmp_path, seed):
    assert compare(seed, tmp_path) == []


@pytest.mark.parametrize("seed", range(1, 5))
def test_small_sizes_change_no_store_and_no_file(tmp_path, seed):
    assert small_sizes_builds.compare(seed, tmp_path) == []


@pytest.mark.parametrize("seed", range(1, 3))
def test_small_sizes_of_devices_change_no_answer(tmp_path, seed):
    assert small_sizes_device.compare(seed, tmp_path) == []


@pytest.mark.parametrize("seed", range(1, 4))
def test_small_sizes_on_clusters_change_no_answer(tmp_path, seed):
    assert small_sizes_cluster.compare(seed, tmp_path) == []

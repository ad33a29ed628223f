"""Imports go down only, heavy libraries stay where they belong, and importing oocgraph is quick."""

from __future__ import annotations

import ast
import json
import re
import resource
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

import oocgraph

ROOT = Path(oocgraph.__file__).parent

LAYERS = [
    {"errors", "types", "closing", "text", "cache_folder", "lazy", "locks"},
    {"arguments", "pool"},
    {"config", "arrays", "arrow"},
    {"machine"},
    {"compiled"},
    {"kernels"},
    {"allocator"},
    {"memory", "progress", "team"},
    {"listing", "sorting", "clients"},
    {"resources"},
    {"store"},
    {"external_sort"},
    {"partition", "sparse", "ingest", "export"},
    {"results"},
    {"verify", "verify_results", "exchange", "subgraph", "plan"},
    {"engine"},
    {"parts", "products"},
    {"cluster"},
    {"algorithms"},
    {"bench", "networkx_backend"},
    {"commands"},
    {"cli"},
    {"__init__", "__main__"},
]
"""A module may import from lower layers and from its own package; packages of one layer do not know each other."""

LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}

ALLOWED = {
    "cupy": {"arrays", "kernels.gpu"},
    "IPython": {"progress"},
    "matplotlib": {"results.plot"},
    "networkx": {"bench", "networkx_backend", "store.to_networkx"},
    "zarr": {"store", "bench.results"},
    "dask": {
        "config",
        "ingest.sources.dask_collections",
        "results.dask",
        "cluster.ledger",
        "cluster.start",
        "cluster.scheduler",
        "exchange.dask",
    },
    "distributed": {"clients", "cluster.worker", "cluster.start", "cluster.scheduler", "exchange.dask"},
    "dask_cuda": {"cluster.start"},
}
"""Where a library may be imported: a module, or a package with all that is in it."""

IO_LIBRARIES = {"os", "io", "pathlib", "mmap", "shutil", "subprocess", "zarr", "pyarrow", "cupy", "numba", "dask", "fsspec", "obstore"}

SEARCH = ("algorithms", "engine", "parts", "products", "cluster", "plan", "subgraph", "exchange")


def module_names():
    return {".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path for path in ROOT.rglob("*.py")}


MODULES = module_names()


@cache
def imports(path):
    """Names of all modules that a file imports when it runs, wherever in the file; not those for type checkers only."""
    tree = ast.parse(path.read_text())
    typing_only = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and isinstance(block.test, ast.Name) and block.test.id == "TYPE_CHECKING"
        for statement in block.body
        for node in ast.walk(statement)
    }
    found = set()
    for node in ast.walk(tree):
        if id(node) in typing_only:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


@cache
def own_imports(path):
    """Modules of oocgraph that a file imports, without the leading ``oocgraph.``."""
    inside = {name.removeprefix("oocgraph.") for name in imports(path) if name.startswith("oocgraph.")}
    return {name if name in MODULES else name.rpartition(".")[0] for name in inside} - {""}


def top(module):
    return module.split(".")[0]


def is_in(module, places):
    return any(module == place or module.startswith(f"{place}.") for place in places)


def test_imports_go_down_only():
    """No module imports a higher layer, nor a stranger of its own layer."""
    assert {top(module) for module in MODULES} <= set(LEVEL), "name its layer in LAYERS"
    assert not [
        f"{module} imports {target}, which is not below it"
        for module, path in MODULES.items()
        for target in own_imports(path)
        if top(target) != top(module) and LEVEL[top(target)] >= LEVEL[top(module)]
    ]


def circles():
    """Return the largest sets of modules of which each imports each other, by whatever way, also when a function of it runs."""
    seen = {module: reachable(module) for module in MODULES}
    together = {frozenset(other for other in seen[module] if module in seen[other]) for module in MODULES}
    return sorted(sorted(circle) for circle in together if len(circle) > 1)


def test_no_module_imports_itself_by_way_of_others():
    """Import circles are refused within packages too, and those that an import inside a function hides."""
    assert not circles()


def test_heavy_libraries_stay_where_they_belong():
    """Each library with a home is imported only there."""
    assert not [
        f"{module} imports {library}; only {sorted(ALLOWED[library])} may"
        for module, path in MODULES.items()
        for library in {top(name) for name in imports(path)} & set(ALLOWED)
        if not is_in(module, ALLOWED[library])
    ]


def test_arrow_becomes_numpy_in_one_place():
    """Arrow's own ``to_numpy`` imports pandas, 30 MB that no budget has: `oocgraph.arrow.to_numbers` does not."""
    others = [path for module, path in MODULES.items() if module != "arrow" and top(module) != "bench"]
    assert not [path for path in others if "to_numpy" in {getattr(node, "attr", None) for node in ast.walk(ast.parse(path.read_text()))}]


def test_no_private_module_of_zarr():
    """`zarr.core`, and modules whose names begin with an underscore, change with any release."""
    names = {(module, name) for module, path in MODULES.items() for name in imports(path)}
    assert not [f"{module} imports {name}" for module, name in names if re.match(r"zarr\.(core\b|.*\b_)", name)]


def test_plan_knows_no_device_and_no_file():
    """Decisions are pure: numbers in, choice and reason out."""
    decisions = {module: imports(path) for module, path in MODULES.items() if top(module) == "plan"}
    assert len(decisions) > 1
    assert not [module for module, names in decisions.items() if {top(name) for name in names} & IO_LIBRARIES]


def reachable(module):
    """Return the module and all modules of oocgraph that importing it may bring in."""
    found, waiting = set(), [module]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += own_imports(MODULES[name])
    return found


def test_verify_shares_no_code_with_what_it_judges():
    """Neither the search's modules nor the kernels that it uses are reachable from the verifier."""
    verifier = reachable("verify")
    assert not {name for name in verifier if top(name) in SEARCH}
    search = {name for root in MODULES if top(root) in SEARCH for name in own_imports(MODULES[root]) if top(name) == "kernels"}
    shared = {"kernels.live", "kernels.rows"}  # reads of bytes, and what is read of a view: nothing that decides
    assert not verifier & search - shared, "the verifier and the search share kernels"


def test_the_verifiers_of_other_results_share_no_code_with_what_they_judge():
    """Neither the algorithms nor their kernels are reachable from them."""
    judged = {"algorithms.components", "engine.forest", "kernels.components", "algorithms.sssp", "algorithms.cores"}
    assert not (judged | {"engine.blocks", "kernels.blocks", "kernels.relax"}) & reachable("verify_results")


HEAVY = ["dask", "distributed", "zarr", "numba", "pyarrow", "cupy", "scipy", "pandas", "matplotlib"]


def children_seconds():
    """Processor time of the processes that have ended; how busy the machine is hardly matters to it."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@pytest.mark.parametrize(
    "code",
    [
        "import oocgraph",
        "import sys; sys.argv = ['oocgraph', '--help']; from oocgraph.cli import main; main()",
        "import sys; sys.argv = ['oocgraph', 'pagerank', '--help']; from oocgraph.cli import main; main()",
    ],
)
def test_import_is_quick_and_light(code):
    """`import oocgraph` and ``--help`` bring in no heavy library, and take under half a second of processor time (best of three)."""
    listing = "import atexit, json, sys; atexit.register(lambda: print(json.dumps(sorted(sys.modules)), file=sys.stderr));"
    seconds = []
    for _ in range(3):
        start = children_seconds()
        done = subprocess.run([sys.executable, "-c", listing + code], capture_output=True, text=True, check=True)
        seconds.append(children_seconds() - start)
        loaded = set(json.loads(done.stderr.splitlines()[-1]))
        assert not loaded & set(HEAVY)
    assert min(seconds) < 0.5


def test_computing_in_process_imports_no_scheduler():
    """Of Dask only its configuration; the modules that speak to a cluster are imported when a client is given."""
    names = ", ".join(
        f"oocgraph.algorithms.{name}" for name in ("bfs", "components", "cores", "operators", "pagerank", "partition_graph", "spmv", "sssp")
    )
    code = f"import sys, {names}; sys.exit('distributed' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_no_public_name_is_that_of_a_module():
    """Importing the module would put it in the place of the name."""
    assert not {f"oocgraph.{name}" for name in oocgraph._HOMES} & {f"oocgraph.{name.removeprefix('oocgraph.')}" for name in MODULES}


def test_every_public_name_has_a_home():
    """Names of __all__ resolve, and the list of homes holds nothing else."""
    assert set(oocgraph._HOMES) < set(oocgraph.__all__)
    for name, home in oocgraph._HOMES.items():
        if home.removeprefix("oocgraph.") in MODULES:
            assert getattr(oocgraph, name).__name__ == name


BY_SWEEPS = sorted(
    module for module, path in MODULES.items()
    if module.startswith("algorithms.") and {"algorithms.sweeping", "engine.sweeps"} & own_imports(path)
)  # fmt: skip


def code_lines(path):
    """Count lines of code: without docstrings and those below constants, imports, comments and blanks."""
    text = path.read_text()
    left_out = set()
    for node in ast.walk(ast.parse(text)):
        is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        if is_text or isinstance(node, ast.Import | ast.ImportFrom):
            left_out |= set(range(node.lineno, node.end_lineno + 1))
    lines = enumerate(text.splitlines(), 1)
    return sum(bool(line.strip()) and not line.strip().startswith("#") and number not in left_out for number, line in lines)


def test_no_folder_is_the_house():
    """None has more than 15 % of the lines: what outgrows that is more than one concept."""
    folders = Counter()
    for module, path in MODULES.items():
        folders[top(module) if "." in module or path.name == "__init__.py" else ""] += code_lines(path)
    assert {name for name, lines in folders.items() if lines > 0.15 * folders.total()} == set()


@pytest.mark.parametrize("module", BY_SWEEPS)
def test_an_algorithm_by_sweeps_is_one_page(module):
    """Without a word on clusters, devices, Zarr or files."""
    assert code_lines(MODULES[module]) <= 150
    assert not {name.split(".")[0] for name in imports(MODULES[module])} & (IO_LIBRARIES - {"os"} | {"distributed"})


def test_there_are_algorithms_by_sweeps():
    assert len(BY_SWEEPS) >= 15

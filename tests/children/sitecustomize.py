"""How Python begins and ends in processes that tests start: hundreds of them took a sixth of the time of all tests to collect garbage.

Most of it was theirs of imports, which leave little, and of the end, where all that libraries hold is looked through. The command line does
so itself (`oocgraph.cli.main`).
"""

import atexit
import gc

gc.set_threshold(20_000)
atexit.register(gc.freeze)

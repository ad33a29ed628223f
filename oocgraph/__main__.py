"""``python -m oocgraph`` is the command line."""

from oocgraph.cli import main

main()

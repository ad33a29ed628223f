"""External sorting: keyed records in temporary files by range of keys, each of which fits in memory, and the threads that sort them."""

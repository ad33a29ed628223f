"""What algorithms return: values of all vertices under the user's ids, and the metrics of the run."""

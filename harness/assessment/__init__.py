"""Pure: policy and aggregation, the one maker of a verdict and an exit code."""

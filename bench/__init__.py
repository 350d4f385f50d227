"""The benchmarks: ratios against hand-written floors, measured in the same run."""

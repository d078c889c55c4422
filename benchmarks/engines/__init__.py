"""The engines that the benchmark measures."""

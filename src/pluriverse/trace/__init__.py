"""Tracing of ordinary Python maths on scalars into straight-line code for CUDA and for CPU vector lanes. Knows
nothing of physics."""

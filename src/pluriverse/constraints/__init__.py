"""MuJoCo's soft constraints: rows, and the primal Newton solver that finds the acceleration they leave."""

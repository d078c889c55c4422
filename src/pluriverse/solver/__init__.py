"""A batch of environments: its arrays, and every command, getter and setter on them with global indices."""

"""From what a user says (morphs, model files) to one compiled model."""

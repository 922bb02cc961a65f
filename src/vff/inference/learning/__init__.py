"""Hyperparameters and harmonics by the bound."""

"""Linear-Gaussian models at one setting of their hyperparameters, by kind of solver."""

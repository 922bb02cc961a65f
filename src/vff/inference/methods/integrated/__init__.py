"""Hyperparameters averaged over: weighted draws around their mode, where what learning does not know matters."""

"""Any likelihood with a covariance that has a structure."""

"""Any likelihood by natural gradients on sums of sites."""

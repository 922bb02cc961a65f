"""What is modelled: terms, and the units that learning sees."""

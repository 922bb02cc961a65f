"""Methods of inference, each from rows to the same record of a fit."""

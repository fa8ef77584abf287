"""The formulation lab: real decisions, solved by every formulation on every back end, and compared."""

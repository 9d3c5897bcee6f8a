"""How studies are run: the one loop of ask, evaluate and tell, stop rules, executors, campaigns.

Imports: ``records`` and everything below it; only ``executors`` imports distributed.
Add here: a new place where evaluations or studies can run, a new reason to stop.
"""

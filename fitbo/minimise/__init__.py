"""One call for a Python function: ``minimize`` and ``maximize``, and what they return.

Imports: ``runs``, ``report`` and ``screen``, and everything below them.
Add here: another habit of scipy's or Optuna's users that a call should understand.
"""

from fitbo.minimise.call import maximize, minimize
from fitbo.minimise.result import Result

__all__ = ["Result", "maximize", "minimize"]

"""What a candidate is worth: information gain, expected improvement, baselines, feasibility.

Imports: the mathematics, ``space`` and ``surrogate``; it neither fits a model nor maximises itself.
Add here: one file per idea, and one line in ``ACQUISITIONS``.
"""

from fitbo.acquisition.baselines import ACQUISITIONS
from fitbo.acquisition.information import Acquisition, InformationGain, information_gain

__all__ = ["ACQUISITIONS", "Acquisition", "InformationGain", "information_gain"]

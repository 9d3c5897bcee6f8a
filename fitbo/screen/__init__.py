"""A study under way as a person sees it: what is running and for how long, the best, the time left.

Imports: ``records`` and everything below it, and rich.
Add here: another place to show progress in, another way to write numbers for people.
"""

from fitbo.screen.follow import Shown, follow
from fitbo.screen.words import digits, duration, interval, measured, resolved, short

__all__ = ["Shown", "digits", "duration", "follow", "interval", "measured", "resolved", "short"]

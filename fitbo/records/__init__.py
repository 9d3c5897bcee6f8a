"""What is on the disk: a study's journal of events, its replay into a ``Study``, tables, archives.

Imports: ``config`` and everything below it; it evaluates nothing.
Add here: a new event, a new table format, a reader of journals of an older format.
"""

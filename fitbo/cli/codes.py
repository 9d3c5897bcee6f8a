"""Exit codes of the commands."""

OK, FAILED, WRONG, INTERRUPTED = 0, 1, 2, 130  # all is well, studies failed, a mistake, Ctrl-C

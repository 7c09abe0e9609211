"""Training jobs and test problems, written as users of raybo write theirs: each file stands alone."""

"""`python -m raybo` is the command `raybo`, for where that is not on the PATH."""

from raybo.cli import main

if __name__ == "__main__":
    main()

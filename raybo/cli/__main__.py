"""`python -m raybo.cli`: the script `raybo`, by a chosen Python."""

from raybo.cli import main

if __name__ == "__main__":
    main()

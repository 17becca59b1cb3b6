"""``python -m groupowl``, the same as the command ``groupowl``."""

from groupowl_command import main

if __name__ == "__main__":
    main()

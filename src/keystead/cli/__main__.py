"""``python -m keystead.cli`` is the ``keystead`` command."""

from keystead.cli.entry import main

if __name__ == "__main__":
    main()

"""`python -m limelight` is `limelight`."""

from limelight.cli.main import main

if __name__ == "__main__":
    main()

"""`python -m forgetgauge`."""

from forgetgauge.cli import main

if __name__ == "__main__":
    main()

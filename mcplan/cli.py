"""The command line: thin, and quick to start (each command imports what it needs when it runs)."""

import argparse
import sys


def main(arguments: list[str] | None = None) -> int:
    """Run one command; return its exit status."""
    parser = argparse.ArgumentParser(prog="mcplan", description=__doc__)
    parser.parse_args(arguments)
    return 0


if __name__ == "__main__":
    sys.exit(main())

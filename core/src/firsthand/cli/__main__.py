"""`python -m firsthand.cli`, for where the installed script is not on PATH."""

from firsthand.cli.app import main

main()

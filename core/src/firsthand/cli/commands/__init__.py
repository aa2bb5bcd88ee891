"""One module a command: asks the engine, shows the answer, gives the exit status."""

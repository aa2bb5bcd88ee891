"""An example of an isolation backend for Firsthand: bwrap with a supervisor and a seccomp program of its own."""

"""Review: a provider drives a reviewer that sees the frozen files and three tools, and the host logs what it does."""

"""The verb `doctor` collects facts of the machine and runs self-tests in a process of their own."""

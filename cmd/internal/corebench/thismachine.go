package corebench

// ThisMachine describes the machine for benchmarks that are not rows of this package.
func ThisMachine() Machine { return machine() }

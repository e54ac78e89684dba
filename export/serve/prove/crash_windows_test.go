package prove_test

import "os"

const signal = "exit status 2"

// crash ends the process as Go's runtime does.
func crash() { os.Exit(2) }

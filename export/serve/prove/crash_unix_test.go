//go:build unix

package prove_test

import (
	"os"
	"syscall"
	"time"
)

const signal = "SIGFPE"

// crash ends the process as a division by zero below Go does.
func crash() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGFPE)
	time.Sleep(time.Minute)
}

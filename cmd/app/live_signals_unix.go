//go:build unix

package app

import (
	"os"
	"syscall"
)

// killSignals are that of the kill switch and that which takes it back.
func killSignals() []os.Signal { return []os.Signal{syscall.SIGUSR1, syscall.SIGUSR2} }

//go:build !unix

package app

import "os"

// killSignals is empty where there are no such signals.
func killSignals() []os.Signal { return nil }

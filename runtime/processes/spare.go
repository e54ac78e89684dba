package processes

import (
	"os"
	"runtime"
)

// SpareProcessor lets the process run one goroutine more at a time than there are processors,
// unless $GOMAXPROCS says how many, until undo is called. A call into ONNX Runtime keeps its place
// among them while it runs, and also while its thread waits for a processor, as it does when a
// training run works beside: requests that could be answered meanwhile would wait too, for the
// milliseconds of a tick of the system's scheduler. It is not the default because a caller alone
// waits some microseconds longer with it.
func SpareProcessor() (undo func()) {
	if os.Getenv("GOMAXPROCS") != "" {
		return func() {}
	}
	n := runtime.GOMAXPROCS(0)
	runtime.GOMAXPROCS(n + 1)
	return func() { runtime.GOMAXPROCS(n) }
}

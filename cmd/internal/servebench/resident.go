package servebench

import (
	"os"
	"runtime"
	"runtime/debug"

	"github.com/onnxrl/onnxrl/cmd/internal/benchmark"
)

// residentBytes returns the resident set size of this process after what is garbage was given back,
// or false where the system does not tell.
func residentBytes() (int64, bool) {
	runtime.GC()
	debug.FreeOSMemory()
	return benchmark.ResidentBytes()
}

// openFiles counts the file descriptors of this process, or returns false where the system does not
// tell.
func openFiles() (int, bool) {
	d, err := os.Open("/proc/self/fd")
	if err != nil {
		return 0, false
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	return len(names) - 1, err == nil
}

// heapBytes is what is in use on Go's heap after a collection.
func heapBytes() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse
}

//go:build cgo

package capi

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"unsafe"
)

// envStale makes the test binary run staleWords in a process of its own: what it looks for ends
// the process.
const envStale = "ONNXRL_TEST_STALE_WORDS"

// garbage gives the addresses of n objects of the sizes of small tensors that have been freed.
//
//go:noinline
func garbage(n int) []uintptr {
	addresses := make([]uintptr, n)
	for i := range addresses {
		b := make([]byte, 96+16*(i%2))
		addresses[i] = uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	}
	runtime.GC()
	runtime.GC()
	return addresses
}

// staleWords makes lists of names in C memory that held addresses of freed Go objects before,
// while the collector marks. Making them must not tell the collector of these addresses.
func staleWords() (lists int, cycles uint32) {
	debug.SetGCPercent(1)
	names := slices.Repeat([]string{"x"}, 40)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 60 {
			runtime.GC()
		}
	}()
	for {
		select {
		case <-done:
			var s runtime.MemStats
			runtime.ReadMemStats(&s)
			return lists, s.NumGC
		default:
		}
		stale := garbage(len(names))
		for range 200 {
			l := NewNames(names)
			copy(l.addresses(), stale)
			l.Free() // what the next list is made of
			lists++
		}
	}
}

func TestNewNamesOverStaleWords(t *testing.T) {
	if os.Getenv(envStale) != "" {
		lists, cycles := staleWords()
		fmt.Printf("lists %d cycles %d\n", lists, cycles)
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run", "^TestNewNamesOverStaleWords$")
	cmd.Env = append(os.Environ(), envStale+"=1")
	out, err := cmd.CombinedOutput()
	var lists, cycles int
	if n, _ := fmt.Sscanf(string(out), "lists %d cycles %d", &lists, &cycles); err != nil || n != 2 || lists < 1000 || cycles < 60 {
		text := strings.Split(string(out), "\n")
		t.Errorf("%v, %d lists, %d collections\n%s", err, lists, cycles, strings.Join(text[:min(len(text), 5)], "\n"))
	}
}

func TestNames(t *testing.T) {
	for _, names := range [][]string{nil, {"a"}, {"", "onnx::MatMul_12", "größe", ""}} {
		l := NewNames(names)
		if (l.list() == nil) != (len(names) == 0) || l.n != len(names) {
			t.Errorf("%q: %d names", names, l.n)
		}
		for i, want := range names {
			p := l.addresses()[i] - uintptr(l.block)
			text := unsafe.Slice((*byte)(unsafe.Add(l.block, p)), len(want)+1)
			if string(text) != want+"\x00" {
				t.Errorf("name %d is %q, expected %q", i, text, want)
			}
		}
		l.Free()
		l.Free() // of a list that is free already
	}
}

//go:build unix

package gymnasium

import (
	"os"
	"testing"
	"time"
)

// TestLookingHasToPay: looks in vain are followed by longer and longer rests, unless they have been
// paid for, and looks that save something end that.
func TestLookingHasToPay(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	var into [1]byte
	v, err := newWatch(r, into[:])
	if err != nil {
		t.Fatal(err)
	}
	// finds reports whether one look finds a byte.
	finds := func() (found bool) {
		if err := v.raw.Control(func(fd uintptr) { found = v.poll(fd) }); err != nil {
			t.Fatal(err)
		}
		return found
	}
	v.time = time.Microsecond
	for k, rest := range []int{100, 400, 1600, 6400, 6400} {
		if finds() || v.resting != rest || v.saved != 0 {
			t.Fatalf("after %d looks in vain there is none for %d messages, expected %d; saved %v", k+1, v.resting, rest, v.saved)
		}
		for range rest {
			if finds() {
				t.Fatal("a byte was found where none was written")
			}
		}
		if v.resting != 0 {
			t.Fatalf("%d messages of the rest are left", v.resting)
		}
	}
	v.saved = mostSaved
	if finds() || v.resting != 0 || v.saved >= mostSaved {
		t.Errorf("a look in vain that was paid for: no look for %d messages, saved %v", v.resting, v.saved)
	}
	// A byte that lies there already was not looked for, so it takes until one comes late enough.
	v.time, v.saved = time.Minute, mostSaved
	for bytes := byte(1); v.rest != leastRest; bytes++ {
		go w.Write([]byte{bytes})
		if err := v.read(); err != nil || into[0] != bytes {
			t.Fatalf("read %d, expected %d: %v", into[0], bytes, err)
		}
	}
	if v.saved != mostSaved {
		t.Errorf("saved %v, expected the most, %v", v.saved, mostSaved)
	}
}

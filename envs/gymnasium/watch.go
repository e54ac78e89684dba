package gymnasium

import (
	"io"
	"runtime"
	"syscall"
	"time"
)

// watching is how long a side looks for the other one's message before it sleeps. Waking up a
// thread takes some 40 µs where its processor has been halted, as much as a step of eight small
// environments.
const watching = 200 * time.Microsecond

// Looks are in vain where answers take longer than watching, and where others want the processors:
// who looks then keeps the other side from working or has to wait for the others, while sleepers
// come first, and are woken quickly since no processor is halted. So looking has to pay: a look
// that was not in vain has saved some time, others have lost what they took, and when more is lost
// than saved there are none for the next leastRest messages, for four times as many the next time,
// and so on up to mostRest, until mostSaved is saved.
const (
	saved     = 50 * time.Microsecond
	mostSaved = 5 * time.Millisecond
	leastRest = 100
	mostRest  = 6400
)

// watchingFor returns how long the vector looks that has a number of workers. Where they fill the
// processors, looking for the first reply takes one from somebody who works.
func watchingFor(workers int) time.Duration {
	if workers < runtime.NumCPU() {
		return watching
	}
	return 0
}

// workersWatch is how workers look for requests, as worker.py unpacks it; times are in seconds.
func workersWatch() []float64 {
	return []float64{watching.Seconds(), saved.Seconds(), mostSaved.Seconds(), leastRest, mostRest}
}

// watch reads replies, looking for some time before it sleeps.
type watch struct {
	raw  syscall.RawConn
	try  func(fd uintptr) bool
	time time.Duration
	// saved is what looking has saved, resting the number of messages for which there is none, and
	// rest what that will be the next time.
	saved         time.Duration
	resting, rest int
	into          []byte
	n             int
	err           error
}

// newWatch reads from c into a buffer of one byte.
func newWatch(c syscall.Conn, into []byte) (*watch, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	w := &watch{raw: raw, into: into, rest: leastRest}
	w.try = w.look
	return w, nil
}

// read waits for one byte, until the deadline for reading.
func (w *watch) read() error {
	if err := w.raw.Read(w.try); err != nil {
		return err
	}
	if w.err == nil && w.n == 0 {
		return io.EOF
	}
	return w.err
}

// look reports whether there was something to read, and is called again when there is.
func (w *watch) look(fd uintptr) bool {
	began, took := time.Now(), time.Duration(0)
	for {
		var again bool
		if w.n, again, w.err = tryRead(fd, w.into); !again {
			break
		}
		if w.resting > 0 {
			w.resting--
			return false
		}
		if took = time.Since(began); took >= w.time {
			if w.saved -= took; w.saved < 0 {
				w.saved, w.resting, w.rest = 0, w.rest, min(4*w.rest, mostRest)
			}
			return false
		}
		runtime.Gosched()
	}
	if took > 0 {
		if w.saved += saved; w.saved > mostSaved {
			w.saved, w.rest = mostSaved, leastRest
		}
	}
	return true
}

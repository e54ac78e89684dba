package gymnasium

import (
	"io"
	"runtime"
	"syscall"
	"time"
)

// watching is how long a side spins for the other one's message before it sleeps. Waking up a
// thread takes some 40 µs where its processor has been halted, as much as a step of eight small
// environments.
const watching = 200 * time.Microsecond

// Spinning is adaptive, with back-off. It is in vain where answers take longer than watching, and
// where other processes want the processors: a side that spins then delays the other one, while a
// sleeping one is woken quickly since no processor is halted. So a message that came while spinning
// credits saved, up to mostSaved, and one that did not debits the time spent. When the credit is
// used up there is no spinning for the next leastRest messages, for four times as many the next
// time, and so on up to mostRest, until mostSaved is reached again.
const (
	saved     = 50 * time.Microsecond
	mostSaved = 5 * time.Millisecond
	leastRest = 100
	mostRest  = 6400
)

// watchingFor returns how long a vector of so many workers spins. Where they fill the processors,
// spinning for the first reply takes one from a worker.
func watchingFor(workers int) time.Duration {
	if workers < runtime.NumCPU() {
		return watching
	}
	return 0
}

// workersWatch is how workers spin for requests, as worker.py unpacks it; times are in seconds.
func workersWatch() []float64 {
	return []float64{watching.Seconds(), saved.Seconds(), mostSaved.Seconds(), leastRest, mostRest}
}

// watch reads replies, spinning for some time before it sleeps.
type watch struct {
	raw  syscall.RawConn
	try  func(fd uintptr) bool
	time time.Duration
	// saved is the credit, resting the number of messages without spinning that are left, and rest
	// what that will be the next time.
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
	w.try = w.poll
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

// poll reports whether there was something to read, and is called again when there is.
func (w *watch) poll(fd uintptr) bool {
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

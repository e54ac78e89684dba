package gymnasium

import (
	"io"
	"runtime"
	"syscall"
	"time"
)

// watching is how long a side looks for the other one's message before it sleeps, where there is a processor for each. Waking up a thread takes some 40 µs where its processor has been halted, as much as a step of eight small environments.
const watching = 100 * time.Microsecond

// watchingFor returns how long the sides of a vector with a number of workers look. Where workers can fill the processors, whoever looks takes one from somebody who works, and the kernel spreads threads best that it wakes.
func watchingFor(workers int) time.Duration {
	if workers < runtime.NumCPU() {
		return watching
	}
	return 0
}

// watch reads replies, looking for some time before it sleeps.
type watch struct {
	raw  syscall.RawConn
	try  func(fd uintptr) bool
	time time.Duration
	// last is how long the answer before has taken. After one that was much longer than the time to look, looking is in vain.
	last  time.Duration
	began time.Time
	into  []byte
	n     int
	err   error
}

// newWatch reads from c into a buffer of one byte.
func newWatch(c syscall.Conn, into []byte) (*watch, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	w := &watch{raw: raw, into: into}
	w.try = w.look
	return w, nil
}

// read waits for one byte, until the deadline for reading.
func (w *watch) read() error {
	w.began = time.Now()
	err := w.raw.Read(w.try)
	w.last = time.Since(w.began)
	if err != nil {
		return err
	}
	if w.err == nil && w.n == 0 {
		return io.EOF
	}
	return w.err
}

// look reports whether there was something to read, and is called again when there is.
func (w *watch) look(fd uintptr) bool {
	for {
		var again bool
		if w.n, again, w.err = tryRead(fd, w.into); !again {
			return true
		}
		if w.last > 2*w.time || time.Since(w.began) >= w.time {
			return false
		}
		runtime.Gosched()
	}
}

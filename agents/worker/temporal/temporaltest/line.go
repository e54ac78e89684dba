package temporaltest

import (
	"net"
	"sync"
	"testing"
	"time"
)

// Line is a connection to a server by way of this process, which can be slow, and cut as a network
// is: nothing arrives any more, and nobody learns it. What was on its way arrives when it is
// mended, as TCP sends it again.
type Line struct {
	// Address is its host and port.
	Address string

	mu    sync.Mutex
	delay time.Duration
	// open is closed while the line is whole.
	open chan struct{}
	ends map[net.Conn]bool
	done chan struct{}
}

// NewLine opens a line to a host and port, until the test ends.
func NewLine(t testing.TB, to string) *Line {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &Line{Address: listener.Addr().String(), open: make(chan struct{}), ends: map[net.Conn]bool{}, done: make(chan struct{})}
	close(l.open)
	var all sync.WaitGroup
	all.Go(func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			all.Go(func() { l.carry(near, to) })
		}
	})
	t.Cleanup(func() {
		listener.Close()
		l.mu.Lock()
		close(l.done)
		for c := range l.ends {
			c.Close()
		}
		l.mu.Unlock()
		all.Wait()
	})
	return l
}

// Delay makes everything arrive so much later from now on, in both directions.
func (l *Line) Delay(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.delay = d
}

// Cut cuts the line, until Mend. One that is cut already stays so.
func (l *Line) Cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.open:
		l.open = make(chan struct{})
	default:
	}
}

// Mend makes the line whole.
func (l *Line) Mend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.open:
	default:
		close(l.open)
	}
}

// whole waits until the line is, and reports false when the test ends before.
func (l *Line) whole() bool {
	l.mu.Lock()
	open := l.open
	l.mu.Unlock()
	select {
	case <-open:
		return true
	case <-l.done:
		return false
	}
}

// late is how much later what is sent now arrives.
func (l *Line) late() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.delay
}

// keep notes an end to be closed with the line, and reports false where that is closed already.
func (l *Line) keep(c net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.done:
		c.Close()
		return false
	default:
	}
	l.ends[c] = true
	return true
}

// forget closes an end.
func (l *Line) forget(c net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.ends, c)
	c.Close()
}

// carry carries a connection on.
func (l *Line) carry(near net.Conn, to string) {
	if !l.keep(near) {
		return
	}
	defer l.forget(near)
	if !l.whole() {
		return
	}
	far, err := net.Dial("tcp", to)
	if err != nil || !l.keep(far) {
		return
	}
	defer l.forget(far)
	var both sync.WaitGroup
	both.Go(func() { l.pass(near, far) })
	both.Go(func() { l.pass(far, near) })
	both.Wait()
}

// parcel is what was read at once, and when it arrives.
type parcel struct {
	data []byte
	at   time.Time
}

// pass carries one direction, until either end is closed.
func (l *Line) pass(from, to net.Conn) {
	way := make(chan parcel, 1024)
	defer from.Close()
	defer to.Close()
	go func() {
		defer close(way)
		for {
			data := make([]byte, 1<<15)
			n, err := from.Read(data)
			if n > 0 {
				select {
				case way <- parcel{data[:n], time.Now().Add(l.late())}:
				case <-l.done:
					return
				}
			}
			if err != nil {
				return
			}
		}
	}()
	for p := range way {
		time.Sleep(time.Until(p.at))
		if !l.whole() {
			return
		}
		if _, err := to.Write(p.data); err != nil {
			return
		}
	}
}

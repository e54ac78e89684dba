package websocket

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/coder/websocket"
)

// writeWithin is how long a reader may take for a message before it is left, and readWithin for the
// rest when everything was sent.
const (
	writeWithin = 30 * time.Second
	readWithin  = 5 * time.Second
)

// Writer is a server on this machine, which sends messages of bars to whoever is connected. Until
// there is a reader it waits; one that comes later has what comes from then on.
type Writer struct {
	url    string
	kind   websocket.MessageType
	server *http.Server
	served chan struct{}

	mu      sync.Mutex
	readers []*link
	came    chan struct{} // closed when one has come
	closed  bool
	// status is the status that readers receive in the end.
	status  websocket.StatusCode
	reading sync.WaitGroup
}

// rawKey is the context's key of the connection of a request.
type rawKey struct{}

// NewWriter listens at an address such as ws://localhost:9466/bars, whose port may be 0. Messages
// are binary frames, or text.
func NewWriter(ctx context.Context, address string, binary bool) (*Writer, error) {
	u, err := parseURL(address, false)
	if err == nil && u.Scheme != "ws" {
		err = errors.New("expected ws: it serves this machine alone")
	}
	if err == nil && u.Port() == "" {
		err = errors.New("expected a port")
	}
	if err != nil {
		return nil, fmt.Errorf("websocket: %w", err)
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", u.Host)
	if err != nil {
		return nil, fmt.Errorf("websocket: %w", err)
	}
	w := &Writer{kind: websocket.MessageText, status: websocket.StatusNormalClosure, served: make(chan struct{}), came: make(chan struct{})}
	if binary {
		w.kind = websocket.MessageBinary
	}
	if u.Path == "" {
		u.Path = "/"
	}
	_, port, _ := net.SplitHostPort(l.Addr().String()) // It has one.
	u.Host = net.JoinHostPort(u.Hostname(), port)
	w.url = u.String()
	path := u.Path
	w.server = &http.Server{
		ReadHeaderTimeout: connectWithin,
		ConnContext:       func(ctx context.Context, raw net.Conn) context.Context { return context.WithValue(ctx, rawKey{}, raw) },
		Handler: http.HandlerFunc(func(to http.ResponseWriter, r *http.Request) {
			if r.URL.Path != path {
				http.NotFound(to, r)
				return
			}
			w.read(to, r)
		}),
	}
	go func() {
		defer close(w.served)
		_ = w.server.Serve(l) // It ends with Close.
	}()
	return w, nil
}

// URL is the address, with the port.
func (w *Writer) URL() string { return w.url }

// read has a reader until it has gone. What it sends is of no use.
func (w *Writer) read(to http.ResponseWriter, r *http.Request) {
	if !w.begin(func() { w.reading.Add(1) }) {
		return
	}
	defer w.reading.Done()
	conn, err := websocket.Accept(to, r, nil)
	if err != nil {
		return // The reader has been told.
	}
	raw, _ := r.Context().Value(rawKey{}).(net.Conn)
	reader := &link{conn: conn, raw: raw}
	if w.begin(func() {
		w.readers = append(w.readers, reader)
		close(w.came)
		w.came = make(chan struct{})
	}) {
		for err == nil {
			_, _, err = conn.Read(context.Background())
		}
	}
	w.leave(reader)
}

// begin does something unless the server is being closed.
func (w *Writer) begin(do func()) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		do()
	}
	return !w.closed
}

// leave forgets a reader.
func (w *Writer) leave(reader *link) {
	w.mu.Lock()
	if i := slices.Index(w.readers, reader); i >= 0 {
		// Somebody may look at the list as it was.
		w.readers = append(w.readers[:i:i], w.readers[i+1:]...)
	}
	w.mu.Unlock()
	_ = reader.conn.CloseNow() // It has gone.
}

// Write sends a message, and waits for a reader where there is none. After an error readers
// learn in the end that there would have been more.
func (w *Writer) Write(ctx context.Context, _ string, value []byte) (err error) {
	defer func() {
		if err != nil {
			w.begin(func() { w.status = websocket.StatusGoingAway })
		}
	}()
	for {
		w.mu.Lock()
		readers, came := w.readers[:len(w.readers):len(w.readers)], w.came
		w.mu.Unlock()
		some := false
		for _, reader := range readers {
			within, cancel := context.WithTimeout(ctx, writeWithin)
			err := reader.conn.Write(within, w.kind, value)
			cancel()
			if some = some || err == nil; err != nil {
				w.leave(reader)
			}
		}
		if some {
			return nil
		}
		if len(readers) > 0 && ctx.Err() == nil {
			continue
		}
		select {
		case <-came:
		case <-ctx.Done():
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// Flush implements what writers of messages have: Write has sent them.
func (w *Writer) Flush(context.Context) error { return nil }

// Close closes the connections, and the server.
func (w *Writer) Close() error {
	w.mu.Lock()
	w.closed = true
	readers, status := w.readers[:len(w.readers):len(w.readers)], w.status
	w.mu.Unlock()
	var all sync.WaitGroup
	for _, reader := range readers {
		all.Go(func() { reader.bye(status, readWithin) })
	}
	all.Wait()
	err := w.server.Close()
	<-w.served
	w.reading.Wait()
	if err != nil {
		err = fmt.Errorf("websocket: %w", err)
	}
	return err
}

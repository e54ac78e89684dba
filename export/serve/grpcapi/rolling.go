package grpcapi

import (
	"errors"
	"net"
	"sync"

	"google.golang.org/grpc"
)

// Server answers over gRPC. Beyond what a grpc.Server does, it can send its clients elsewhere while
// it still takes connections: a grpc.Server that says GOAWAY takes no more, so another one of the
// same services takes its place.
type Server struct {
	build func() *grpc.Server

	mu      sync.Mutex
	current *grpc.Server
	older   []*grpc.Server // whose connections end
	share   *share         // what the current one accepts from; nil before Serve
	// listener is nil before Serve; quit is closed when no more connections are taken.
	listener net.Listener
	quit     chan struct{}
	stop     sync.Once
}

func newServer(quit chan struct{}, build func() *grpc.Server) *Server {
	return &Server{build: build, current: build(), quit: quit}
}

// accepted is what a listener has answered.
type accepted struct {
	conn net.Conn
	err  error
}

// share is a listener of the connections that are accepted while it is open; closing it leaves the
// address as it is.
type share struct {
	net.Listener
	from   <-chan accepted
	closed chan struct{}
	once   sync.Once
}

// Accept implements net.Listener.
func (s *share) Accept() (net.Conn, error) {
	select {
	case <-s.closed:
		return nil, net.ErrClosed
	default:
	}
	select {
	case a, ok := <-s.from:
		if !ok {
			return nil, net.ErrClosed
		}
		return a.conn, a.err
	case <-s.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (s *share) Close() error {
	s.once.Do(func() { close(s.closed) })
	return nil
}

// Serve answers on a listener until the server is stopped, which closes it, or until it fails.
func (s *Server) Serve(l net.Listener) error {
	defer l.Close()
	s.mu.Lock()
	s.listener = l
	s.mu.Unlock()
	from := make(chan accepted)
	go s.accept(l, from)
	for {
		own := &share{Listener: l, from: from, closed: make(chan struct{})}
		s.mu.Lock()
		current := s.current
		s.share = own
		s.mu.Unlock()
		err := current.Serve(own)
		s.mu.Lock()
		replaced := s.current != current
		s.mu.Unlock()
		switch {
		case replaced:
			// Not before it has stopped serving: what it has accepted is its to answer.
			go current.GracefulStop()
		case errors.Is(err, net.ErrClosed), errors.Is(err, grpc.ErrServerStopped):
			return nil
		default:
			return err
		}
	}
}

// accept passes on what a listener answers until that is closed.
func (s *Server) accept(l net.Listener, to chan<- accepted) {
	defer close(to)
	for {
		c, err := l.Accept()
		select {
		case <-s.quit:
			// The listener's own word for having been closed may be any error.
			if err == nil {
				c.Close()
			}
			return
		default:
		}
		select {
		case to <- accepted{c, err}:
		case <-s.quit:
			if err == nil {
				c.Close()
			}
			return
		}
		if errors.Is(err, net.ErrClosed) {
			return
		}
	}
}

// LameDuck has all connections end after the calls that have begun, as clients expect it of GOAWAY;
// new connections are taken as before.
func (s *Server) LameDuck() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.share == nil {
		return // there are no connections
	}
	s.older = append(s.older, s.current)
	s.current = s.build()
	s.share.Close()
}

// close takes no more connections and returns all servers, those included whose connections end.
func (s *Server) close() []*grpc.Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stop.Do(func() { close(s.quit) })
	if s.listener != nil {
		s.listener.Close()
	}
	return append(s.older[:len(s.older):len(s.older)], s.current)
}

// GracefulStop takes no more connections and returns when all calls have ended.
func (s *Server) GracefulStop() {
	var wg sync.WaitGroup
	for _, server := range s.close() {
		wg.Go(server.GracefulStop)
	}
	wg.Wait()
}

// Stop cuts off all calls.
func (s *Server) Stop() {
	for _, server := range s.close() {
		server.Stop()
	}
}

package flight

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/apache/arrow/go/v15/arrow/flight"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/onnxrl/onnxrl/agents/actors"
)

// Part is how many bytes of a stream a message has at most; a learner that sends more loses its actor.
const Part = 1 << 20

// MaxHello is how many bytes a learner's descriptor has at most.
const MaxHello = 1 << 16

// Options say what a server is like.
type Options struct {
	// Hello is what it says of itself; what tells learners and actors is left alone.
	Hello Hello
	// Slots is how many actors it serves at once, at least 1.
	Slots int
	// Launch starts an actor, whose streams are those of actors.Serve.
	Launch func(ctx context.Context, index int) (actors.Conn, error)
	Log    *slog.Logger
}

// Server serves actors. It is safe for concurrent use.
type Server struct {
	flight.BaseFlightServer
	o     Options
	slots chan struct{}
	at    sync.WaitGroup

	mu sync.Mutex
	// serving are the actors of learners.
	serving map[place]*relay
}

// place is an actor of a learner, which is served once.
type place struct {
	learner string
	actor   int
}

// NewServer returns a server, for flightrpc.NewServer.
func NewServer(o Options) (*Server, error) {
	if o.Slots < 1 {
		return nil, errors.New("slots: expected at least 1")
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.Hello.Protocol, o.Hello.Learner = protocol, ""
	return &Server{o: o, slots: make(chan struct{}, o.Slots), serving: map[place]*relay{}}, nil
}

// Wait returns when all actors have ended, which they do when their streams end.
func (s *Server) Wait() { s.at.Wait() }

// DoExchange implements flight.FlightServer: an actor.
func (s *Server) DoExchange(stream flight.FlightService_DoExchangeServer) error {
	s.at.Add(1)
	defer s.at.Done()
	first, err := stream.Recv()
	if err != nil {
		return err
	}
	var h Hello
	cmd := first.GetFlightDescriptor().GetCmd()
	if len(cmd) > MaxHello {
		return status.Errorf(codes.InvalidArgument, "a descriptor of %d bytes, expected at most %d", len(cmd), MaxHello)
	}
	if err := json.Unmarshal(cmd, &h); err != nil {
		return status.Errorf(codes.InvalidArgument, "this is a server of actors (onnxrl actor serve): expected the descriptor of a learner: %v", err)
	}
	if err := s.o.Hello.fits(h); err != nil {
		return status.Error(codes.FailedPrecondition, err.Error())
	}
	at := place{h.Learner, h.Actor}
	s.instead(at)
	select {
	case s.slots <- struct{}{}:
	default:
		return status.Errorf(codes.ResourceExhausted, "all slots are taken, which are %d (--slots)", s.o.Slots)
	}
	log := s.o.Log.With("actor", h.Actor, "of", h.Count)
	if p, ok := peer.FromContext(stream.Context()); ok {
		log = log.With("learner", p.Addr.String())
	}
	conn, err := s.o.Launch(stream.Context(), h.Actor)
	if err != nil {
		<-s.slots
		log.Error("start an actor", "error", err)
		return status.Error(codes.Internal, err.Error())
	}
	log.Info("an actor begins")
	r := s.relay(at, stream, conn)
	if err := stream.Send(&flight.FlightData{AppMetadata: s.o.Hello.bytes()}); err != nil {
		r.close()
		return err
	}
	if how := r.run(); how != "" {
		log.Warn("an actor has ended by itself", "how", how)
		return status.Error(codes.Aborted, "its process has ended: "+how)
	}
	log.Info("an actor ends with its learner")
	return nil
}

// instead ends the actor whose place is wanted once more: its learner has given it up, which its
// stream may not have said yet.
func (s *Server) instead(at place) {
	s.mu.Lock()
	old := s.serving[at]
	s.mu.Unlock()
	if old != nil {
		old.left.Store(true)
		old.close()
	}
}

// relay returns the one of an actor that has a slot, which it gives back when the actor has ended.
func (s *Server) relay(at place, stream flight.FlightService_DoExchangeServer, conn actors.Conn) *relay {
	r := &relay{stream: stream, conn: conn}
	r.ended = func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.serving[at] == r {
			delete(s.serving, at)
		}
		<-s.slots
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.serving[at] = r
	return r
}

// relay carries bytes between a stream and an actor.
type relay struct {
	stream flight.FlightService_DoExchangeServer
	conn   actors.Conn
	// ended is called once, when the actor has ended.
	ended func()
	// left says that the learner has ended the stream, or is gone.
	left   atomic.Bool
	closed sync.Once
}

// run returns when both have ended, and how the actor did if that was by itself.
func (r *relay) run() (how string) {
	go func() {
		for {
			d, err := r.stream.Recv()
			if err != nil {
				r.left.Store(true)
				r.close()
				return
			}
			if len(d.DataBody) > Part {
				r.left.Store(true)
				r.close()
				return
			}
			if _, err := r.conn.Write(d.DataBody); err != nil {
				return // Reading finds the error that the stream has ended with.
			}
		}
	}()
	defer r.close()
	buf := make([]byte, Part)
	for {
		n, err := r.conn.Read(buf)
		if n > 0 && r.stream.Send(&flight.FlightData{DataBody: buf[:n]}) != nil {
			return ""
		}
		if err == nil {
			continue
		}
		if r.left.Load() || r.stream.Context().Err() != nil {
			return ""
		}
		if !errors.Is(err, io.EOF) {
			return err.Error()
		}
		return r.conn.Ending()
	}
}

// close ends the actor, and returns when it has ended.
func (r *relay) close() {
	// How it ends does not matter any more.
	r.closed.Do(func() {
		_ = r.conn.Close()
		r.ended()
	})
}

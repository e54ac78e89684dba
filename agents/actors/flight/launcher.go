package flight

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/onnxrl/onnxrl/agents/actors"
	"github.com/onnxrl/onnxrl/runtime/flightrpc"
)

// Kind is how documents name servers of this protocol.
var Kind = actors.Kind{Name: "flight", Schemes: []string{"grpc", "grpc+tcp", "grpc+tls"}, Launch: func(c actors.Config, engine string, log *slog.Logger) func(context.Context, int) (actors.Conn, error) {
	return NewLauncher(c, HelloOf(engine), log).Launch
}}

// Launcher begins the actors of a run at its servers. It is safe for concurrent use.
type Launcher struct {
	c   actors.Config
	own Hello
	log *slog.Logger

	mu sync.Mutex
	// at are the servers at which actors were last, by their positions among the URLs.
	at map[int]int
	// told are the URLs of servers whose difference was told.
	told map[string]bool
}

// NewLauncher returns one for a configuration with URLs, whose learner says own of itself.
func NewLauncher(c actors.Config, own Hello, log *slog.Logger) *Launcher {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	own.Protocol, own.Learner, own.Count = protocol, rand.Text(), c.Count
	return &Launcher{c: c, own: own, log: log, at: map[int]int{}, told: map[string]bool{}}
}

// Launch begins an actor: at the server where it was last, the one of its number at first, or else
// at the next one that has a slot. It waits for servers to be there, and for slots.
func (l *Launcher) Launch(ctx context.Context, index int) (actors.Conn, error) {
	l.mu.Lock()
	first, known := l.at[index]
	l.mu.Unlock()
	if !known {
		first = index % len(l.c.URLs)
	}
	patience := l.c.Patience()
	own := l.own
	own.Actor = index
	until := time.Now().Add(patience)
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		var why []string
		for k := range l.c.URLs {
			i := (first + k) % len(l.c.URLs)
			url := l.c.URLs[i]
			c, theirs, err := connect(ctx, flightrpc.Peer{URL: url, CA: l.c.CA, Cert: l.c.Cert, Key: l.c.Key, TokenFile: l.c.TokenFile, Timeout: patience}, own)
			if err == nil {
				l.note(index, i, theirs)
				return c, nil
			}
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			text := status.Convert(err).Message()
			switch status.Code(err) {
			case codes.Unavailable, codes.ResourceExhausted, codes.DeadlineExceeded, codes.Canceled:
			default:
				return nil, fmt.Errorf("%s: %s", url, text)
			}
			why = append(why, url+": "+text)
		}
		if time.Now().After(until) {
			return nil, fmt.Errorf("no server has begun it for %v: %s", patience, strings.Join(why, "; "))
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// note keeps where an actor is.
func (l *Launcher) note(index, i int, theirs Hello) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.at[index] = i
	url := l.c.URLs[i]
	if text := l.own.differs(theirs); text != "" && !l.told[url] {
		l.told[url] = true
		l.log.Warn("an actor is not of the learner's kind", "at", url, "why", text)
	}
}

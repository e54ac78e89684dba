package actorbench_test

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/agents/actors"
	"github.com/onnxrl/onnxrl/agents/experiment/kinds"
	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/cmd/internal/actorbench"
	"github.com/onnxrl/onnxrl/runtime/portable"
)

// pipes is a connection to an actor within the process.
type pipes struct {
	io.Reader
	io.Writer
	in, out io.Closer
}

func (p pipes) Close() error {
	p.in.Close()
	return p.out.Close()
}

func (p pipes) Ending() string { return "closed" }
func (p pipes) Where() string  { return "" }

// TestRun measures a little, with actors behind pipes.
func TestRun(t *testing.T) {
	k := kinds.All()
	k.Envs = append(k.Envs, actorbench.Kind)
	e := portable.New()
	o := actorbench.Options{
		Engine: e, Kinds: k, Wait: time.Microsecond, Envs: 4, Counts: []int{1, 2}, MaxPolicyLag: 1, EnvSteps: 4 * 16 * 5,
		Actor: func(ctx context.Context, _ int) (actors.Conn, error) {
			requests, to := io.Pipe()
			from, replies := io.Pipe()
			go func() {
				// An error ends the connection.
				_ = replies.CloseWithError(run.ServeActor(context.WithoutCancel(ctx), k, e, slog.New(slog.DiscardHandler), requests, replies))
			}()
			return pipes{from, to, to, from}, nil
		},
	}
	r, err := actorbench.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := r.Print(&text); err != nil || !strings.Contains(text.String(), "4 environments, of which each step waits 0.001 ms") {
		t.Errorf("%v\n%s", err, text.String())
	}
	if len(r.Rows) != 2 || r.Rows[1].Actors != 2 || r.Rows[1].EnvSteps != 4*16*4 || r.Rows[0].Ratio != 1 || r.Rows[1].Ratio <= 0 || r.Rows[1].PolicyLag.Max > 1 {
		t.Errorf("%+v", r)
	}
	o.EnvSteps = 1
	if _, err := actorbench.Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), "1 actors: 1 env steps are one learner step") {
		t.Errorf("%v", err)
	}
}

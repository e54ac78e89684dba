package apptest

import (
	"testing"

	"github.com/onnxrl/onnxrl/agents/replay"
	"github.com/onnxrl/onnxrl/agents/replay/flight"
)

// Replay is a process of onnxrl replay serve.
type Replay struct{ *Flight }

// StartReplay runs onnxrl replay serve on a free port until it answers.
func StartReplay(t *testing.T, args ...string) *Replay {
	t.Helper()
	return &Replay{StartFlight(t, append([]string{"replay", "serve"}, args...)...)}
}

// Client dials the server for a table.
func (r *Replay) Client(table string) *flight.Client {
	r.t.Helper()
	var c replay.Served
	c.SetDefaults()
	c.URL, c.Table = r.URL, table
	x, err := flight.Dial(c)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { x.Close() })
	return x
}

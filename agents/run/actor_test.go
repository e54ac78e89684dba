package run_test

import (
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/onnxrl/onnxrl/agents/actors"
	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/experiment/kinds"
	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/agents/train"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// pipes is a connection to an actor that is served within the process, which may break.
type pipes struct {
	from *io.PipeReader
	to   *io.PipeWriter
	// left is how many bytes are read before it breaks.
	left int
}

func (p *pipes) Read(b []byte) (int, error) {
	n, err := p.from.Read(b[:min(len(b), max(1, p.left))])
	if p.left -= n; p.left <= 0 {
		p.Close()
		return 0, io.ErrUnexpectedEOF
	}
	return n, err
}

func (p *pipes) Write(b []byte) (int, error) { return p.to.Write(b) }

func (p *pipes) Close() error {
	p.from.Close()
	return p.to.Close()
}

func (p *pipes) Ending() string { return "somebody has pulled the plug" }
func (p *pipes) Where() string  { return "" }

// acting are actors behind pipes.
type acting struct {
	// breaks says after how many bytes the n-th connection to an actor breaks; nil for never.
	breaks func(index, n int) int

	mu       sync.Mutex
	launched map[int]int
	served   sync.WaitGroup
}

func (a *acting) launch(_ context.Context, index int) (actors.Conn, error) {
	requests, to := io.Pipe()
	from, replies := io.Pipe()
	a.served.Go(func() {
		// An error ends the connection.
		_ = replies.CloseWithError(run.ServeActor(context.Background(), kinds.All(), portable.New(), slog.New(slog.DiscardHandler), requests, replies))
		requests.Close()
	})
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.launched == nil {
		a.launched = map[int]int{}
	}
	a.launched[index]++
	p := &pipes{from, to, 1 << 40}
	if a.breaks != nil {
		p.left = a.breaks(index, a.launched[index])
	}
	return p, nil
}

// far trains with actors elsewhere, or with none.
func far(t *testing.T, a *acting, log io.Writer, sets ...string) (run.Result, error) {
	t.Helper()
	doc, err := configs.Parse("far.yaml", []byte(`
seed: 3
env: {kind: corridor, cells: 5}
agent: {kind: impala, n_steps: 6, n_epochs: 2, hidden: [6]}
train: {num_envs: 4, total_env_steps: 960, threads: 1, validation: {every_steps: 0}}
`))
	if err == nil {
		err = doc.Set(sets...)
	}
	cfg := experiment.Defaults()
	if err == nil {
		err = doc.Decode(&cfg)
	}
	if err != nil {
		t.Fatal(err)
	}
	o := run.Options{Engine: portable.New(), Hooks: run.Hooks{Log: slog.New(slog.NewTextHandler(log, nil))}}
	if a != nil {
		o.Actor = a.launch
	}
	r, err := run.Job{Config: text(t, cfg)}.Train(t.Context(), kinds.All(), o)
	if a != nil {
		// All of them end with the run.
		a.served.Wait()
	}
	return r, err
}

// same compares what two runs have come to.
func same(t *testing.T, what string, got, want run.Result) {
	t.Helper()
	for tag, x := range sorted.All(want.Train) {
		if got.Train[tag] != x {
			t.Errorf("%s: %s is %v, expected %v", what, tag, got.Train[tag], x)
		}
	}
	if len(want.Train) < 8 || got.EnvSteps != 960 || got.Episodes != want.Episodes || !reflect.DeepEqual(got.EpisodeReward, want.EpisodeReward) {
		t.Errorf("%s: %+v, expected %+v", what, got, want)
	}
}

// TestActorsElsewhere: actors in other processes give the bits of those in this one, and one that
// is never behind those of a run without; also where processes end in the middle of whatever they
// do.
func TestActorsElsewhere(t *testing.T) {
	turns, err := far(t, nil, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	for _, count := range []int{1, 2} {
		set := fmt.Sprintf("train.actors={count: %d, max_policy_lag: 0}", count)
		want, err := far(t, nil, io.Discard, set)
		if err != nil {
			t.Fatal(err)
		}
		if count == 1 {
			same(t, "one actor", want, turns)
		}
		a := &acting{}
		got, err := far(t, a, io.Discard, set, "train.actors.processes=true")
		if err != nil {
			t.Fatal(err)
		}
		same(t, fmt.Sprintf("%d elsewhere", count), got, want)
		if got.PolicyLag.Lost != 0 || a.launched[0] != 1 {
			t.Errorf("%+v, %v", got.PolicyLag, a.launched)
		}
		// The connections break at very different places, those of actor 1 more often.
		a = &acting{breaks: func(index, n int) int { return []int{2_500, 4_000, 7_000}[n%3] * (3 - index) }}
		var log bytes.Buffer
		if got, err = far(t, a, &log, set, "train.actors.processes=true"); err != nil {
			t.Fatal(err)
		}
		same(t, fmt.Sprintf("%d that break", count), got, want)
		if got.PolicyLag.Lost < 2 || int(got.PolicyLag.Lost) > a.launched[0]+a.launched[1]-count || !strings.Contains(log.String(), "somebody has pulled the plug") {
			t.Errorf("%d actors: %+v, launched %v", count, got.PolicyLag, a.launched)
		}
	}
}

// TestActorsElsewhereFail names the actor that cannot go on, and why.
func TestActorsElsewhereFail(t *testing.T) {
	const set = "train.actors={count: 2, max_policy_lag: 1, processes: true}"
	for _, c := range []struct {
		a    *acting
		want string
	}{
		{&acting{breaks: func(index, _ int) int { return 1<<40 - index*(1<<40-900) }}, "actor 1 of 2: it was started again 3 times in a row: its process has ended: somebody has pulled the plug"},
		{&acting{breaks: func(index, _ int) int { return 1<<40 - index*(1<<40-5) }}, "actor 1 of 2: its process has ended: somebody has pulled the plug"},
		{nil, "train.actors.processes: this program starts no processes for actors"},
	} {
		if r, err := far(t, c.a, io.Discard, set); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v, %v does not say %q", r, err, c.want)
		}
	}
}

// TestServeActorRefuses: what an actor is not to be asked is answered with an error, and what is no
// request ends it.
func TestServeActorRefuses(t *testing.T) {
	type beginning struct {
		Protocol     int
		Document     []byte
		Index, Count int
	}
	type order struct{ Number int64 }
	type request struct {
		Begin *beginning
		Play  *order
	}
	n := 0
	for _, c := range []struct {
		q    request
		want string
	}{
		{request{Play: &order{3}}, "a request that is not expected here"}, {request{}, "a request that is not expected here"},
		{request{Begin: &beginning{Protocol: 99}}, "version 99 of the protocol, and the actor 1"},
		{request{Begin: &beginning{Protocol: 1, Index: 2, Count: 2}}, "actor 2 of 2"},
		{request{Begin: &beginning{Protocol: 1, Count: 1, Document: []byte("env: [")}}, "the document of the run"},
		{request{Begin: &beginning{Protocol: 1, Count: 1, Document: []byte("env: {kind: corridor}\nagent: {kind: impala}")}}, "actor 0 of a run of 0"},
		{request{Begin: &beginning{Protocol: 1, Count: 1, Document: []byte("env: {kind: nowhere}\nagent: {kind: impala}\ntrain: {actors: {count: 1}}")}}, "nowhere"},
	} {
		var in, out bytes.Buffer
		if err := gob.NewEncoder(&in).Encode(c.q); err != nil {
			t.Fatal(err)
		}
		r, w := io.Pipe()
		go func() {
			// It is read before the end is.
			_, _ = w.Write(in.Bytes())
			<-t.Context().Done()
		}()
		done := make(chan error, 1)
		replies, answer := io.Pipe()
		go func() {
			done <- run.ServeActor(t.Context(), kinds.All(), portable.New(), slog.New(slog.DiscardHandler), r, answer)
		}()
		var reply struct{ Error string }
		if err := gob.NewDecoder(io.TeeReader(replies, &out)).Decode(&reply); err != nil || !strings.Contains(reply.Error, c.want) {
			t.Errorf("%+v: %q, %v, expected %q", c.q, reply.Error, err, c.want)
		}
		w.Close()
		if err := <-done; err != nil {
			t.Errorf("%+v: %v", c.q, err)
		}
		n++
	}
	if n != 7 {
		t.Errorf("%d requests", n)
	}
	if err := run.ServeActor(t.Context(), kinds.All(), portable.New(), slog.New(slog.DiscardHandler), strings.NewReader("what is this?"), io.Discard); err != nil {
		t.Errorf("%v", err)
	}
}

// TestActorsElsewhereAreStopped: they end with a run that is interrupted.
func TestActorsElsewhereAreStopped(t *testing.T) {
	a := &acting{}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cfg := experiment.Defaults()
	doc, err := configs.Parse("far.yaml", []byte("env: {kind: corridor}\nagent: {kind: appo, n_steps: 6, hidden: [6]}\ntrain: {actors: {count: 2, processes: true}, validation: {every_steps: 0}}"))
	if err == nil {
		err = doc.Decode(&cfg)
	}
	if err != nil {
		t.Fatal(err)
	}
	o := run.Options{Engine: portable.New(), Actor: a.launch, Hooks: run.Hooks{Progress: func(_ *run.Run, p train.Progress) {
		if p.LearnerSteps == 5 {
			cancel()
		}
	}}}
	if _, err := (run.Job{Config: text(t, cfg)}).Train(ctx, kinds.All(), o); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	a.served.Wait()
	if a.launched[0] != 1 || a.launched[1] != 1 {
		t.Errorf("%v", a.launched)
	}
}

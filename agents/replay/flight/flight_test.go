package flight_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/replay"
	"github.com/onnxrl/onnxrl/agents/replay/flight"
	"github.com/onnxrl/onnxrl/agents/replay/flight/flighttest"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// tables are those of the tests.
func tables() map[string]flight.TableConfig {
	of := func(selector string, capacity int, r flight.Rate) flight.TableConfig {
		var c flight.TableConfig
		c.SetDefaults()
		c.Selector, c.Capacity, c.Rate, c.ChunkRows = selector, capacity, r, 32
		if selector == flight.FIFO {
			c.ChunkRows = 0
		}
		return c
	}
	return map[string]flight.TableConfig{
		"transitions": of(flight.Uniform, 4096, flight.Rate{}), "ranked": of(flight.Prioritised, 4096, flight.Rate{}),
		"limited": of(flight.Uniform, 4096, flight.Rate{SamplesPerInsert: 2, MinSize: 100, ErrorBuffer: 40}), "queue": of(flight.FIFO, 8, flight.Rate{}),
	}
}

// serve serves the tables of a folder, and returns the address and what ends it.
func serve(t testing.TB, dir, listen string) (url string, stop func()) {
	t.Helper()
	return flighttest.Serve(t, flighttest.Open(t, dir, tables()), listen)
}

func dial(t testing.TB, url, table string) *flight.Client {
	t.Helper()
	var c replay.Served
	c.SetDefaults()
	c.URL, c.Table, c.Rounds, c.Writer = url, table, 4, "test"
	x, err := flight.Dial(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.Close() })
	return x
}

// world makes up rounds: the reward is the number of the transition among all.
type world struct {
	spec  envs.Spec
	frame *vector.Frame
	d     vector.Decision
	n     int
	r     *rng.Stream
}

func newWorld(t testing.TB, n int) *world {
	t.Helper()
	w := &world{spec: envs.Spec{Name: "made up", Observation: envs.Dict{{Name: "x", Space: envs.Unbounded(3)}}, Action: envs.Discrete{N: 4}, Masked: true, Reward: envs.Range{Low: math.Inf(-1), High: math.Inf(1)}}, r: rng.New(1).Stream()}
	var err error
	if w.frame, err = vector.NewFrame(w.spec, n, false); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.frame.Close() })
	b := w.frame.Batch()
	w.show(b.Obs[0])
	for e := range n {
		b.Type[e], b.Discount[e] = envs.First, 1
	}
	for i := range b.Mask.Bools() {
		b.Mask.Bools()[i], b.FinalMask.Bools()[i] = true, i%2 == 0
	}
	w.d.Actions = tensor.New(tensor.Int64, n)
	return w
}

func (w *world) show(x *tensor.Tensor) { w.r.FillNormal32(x.Float32s(), 0, 1) }

func (w *world) layout() replay.Layout {
	return replay.LayoutOf(w.spec, replay.Column{Name: "action", DType: tensor.Int64})
}

// rounds records some with each of the recorders.
func (w *world) rounds(t testing.TB, n int, to ...agents.Recorder) {
	t.Helper()
	b := w.frame.Batch()
	for range n {
		// Right after an episode's end that would be no reset.
		if w.r.IntN(20) == 0 && !slices.Contains(b.Type, envs.Last) {
			w.show(b.Obs[0]) // reset in the middle of episodes
		}
		for e := range b.Type {
			w.d.Actions.Int64s()[e] = int64(w.r.IntN(4))
		}
		for _, r := range to {
			if err := r.Begin(b, &w.d); err != nil {
				t.Fatal(err)
			}
		}
		w.show(b.Obs[0])
		w.show(b.Final[0])
		for e := range b.Type {
			b.Type[e], b.Reward[e], b.Discount[e] = envs.Mid, float64(w.n), 1
			if w.r.IntN(8) == 0 {
				b.Type[e], b.Discount[e] = envs.Last, float64(w.r.IntN(2))
			}
			w.n++
		}
		for _, r := range to {
			if err := r.End(b); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func batchOf(n int) *replay.Batch {
	of := func(d tensor.DType, shape ...int) *tensor.Tensor { return tensor.New(d, append([]int{n}, shape...)...) }
	return &replay.Batch{
		Obs: []*tensor.Tensor{of(tensor.Float32, 3)}, NextObs: []*tensor.Tensor{of(tensor.Float32, 3)}, Mask: of(tensor.Bool, 4), NextMask: of(tensor.Bool, 4), Action: of(tensor.Int64),
		Reward: make([]float32, n), Discount: make([]float32, n), Weight: make([]float32, n), Index: make([]int64, n), Policy: make([]int32, n), Time: make([]int64, n), Ended: make([]bool, n),
	}
}

func text(b *replay.Batch) string {
	return fmt.Sprint(b.Obs[0].Bytes(), b.NextObs[0].Bytes(), b.Mask.Bytes(), b.NextMask.Bytes(), b.Action.Bytes(), b.Reward, b.Discount, b.Weight, b.Policy, b.Time, b.Ended)
}

// TestTableEqualsStore records the same rounds in a table and in a store of the process, with
// resets in the middle of episodes, and demands the same samples, of one step, of several and of
// sequences.
func TestTableEqualsStore(t *testing.T) {
	url, _ := serve(t, t.TempDir(), "127.0.0.1:0")
	w := newWorld(t, 3)
	shared, err := replay.NewShared(w.layout(), replay.SharedConfig{Capacity: 4096, ChunkRows: 32, Name: "here"})
	if err != nil {
		t.Fatal(err)
	}
	defer shared.Close()
	c := replay.Config{Envs: 3, NSteps: 1, Gamma: 0.9}
	here, err := shared.Member("w", 0, replay.SamplerConfig{Fresh: true}).Open(w.layout(), c)
	if err != nil {
		t.Fatal(err)
	}
	there, err := dial(t, url, "transitions").Store().Open(w.layout(), c)
	if err != nil {
		t.Fatal(err)
	}
	draws := rng.New(5).Stream()
	for i := range 20 {
		w.rounds(t, 11, here, there)
		steps := 1 + i%3
		for _, b := range []replay.Buffer{here, there} {
			if err := b.SetReturns(steps, 0.9); err != nil {
				t.Fatal(err)
			}
		}
		x, y := batchOf(32), batchOf(32)
		state, err := draws.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		sample := func(b replay.Buffer, r *rng.Stream, to *replay.Batch) error {
			if i%4 == 0 && steps == 1 {
				return b.SampleSequences(r, to, 4)
			}
			return b.Sample(r, to)
		}
		if err := sample(there, draws, y); err != nil {
			t.Fatal(err)
		}
		var again rng.Stream
		if err := again.UnmarshalBinary(state); err != nil {
			t.Fatal(err)
		}
		if err := sample(here, rng.New(again.Uint64()).Stream(), x); err != nil {
			t.Fatal(err)
		}
		if text(x) != text(y) {
			t.Fatalf("sample %d of %d steps differs:\n%v %v\n%v %v", i, steps, x.Time, x.Reward, y.Time, y.Reward)
		}
	}
	if there.Len() != here.Len() || there.Len() != 660 {
		t.Errorf("%d transitions in the table, %d in the store, expected 660", there.Len(), here.Len())
	}
}

// TestServerProcess is the server that TestKill kills.
func TestServerProcess(t *testing.T) {
	dir := os.Getenv("FLIGHT_TEST_DIR")
	if dir == "" {
		return
	}
	if _, err := os.Stdout.WriteString("serves\n"); err != nil {
		t.Fatal(err)
	}
	serve(t, dir, os.Getenv("FLIGHT_TEST_LISTEN"))
	time.Sleep(time.Minute)
}

// TestKill kills a server with SIGKILL, again and again, while somebody writes and somebody takes:
// every transition that was recorded is there once, under the number it was recorded as, and every
// item of the queue comes once and in order.
func TestKill(t *testing.T) {
	longtest.Slow(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listen, dir := l.Addr().String(), t.TempDir()
	l.Close()
	start := func() (*exec.Cmd, error) {
		cmd := exec.Command(os.Args[0], "-test.run=^TestServerProcess$")
		cmd.Env = append(os.Environ(), "FLIGHT_TEST_DIR="+dir, "FLIGHT_TEST_LISTEN="+listen)
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			return nil, err
		}
		if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || !strings.HasPrefix(line, "serves") {
			return nil, fmt.Errorf("the server says %q (%v)", line, err)
		}
		return cmd, nil
	}
	server, err := start()
	if err != nil {
		t.Fatal(err)
	}
	c := dial(t, "grpc://"+listen, "transitions")
	w := newWorld(t, 2)
	b, err := c.Store().Open(w.layout(), replay.Config{Envs: 2, NSteps: 1, Gamma: 1})
	if err != nil {
		t.Fatal(err)
	}
	schema := arrow.NewSchema([]arrow.Field{{Name: "n", Type: arrow.PrimitiveTypes.Int64}}, nil)
	put, err := c.Writer(flight.PutCommand{Table: "queue", Writer: "actor"}, schema)
	if err != nil {
		t.Fatal(err)
	}
	const items = 300
	got := make(chan []int64, 1)
	go func() {
		var list []int64
		defer func() { got <- list }()
		r, err := c.Reader(flight.SampleCommand{Table: "queue"})
		for i := 0; err == nil && i < items; i++ {
			if err = r.Ask(flight.SampleRequest{}); err != nil {
				break
			}
			var rec arrow.Record
			if rec, _, err = r.Next(); err == nil {
				list = append(list, rec.Column(0).(*array.Int64).Value(0))
			}
		}
		if err == nil {
			err = r.Finish()
		}
		if err != nil {
			t.Error(err)
		}
	}()
	// Every other time the server is killed twice, while it restores its tables.
	due, ended := make(chan int, items), make(chan bool)
	go func() {
		defer close(ended)
		for n := range due {
			for range 1 + n%2 {
				server.Process.Kill()
				server.Wait()
				next, err := start()
				if err != nil {
					t.Error(err)
					return
				}
				server = next
			}
		}
	}()
	for i := range items {
		w.rounds(t, 4, b)
		ib := array.NewInt64Builder(memory.DefaultAllocator)
		ib.Append(int64(i))
		col := ib.NewArray()
		rec := array.NewRecord(schema, []arrow.Array{col}, 1)
		if err := put.Put(rec, json.RawMessage(`{}`)); err != nil {
			t.Fatal(err)
		}
		rec.Release()
		if i%25 == 24 {
			due <- i / 25
		}
	}
	if err := put.Flush(); err != nil {
		t.Fatal(err)
	}
	list := <-got
	close(due)
	<-ended
	defer func() {
		server.Process.Kill()
		server.Wait()
	}()
	for i, x := range list {
		if x != int64(i) {
			t.Fatalf("the queue gave item %d where %d was due: %v", x, i, list)
		}
	}
	if q, err := c.Stats("queue"); err != nil || q.Size != 0 || q.Inserts != items || q.Samples != items {
		t.Errorf("after %d items the queue has %d, of %d that came and %d that went (%v)", items, q.Size, q.Inserts, q.Samples, err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	s, err := c.Stats("transitions")
	if err != nil {
		t.Fatal(err)
	}
	if s.Clock != int64(w.n) || s.Restored == 0 {
		t.Errorf("%d transitions were recorded, and the server counts %d, after %d records were restored", w.n, s.Clock, s.Restored)
	}
	r, err := c.Reader(flight.SampleCommand{Table: "transitions", Batch: 4096, Columns: []string{"reward", "time"}})
	if err != nil {
		t.Fatal(err)
	}
	seen := map[int64]bool{}
	for range 10 {
		if err := r.Ask(flight.SampleRequest{}); err != nil {
			t.Fatal(err)
		}
		rec, _, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		for i := range int(rec.NumRows()) {
			reward, at := rec.Column(0).(*array.Float32).Value(i), rec.Column(1).(*array.Int64).Value(i)
			if int64(reward) != at {
				t.Fatalf("transition %d is the one that was recorded as %g", at, reward)
			}
			seen[at] = true
		}
	}
	if len(seen) < w.n*9/10 {
		t.Errorf("%d of %d transitions were drawn", len(seen), w.n)
	}
}

// TestPriorities gives one transition an error that outweighs all others; that outlives the server,
// and keys that mean nothing any more change nothing.
func TestPriorities(t *testing.T) {
	dir := t.TempDir()
	url, stop := serve(t, dir, "127.0.0.1:0")
	w := newWorld(t, 2)
	open := func(url string) replay.Updater {
		b, err := dial(t, url, "ranked").Store().Open(w.layout(), replay.Config{Envs: 2, NSteps: 1, Gamma: 1})
		if err != nil {
			t.Fatal(err)
		}
		return b.(replay.Updater)
	}
	u := open(url)
	w.rounds(t, 100, u)
	x, draws := batchOf(64), rng.New(3).Stream()
	u.SetBeta(1)
	share := func(u replay.Updater, at int64) (n int) {
		t.Helper()
		if err := u.Sample(draws, x); err != nil {
			t.Fatal(err)
		}
		for _, time := range x.Time {
			if time == at {
				n++
			}
		}
		return n
	}
	share(u, 0)
	at := x.Time[7]
	if err := u.Update([]int64{x.Index[7], x.Index[7] ^ 1}, []float32{1e6, 1e9}); err != nil {
		t.Fatal(err)
	}
	if n := share(u, at); n < 48 {
		t.Errorf("%d of 64 samples are the transition whose error is a million times the others'", n)
	}
	if i := bytes.IndexFunc([]byte{1}, func(rune) bool { return x.Weight[0] <= 0 || x.Weight[0] > 1 }); i >= 0 {
		t.Errorf("weights %v", x.Weight)
	}
	if err := u.Close(); err != nil {
		t.Fatal(err)
	}
	stop()
	url, _ = serve(t, dir, "127.0.0.1:0")
	if n := share(open(url), at); n < 48 {
		t.Errorf("after a restart %d of 64 samples are the transition with the large error", n)
	}
}

// TestRate lets a sampler wait for writers and writers for samplers: the ratio keeps within the
// buffer and a batch.
func TestRate(t *testing.T) {
	url, _ := serve(t, "", "127.0.0.1:0")
	c := dial(t, url, "limited")
	w := newWorld(t, 1)
	b, err := c.Store().Open(w.layout(), replay.Config{Envs: 1, NSteps: 1, Gamma: 1})
	if err != nil {
		t.Fatal(err)
	}
	const batch, samples = 16, 40
	done := make(chan error, 1)
	go func() {
		r, err := c.Reader(flight.SampleCommand{Table: "limited", Batch: batch})
		for i := 0; err == nil && i < samples; i++ {
			var about flight.Sampled
			if err = r.Ask(flight.SampleRequest{}); err == nil {
				_, about, err = r.Next()
			}
			if s := float64((i + 1) * batch); err == nil && (about.Size < 100 || s > 2*float64(about.Clock-100)+40+batch || s < 2*float64(about.Clock-100)-40-2*8*8) {
				err = fmt.Errorf("%g samples beside %d inserts of %d", s, about.Clock, about.Size)
			}
		}
		done <- err
	}()
	wrote := make(chan struct{})
	go func() {
		defer close(wrote)
		w.rounds(t, 400, b)
	}()
	if err := <-done; err != nil {
		t.Error(err)
	}
	<-wrote
	// The last transitions may still be on their way.
	s, err := c.Stats("limited")
	for end := time.Now().Add(time.Minute); err == nil && s.Inserts < 400 && time.Now().Before(end); s, err = c.Stats("limited") {
		time.Sleep(time.Millisecond)
	}
	if err != nil {
		t.Fatal(err)
	}
	// 640 samples let in (640 + 40) / 2 + 100 transitions, and a batch of four.
	if s.Samples != samples*batch || s.Inserts < 400 || s.Inserts > 444 {
		t.Errorf("%d samples and %d inserts; the rate lets in up to 444", s.Samples, s.Inserts)
	}
}

// TestRefusals are errors that name what was expected.
func TestRefusals(t *testing.T) {
	url, _ := serve(t, "", "127.0.0.1:0")
	w := newWorld(t, 1)
	_, err := dial(t, url, "nothing").Store().Open(w.layout(), replay.Config{Envs: 1})
	if err == nil || !strings.Contains(err.Error(), `there is no table "nothing"`) {
		t.Errorf("another table: %v", err)
	}
	if _, err = dial(t, url, "transitions").Store().Open(w.layout(), replay.Config{Envs: 1}); err != nil {
		t.Fatal(err)
	}
	l := w.layout()
	l.Obs[0].Shape = []int{5}
	if _, err = dial(t, url, "transitions").Store().Open(l, replay.Config{Envs: 1}); err == nil || !strings.Contains(err.Error(), `"obs.x"`) {
		t.Errorf("another layout: %v", err)
	}
	if _, err := flight.Open("", map[string]flight.TableConfig{"x": {Selector: "newest", Capacity: 1, JournalMB: 1}}, slog.Default()); err == nil || !strings.Contains(err.Error(), "tables.x: selector") {
		t.Errorf("another selector: %v", err)
	}
}

// TestPoliciesAndSpill has a table that draws policies by shares, and writes what it has no room
// for to files.
func TestPoliciesAndSpill(t *testing.T) {
	var table flight.TableConfig
	table.SetDefaults()
	table.Selector, table.Mix, table.Capacity, table.ChunkRows, table.Spill = flight.Policies, map[int32]float64{1: 3, 2: 1}, 1024, 16, true
	s := flighttest.Open(t, t.TempDir(), map[string]flight.TableConfig{"mixed": table})
	url, _ := flighttest.Serve(t, s, "127.0.0.1:0")
	var last replay.Buffer
	for policy := int32(1); policy <= 2; policy++ {
		var c replay.Served
		c.SetDefaults()
		c.URL, c.Table, c.Policy = url, "mixed", policy
		x, err := flight.Dial(c)
		if err != nil {
			t.Fatal(err)
		}
		defer x.Close()
		w := newWorld(t, 2)
		if last, err = x.Store().Open(w.layout(), replay.Config{Envs: 2, NSteps: 1, Gamma: 1}); err != nil {
			t.Fatal(err)
		}
		w.rounds(t, 350, last)
		if policy == 1 {
			if err := last.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	x, n := batchOf(1000), 0
	if err := last.Sample(rng.New(8).Stream(), x); err != nil {
		t.Fatal(err)
	}
	for _, p := range x.Policy {
		if p == 1 {
			n++
		}
	}
	if n < 680 || n > 820 {
		t.Errorf("%d of 1000 transitions are of policy 1, expected about 750", n)
	}
	about := s.Tables()[0]
	if about.Inserts != 1400 || about.Spilled == 0 || about.Size > 1024 || about.Size+about.Spilled != 1400 {
		t.Errorf("%d transitions, of which %d are kept and %d in files, expected 1400", about.Inserts, about.Size, about.Spilled)
	}
	if err := last.Close(); err != nil {
		t.Fatal(err)
	}
}

// recording is a world, and a buffer of the server's table for it, whose client waits so long for
// the server.
func recording(t *testing.T, url string, timeout time.Duration) (*world, replay.Buffer) {
	t.Helper()
	var c replay.Served
	c.SetDefaults()
	c.URL, c.Timeout = url, timeout
	x, err := flight.Dial(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.Close() })
	w := newWorld(t, 1)
	b, err := x.Store().Open(w.layout(), replay.Config{Envs: 1, NSteps: 1, Gamma: 1})
	if err != nil {
		t.Fatal(err)
	}
	return w, b
}

// TestLen: what was recorded is counted at once.
func TestLen(t *testing.T) {
	url, _ := serve(t, "", "127.0.0.1:0")
	w, b := recording(t, url, time.Minute)
	last := 0
	for range 300 {
		w.rounds(t, 1, b)
		n := b.Len()
		if err := b.(interface{ Flush() error }).Flush(); err != nil {
			t.Fatal(err)
		}
		if all := b.Len(); n != all {
			t.Fatalf("%d transitions, and %d when all are written", n, all)
		}
		last = n
	}
	if last < 200 {
		t.Errorf("%d transitions of 300 rounds", last)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}

// TestGone: a server that does not come back is an error, which is reported once.
func TestGone(t *testing.T) {
	longtest.Slow(t)
	url, stop := serve(t, "", "127.0.0.1:0")
	w, b := recording(t, url, 2*time.Second)
	w.rounds(t, 20, b)
	stop()
	if err := b.Sample(rng.New(1).Stream(), batchOf(8)); err == nil || !strings.Contains(err.Error(), url) || !strings.Contains(err.Error(), "no server for 2s") {
		t.Errorf("without a server: %v", err)
	}
	if err := b.Close(); err != nil {
		t.Errorf("closing tells it again: %v", err)
	}
}

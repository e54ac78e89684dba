package offpolicy_test

import (
	"encoding/gob"
	"errors"
	"fmt"
	"net"
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/agents/replay"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// remote is a store behind a connection. It is written against the public interface of package
// replay alone.
type remote struct {
	spec     envs.Spec
	identity string
	t        testing.TB
}

// message is a question of the client, or its answer.
type message struct {
	What                            string
	Type                            []envs.StepType
	Reward, Discount                []float64
	Obs, Final                      [][]byte
	Mask, FinalMask, Action, Stream []byte
	LogProb, Rewards, Discounts     []float32
	Ended                           []bool
	Rows, Length, Len               int
}

// Identity implements agents.Replay.
func (s *remote) Identity() string { return s.identity }

// Open implements replay.Store: what answers is a goroutine with a replay of its own.
func (s *remote) Open(l replay.Layout, c replay.Config) (replay.Buffer, error) {
	here, there := net.Pipe()
	x := &client{Reference: replay.Reference{Store: s.identity}, action: c.Action, conn: here, to: gob.NewEncoder(here), from: gob.NewDecoder(here)}
	c.Action = nil
	u, err := replay.NewUniform(l, c)
	if err != nil {
		return nil, err
	}
	f, err := vector.NewFrame(s.spec, c.Envs, false)
	if err != nil {
		return nil, err
	}
	done := make(chan error, 1)
	go func() { done <- serve(there, u, f, l) }()
	s.t.Cleanup(func() {
		if err := errors.Join(<-done, u.Close(), f.Close()); err != nil {
			s.t.Error(err)
		}
	})
	return x, nil
}

func bytesOf(list []*tensor.Tensor) (all [][]byte) {
	for _, t := range list {
		all = append(all, t.Bytes())
	}
	return all
}

func fill(list []*tensor.Tensor, from [][]byte) {
	for i, b := range from {
		copy(list[i].Bytes(), b)
	}
}

// serve answers until the client hangs up.
func serve(conn net.Conn, u *replay.Uniform, f *vector.Frame, l replay.Layout) error {
	from, to, b := gob.NewDecoder(conn), gob.NewEncoder(conn), f.Batch()
	of := func(c replay.Column, n int) *tensor.Tensor {
		return tensor.New(c.DType, append([]int{n}, c.Shape...)...)
	}
	for {
		var q, a message
		if err := from.Decode(&q); err != nil {
			return conn.Close()
		}
		var err error
		switch q.What {
		case "begin", "end":
			copy(b.Type, q.Type)
			copy(b.Reward, q.Reward)
			copy(b.Discount, q.Discount)
			fill(b.Obs, q.Obs)
			fill(b.Final, q.Final)
			if b.Mask != nil {
				copy(b.Mask.Bytes(), q.Mask)
				copy(b.FinalMask.Bytes(), q.FinalMask)
			}
			if q.What == "end" {
				err = u.End(b)
				break
			}
			d := &vector.Decision{Actions: of(l.Action, len(b.Type)), LogProb: q.LogProb}
			copy(d.Actions.Bytes(), q.Action)
			err = u.Begin(b, d)
		case "returns":
			err = u.SetReturns(q.Length, q.Reward[0])
		default:
			var s rng.Stream
			if err = s.UnmarshalBinary(q.Stream); err != nil {
				break
			}
			n := q.Rows
			x := &replay.Batch{Action: of(l.Action, n), Reward: make([]float32, n), Discount: make([]float32, n), Ended: make([]bool, n)}
			for _, c := range l.Obs {
				x.Obs, x.NextObs = append(x.Obs, of(c, n)), append(x.NextObs, of(c, n))
			}
			if l.Mask > 0 {
				x.Mask, x.NextMask = tensor.New(tensor.Bool, n, l.Mask), tensor.New(tensor.Bool, n, l.Mask)
			}
			if l.LogProb {
				x.LogProb = make([]float32, n)
			}
			if q.Length > 0 {
				err = u.SampleSequences(&s, x, q.Length)
			} else {
				err = u.Sample(&s, x)
			}
			a.Obs, a.Final, a.Action, a.Rewards, a.Discounts, a.LogProb, a.Ended = bytesOf(x.Obs), bytesOf(x.NextObs), x.Action.Bytes(), x.Reward, x.Discount, x.LogProb, x.Ended
			if l.Mask > 0 {
				a.Mask, a.FinalMask = x.Mask.Bytes(), x.NextMask.Bytes()
			}
			if err == nil {
				a.Stream, err = s.MarshalBinary()
			}
		}
		if a.Len = u.Len(); err != nil {
			a = message{What: err.Error()}
		}
		if err := to.Encode(&a); err != nil {
			return err
		}
	}
}

// client is a learner's end.
type client struct {
	replay.Reference
	action func(*vector.Decision) *tensor.Tensor
	conn   net.Conn
	to     *gob.Encoder
	from   *gob.Decoder
	n      int
}

var _ replay.Buffer = (*client)(nil)

func (x *client) ask(q message) (a message, err error) {
	if err := errors.Join(x.to.Encode(&q), x.from.Decode(&a)); err != nil {
		return a, err
	}
	if a.What != "" {
		return a, errors.New(a.What)
	}
	x.n = a.Len
	return a, nil
}

func (x *client) round(what string, b *vector.Batch) message {
	q := message{What: what, Type: b.Type, Reward: b.Reward, Discount: b.Discount, Obs: bytesOf(b.Obs), Final: bytesOf(b.Final)}
	if b.Mask != nil {
		q.Mask, q.FinalMask = b.Mask.Bytes(), b.FinalMask.Bytes()
	}
	return q
}

func (x *client) Begin(b *vector.Batch, d *vector.Decision) error {
	q, a := x.round("begin", b), d.Actions
	if x.action != nil {
		a = x.action(d)
	}
	q.Action, q.LogProb = a.Bytes(), d.LogProb
	_, err := x.ask(q)
	return err
}

func (x *client) End(b *vector.Batch) error {
	_, err := x.ask(x.round("end", b))
	if err == nil {
		x.Recorded++
	}
	return err
}

func (x *client) SetReturns(nSteps int, gamma float64) error {
	_, err := x.ask(message{What: "returns", Length: nSteps, Reward: []float64{gamma}})
	return err
}

func (x *client) Sample(s *rng.Stream, b *replay.Batch) error { return x.SampleSequences(s, b, 0) }

func (x *client) SampleSequences(s *rng.Stream, b *replay.Batch, length int) error {
	state, err := s.MarshalBinary()
	if err != nil {
		return err
	}
	a, err := x.ask(message{What: "sample", Stream: state, Rows: len(b.Reward), Length: length})
	if err != nil {
		return err
	}
	fill(b.Obs, a.Obs)
	fill(b.NextObs, a.Final)
	if b.Mask != nil {
		copy(b.Mask.Bytes(), a.Mask)
	}
	if b.NextMask != nil {
		copy(b.NextMask.Bytes(), a.FinalMask)
	}
	copy(b.Action.Bytes(), a.Action)
	copy(b.Reward, a.Rewards)
	copy(b.Discount, a.Discounts)
	copy(b.LogProb, a.LogProb)
	copy(b.Ended, a.Ended)
	for i := range b.Weight {
		b.Weight[i] = 1
	}
	return s.UnmarshalBinary(a.Stream)
}

func (x *client) Len() int     { return x.n }
func (x *client) Close() error { return x.conn.Close() }

// other is an identity without a store.
type other struct{}

func (other) Identity() string { return "other" }

// TestStores trains every off-policy learner on a replay of its own, one behind a connection, and
// one that it is lent: all bits are the same. Checkpoints then refer to the store.
func TestStores(t *testing.T) {
	n := 0
	for what, x := range sorted.All(learners(t)) {
		train := func(given agents.Replay) *agenttest.Training {
			v := agenttest.Toys(t, 2, x.Spec)
			r := agenttest.NewTraining(t, agenttest.Agent(t, x.Maker, v, engineOf(t), 1, func(s *agents.Setup) { s.TotalEnvSteps, s.Replay = 300, given }), v)
			r.Run(t, 40)
			return r
		}
		own := train(nil)
		want := bits(own)
		far := &remote{x.Spec, "far", t}
		u, err := replay.NewUniform(layoutOf(x.Spec, what == "sac, v-trace"), replay.Config{Capacity: 60, Envs: 2, NSteps: 1, Gamma: 0.99})
		if err != nil {
			t.Fatal(err)
		}
		agenttest.Closing(t, u)
		for where, s := range sorted.All(map[string]replay.Store{"behind a connection": far, "lent": u.Lend("lent")}) {
			r := train(s)
			if got := bits(r); got != want {
				t.Errorf("%s, a replay %s: other bits", what, where)
			}
			path := agenttest.Save(t, r.Agent)
			fresh := func(given agents.Replay) agents.Agent {
				return agenttest.Agent(t, x.Maker, r.Env, engineOf(t), 1, func(s *agents.Setup) { s.Replay = given })
			}
			if err := agenttest.Load(t, path, fresh(s)); err != nil {
				t.Errorf("%s, %s: %v", what, where, err)
			}
			agenttest.Has(t, agenttest.Load(t, path, fresh(nil)), fmt.Sprintf("in the store %q", s.Identity()))
			agenttest.Has(t, agenttest.Load(t, path, fresh(&remote{x.Spec, "elsewhere", t})), s.Identity(), `"elsewhere"`)
			agenttest.Has(t, agenttest.Load(t, agenttest.Save(t, own.Agent), fresh(s)), "in the checkpoint itself")
			n++
		}
		if _, err := x.Maker.New(t.Context(), agents.Setup{Spec: x.Spec, Envs: 2, Engine: engineOf(t), Key: rng.New(1), Replay: other{}}); err == nil {
			t.Errorf("%s: an identity without a store is accepted", what)
		} else {
			agenttest.Has(t, err, "other", "expected a replay.Store")
		}
	}
	if n != 2*5 {
		t.Errorf("%d trainings", n)
	}
}

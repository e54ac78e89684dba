package ppo

import (
	"context"
	"errors"
	"fmt"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/onpolicy"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/runtime/optim"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// learner updates the parameters from one rollout in several epochs of minibatches.
type learner struct {
	onpolicy.Learner
	// inUse says that an exploring actor has the states.
	inUse bool
	c     Config
	g     *graphs
	learn *minibatch
	// key is what the order of samples descends from.
	key rng.Key
	// epochs counts those of all updates, and envSteps the env steps learnt from.
	epochs, envSteps int64

	// logProb are the actions' log-probabilities and begins says that an episode begins with a
	// sample, [samples]. Of a memory, initial has the states before every length-th round,
	// [sequences, width] for each state.
	logProb []float32
	begins  []bool
	initial [][]float32
	states  *states

	in  inputs
	out outputs
	// norm is nil where values are not normalised.
	norm *valueNorm
	// at is where in an update the learner is.
	at position
	// order are the units of an epoch: all of which a sample is there, which there lists where some
	// rows were absent.
	order   []int
	there   []int
	normal  []float64
	off     *offPolicy
	shuffle rng.Stream
	sums    sums
}

// record makes the rollout. f evaluates what returns end with.
func (l *learner) record(f *onpolicy.Forward) {
	samples, frame := l.c.NSteps*l.Setup.Envs, l.g.Frame
	r := onpolicy.NewRollout(&l.Learner, l.c.NSteps, l.c.Gamma, f, actionsInput, func(name string, f *envs.Field) *onpolicy.Column {
		dtype, shape := tensor.Bool, []int{frame.MaskLen()}
		switch {
		case name == actionsInput:
			dtype, shape = frame.Stored()
		case f != nil && f.Window != nil:
			return &onpolicy.Column{Name: name, Window: f.Window, Rows: make([]int64, samples)}
		case f != nil:
			dtype, shape = f.Space.DType(), f.Space.Shape()
		}
		return onpolicy.NewColumn(name, tensor.New(dtype, append([]int{samples}, shape...)...))
	})
	l.logProb, l.begins = make([]float32, samples), make([]bool, samples)
	for _, s := range l.g.states {
		l.initial = append(l.initial, make([]float32, l.units()*s.Len()))
	}
	r.Check = func(*vector.Decision) error {
		if l.states != nil && l.states.before == nil {
			return errors.New("no exploring actor for all environments has decided; a recurrent policy records its states")
		}
		return nil
	}
	r.Record = func(b *vector.Batch, d *vector.Decision, at int) error {
		copy(l.logProb[at:], d.LogProb)
		for e, t := range b.Type {
			l.begins[at+e] = t != envs.Mid
		}
		if l.states != nil && r.T%l.g.length == 0 {
			for i, before := range l.states.before {
				copy(l.initial[i][r.T/l.g.length*len(before):], before)
			}
		}
		return nil
	}
}

// units is the number of pieces that minibatches are made of: samples, or sequences of length
// rounds, of which the last of an environment may be shorter.
func (l *learner) units() int {
	r, length := l.Rollout, max(1, l.g.length)
	return (r.Rounds + length - 1) / length * r.Envs
}

// bind finds the buffers of the learning program.
func (l *learner) bind() {
	p := l.learn.prog
	in := func(name string) []float32 { return floats(p.Input(name)) }
	out := func(name string) []float32 { return floats(p.Output(name)) }
	l.in = inputs{
		old: in(oldInput), returns: in(returnsInput), floor: in(floorInput), valueLow: in(valueLow), valueHigh: in(valueHigh),
		policy: in(policyWeight), value: in(valueWeight), entropy: in(entropyWeight),
		costReturns: in(costReturns), cost: in(costWeight),
	}
	l.out = outputs{out(onpolicy.LogProbOutput), out(onpolicy.EntropyOutput), out(agents.ValueOutput), out(agents.CostValueOutput)}
	l.key, l.order, l.normal = l.Setup.Key.Split("shuffle"), make([]int, l.units()), make([]float64, 0, len(l.learn.samples))
}

// floats returns the numbers of an input or output, nil when the network has none.
func floats(t *tensor.Tensor) []float32 {
	if t == nil {
		return nil
	}
	return t.Float32s()
}

// position is where an update stands between two minibatches.
type position struct {
	// Begun says that there is an update, whose advantages are estimated.
	Begun bool `json:"begun"`
	// Epoch is the present one, and Next the place in its order of the first unit that is not
	// learnt from yet.
	Epoch int `json:"epoch"`
	Next  int `json:"next"`
}

// Step implements agents.Learner.
func (l *learner) Step(ctx context.Context) (agents.Metrics, error) {
	if err := l.Complete(); err != nil {
		return nil, err
	}
	if !l.at.Begun {
		if err := l.begin(); err != nil {
			return nil, fmt.Errorf("%s: learn: update %d: %w", l.Name, l.Updates, err)
		}
	}
	now := l.schedules()
	for ; l.at.Epoch < l.c.NEpochs; l.at.Epoch, l.at.Next = l.at.Epoch+1, 0 {
		goOn, err := l.epoch(ctx, now)
		if err != nil {
			return nil, fmt.Errorf("%s: learn: update %d, epoch %d: %w", l.Name, l.Updates, l.at.Epoch, err)
		}
		l.epochs++
		if !goOn {
			break
		}
	}
	l.Updates++
	l.at = position{}
	l.measure(now)
	l.Rollout.Clear()
	return l.Metrics, nil
}

// begin begins an update.
func (l *learner) begin() error {
	watch := l.Setup.Profile.Start()
	l.envSteps += int64(len(l.Advantage))
	l.sums = sums{}
	if l.norm != nil {
		l.norm.begin(l.Rollout)
	}
	if s := l.Rollout.Constraints; s != nil {
		if err := s.Update(); err != nil {
			return err
		}
		l.EstimateConstrained(l.c.GAELambda)
	} else {
		l.Estimate(l.c.GAELambda)
	}
	l.at = position{Begun: true}
	watch.Lap(agents.Sampling)
	return nil
}

// coefficients are the values of the schedules in an update.
type coefficients struct{ learningRate, clip, clipVF, targetKL float64 }

// schedules returns what holds in the update after the env steps so far: as in Stable-Baselines3,
// those of the rollout to be learnt from count.
func (l *learner) schedules() coefficients {
	c := coefficients{
		learningRate: l.c.LearningRateSchedule.Of(l.c.LearningRate, l.envSteps, l.Setup.TotalEnvSteps),
		clip:         l.c.ClipRangeSchedule.Of(l.c.ClipRange, l.envSteps, l.Setup.TotalEnvSteps),
		targetKL:     l.c.TargetKLSchedule.Of(l.c.TargetKL, l.envSteps, l.Setup.TotalEnvSteps),
	}
	c.clipVF = l.c.ClipRangeVF * c.clip / l.c.ClipRange
	return c
}

// permute puts the units of the rollout into another order.
func (l *learner) permute() {
	r := l.Rollout
	if r.Present == nil {
		l.order = l.order[:cap(l.order)]
		l.shuffle.Perm(l.order)
		return
	}
	if l.there == nil {
		l.there = make([]int, 0, cap(l.order))
	}
	l.there = l.there[:0]
	length := max(1, l.g.length)
	for u := range cap(l.order) {
		for t := u / r.Envs * length; t < min((u/r.Envs+1)*length, r.Rounds); t++ {
			if r.Has(t*r.Envs + u%r.Envs) {
				l.there = append(l.there, u)
				break
			}
		}
	}
	l.order = l.order[:len(l.there)]
	l.shuffle.Perm(l.order)
	for i, k := range l.order {
		l.order[i] = l.there[k]
	}
}

// epoch learns once from every sample that the epoch has left, in an order of its own. It returns
// false when the policy has gone too far.
func (l *learner) epoch(ctx context.Context, now coefficients) (bool, error) {
	if l.at.Next == 0 {
		if l.off != nil {
			if err := l.correct(ctx); err != nil {
				return false, err
			}
		}
		l.sums.kl, l.sums.klBatches = 0, 0
	}
	watch := l.Setup.Profile.Start()
	l.shuffle.Seed(l.key.Split("epoch", int(l.Updates), l.at.Epoch))
	l.permute()
	optim.SetLR(l.Groups, now.learningRate)
	for ; l.at.Next < len(l.order); l.at.Next += l.learn.units {
		if err := l.Setup.Between(ctx, l.at.Epoch*len(l.order)+l.at.Next, l.c.NEpochs*len(l.order)); err != nil {
			return false, err
		}
		l.fill(l.order[l.at.Next:min(l.at.Next+l.learn.units, len(l.order))], now)
		watch = watch.Lap(agents.Sampling)
		if err := l.learn.prog.Run(); err != nil {
			return false, err
		}
		watch = watch.Lap(agents.Gradient)
		if kl := l.diagnose(now); now.targetKL > 0 && kl > 1.5*now.targetKL {
			return false, nil
		}
		watch = watch.Lap(agents.Sampling)
		if _, err := l.Descend(l.c.MaxGradNorm); err != nil {
			return false, err
		}
		watch = watch.Lap(agents.Optimising)
	}
	return true, nil
}

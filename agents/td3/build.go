package td3

import (
	"errors"
	"fmt"
	"slices"

	"onnxrl/agents"
	"onnxrl/agents/network"
	"onnxrl/agents/replay"
	"onnxrl/models"
	"onnxrl/models/layer"
	"onnxrl/models/program"
	"onnxrl/runtime/autodiff"
	"onnxrl/runtime/crew"
	"onnxrl/runtime/optim"
	"onnxrl/runtime/rng"
	"onnxrl/runtime/tensor"
)

// shardFLOPs is the arithmetic of a run from which splitting it over cores pays: about 150 µs on one core. A variable so that tests can split small work.
var shardFLOPs = 15e6

// shareElems is the number of parameters from which cores share in moving target networks, which is that of package optim's steps.
const shareElems = 16384

// split returns the number of parts in which a network is run on a batch. cost is the arithmetic of a run as a multiple of a forward one.
func split(n *models.Network, batch, threads int, cost float64) int {
	if threads < 2 || cost*program.FLOPs(n.Model, map[string]int{layer.Batch: batch}) < shardFLOPs {
		return 1
	}
	for k := min(threads, batch); k > 1; k-- {
		if batch%k == 0 {
			return k
		}
	}
	return 1
}

// init makes the learner of an agent that has parameters and a replay.
func (l *learner) init(a *Agent) error {
	s := &a.setup
	l.c, l.g, l.params, l.buffer, l.hands, l.profile = a.c, a.graphs, a.params, a.buffer, a.hands, s.Profile
	l.key, l.envs, l.total, l.metrics = s.Key.Split("learner"), s.Envs, uint64(max(s.TotalEnvSteps, 0)), agents.Metrics{}
	l.rec = &recorder{Recorder: replay.NewRecorder(a.buffer, network.StoredOf), noise: newNoise(a.c.ActionNoise, s.Envs, l.g.frame.Dims)}
	l.streams = rng.NewSet(l.key)
	l.sample, l.smooth = l.streams.Stream("sample"), l.streams.Stream("noise")
	if err := l.compile(a); err != nil {
		return err
	}
	l.bind()
	if err := l.optimisers(a.grads); err != nil {
		return err
	}
	l.pairs()
	n := 0
	for _, p := range l.follow {
		n += len(p[0])
	}
	if n >= shareElems {
		l.movers = l.hands
	}
	l.moves = func(k int) {
		for _, p := range l.follow {
			lo, hi := crew.Share(len(p[0]), k, l.movers.Size())
			optim.Polyak(p[0][lo:hi], p[1][lo:hi], float32(l.c.Tau))
		}
	}
	return nil
}

// compile makes the programs. The critics' and the targets' read the actor's batch where they read the same.
func (l *learner) compile(a *Agent) error {
	shared := map[string]*tensor.Tensor{}
	make := func(what string, net *models.Network, scope string, cost float64) (*program.Program, error) {
		c := program.Config{
			Engine: a.setup.Engine, Batch: l.c.BatchSize, BatchSymbol: layer.Batch, Shards: split(net, l.c.BatchSize, a.setup.Threads, cost), Crew: a.hands, Inputs: shared,
		}
		if scope != "" {
			var wrt []string
			for _, s := range net.Specs {
				if s.Role == models.Trainable && below(s.Name, scope) {
					wrt = append(wrt, s.Name)
				}
			}
			// The other side's parameters are inputs like any other: nothing flows into them.
			c.Objectives, c.Gradients = []autodiff.Objective{{Losses: []autodiff.Loss{{Value: lossOutput}}, Wrt: wrt}}, []*models.Segment{a.grads}
		}
		p, err := program.New(net, l.params, c)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", what, err)
		}
		for _, name := range p.Inputs() {
			shared[name] = p.Input(name)
		}
		return p, nil
	}
	var err error
	if l.actor, err = make("actor's program", l.g.actor, actorScope, 3); err != nil {
		return err
	}
	if l.critic, err = make("critics' program", l.g.critic, criticScope, 3); err != nil {
		return err
	}
	l.targets, err = make("targets' program", l.g.targets, "", 1)
	// What the programs left there while they were tried out.
	clear(a.grads.Floats())
	return err
}

// bind finds the buffers of the programs.
func (l *learner) bind() {
	n := l.c.BatchSize
	l.batch = replay.Batch{Action: l.critic.Input(actionInput), Reward: make([]float32, n), Discount: make([]float32, n)}
	for _, f := range l.g.frame.Spec.Observation {
		l.batch.Obs, l.batch.NextObs = append(l.batch.Obs, l.actor.Input(f.Name)), append(l.batch.NextObs, l.targets.Input(nextPrefix+f.Name))
	}
	l.y = l.critic.Input(targetInput).Float32s()
	l.criticLoss, l.actorLoss, l.nextQ = l.critic.Output(lossOutput).Float32s(), l.actor.Output(lossOutput).Float32s(), l.targets.Output(qOutput).Float32s()
	if t := l.targets.Input(noiseInput); t != nil {
		l.noise = t.Float32s()
	}
	// The weights are the same tensor in both programs.
	w := l.actor.Input(weightInput).Float32s()
	for i := range w {
		w[i] = 1 / float32(n)
	}
}

// optimisers gives actor and critics one each.
func (l *learner) optimisers(grads *models.Segment) error {
	rate := l.c.CriticLearningRate
	if rate == 0 {
		rate = l.c.LearningRate
	}
	var all []optim.Param
	for _, side := range []struct {
		h     *half
		scope string
		lr    float64
		prog  *program.Program
	}{{&l.actorHalf, actorScope, l.c.LearningRate, l.actor}, {&l.criticHalf, criticScope, rate, l.critic}} {
		seg := l.params.Segment(models.Trainable)
		var list []optim.Param
		for i, s := range seg.Specs() {
			if off, n := seg.Range(i); below(s.Name, side.scope) && !slices.Contains(side.prog.Unreached(), s.Name) {
				list = append(list, optim.Param{Name: s.Name, Offset: off, Len: n})
			}
		}
		if len(list) == 0 {
			return errors.New("no parameter of the " + side.scope + " has a gradient")
		}
		all = append(all, list...)
		// The optimiser's state begins where its parameters do.
		base := list[0].Offset
		for i := range list {
			list[i].Offset -= base
		}
		c := l.c.Optimizer
		c.LR = side.lr
		groups, err := optim.Groups(c, seg.Floats()[base:], grads.Floats()[base:], list)
		if err != nil {
			return fmt.Errorf("optimizer: %w", err)
		}
		side.h.groups, side.h.lr = groups, side.lr
		if side.h.opt, err = optim.New(c, optim.WithCrew(l.hands)); err != nil {
			return err
		}
	}
	if bad := l.c.Optimizer.Unmatched(all); len(bad) > 0 {
		return fmt.Errorf("optimizer: patterns %q match no trainable parameter", bad)
	}
	return nil
}

// pairs finds what the target networks follow. Neighbours are one range: usually all are.
func (l *learner) pairs() {
	from, to := l.params.Segment(models.Trainable), l.params.Segment(models.Frozen)
	place := map[string]int{}
	for i, s := range to.Specs() {
		place[s.Name] = i
	}
	endFrom, endTo := -1, -1
	for i, s := range from.Specs() {
		j, ok := place[targetScope+"."+s.Name]
		if !ok {
			continue
		}
		a, n := from.Range(i)
		b, _ := to.Range(j)
		// Parameters begin at the same multiples in both, so equal distances mean that only padding lies in between.
		if k := len(l.follow) - 1; k >= 0 && aligned(endFrom) == a && aligned(endTo) == b {
			old := &l.follow[k]
			old[0], old[1] = old[0][:len(old[0])+b+n-endTo], old[1][:len(old[1])+a+n-endFrom]
		} else {
			l.follow = append(l.follow, [2][]float32{to.Floats()[b : b+n], from.Floats()[a : a+n]})
		}
		endFrom, endTo = a+n, b+n
	}
}

// aligned is where the parameter after one that ends at an element begins.
func aligned(end int) int { return tensor.AlignUp(4*end) / 4 }

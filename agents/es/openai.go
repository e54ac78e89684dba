package es

import (
	"context"
	"fmt"
	"math"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/network"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/checkpoint"
	"github.com/onnxrl/onnxrl/runtime/optim"
	"github.com/onnxrl/onnxrl/runtime/pool"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// openAI is the strategy of Salimans et al.: member 2i is the centre plus sigma·ε, member 2i+1 the
// centre minus it, where ε is drawn from the key of generation and pair whenever it is needed.
type openAI struct {
	c     OpenAIConfig
	setup *agents.Setup
	key   rng.Key
	// centre are the trainable parameters, grad the gradient of what is minimised.
	centre, grad *models.Segment
	opt          optim.Optimizer
	groups       []optim.Group
	// gaps are what lies between parameters in the centre's layout, pairs of the first element and
	// one past the last: nothing moves there.
	gaps       [][2]int
	generation int64
	// total is the length of the run in env steps, 0 when it is not known.
	total int64

	ranks []float64
	order []int
	pool  *pool.Pool
	// scratch is one block for each worker. accumulate adds a pair with a weight.
	scratch    [][]float32
	pair       int
	weight     float32
	accumulate func(k int)
}

func newOpenAI(c OpenAIConfig, s *agents.Setup, p *models.Params, workers *pool.Pool) (*openAI, error) {
	o := &openAI{
		c: c, setup: s, key: s.Key.Split("noise"), centre: p.Segment(models.Trainable), total: s.TotalEnvSteps,
		ranks: make([]float64, c.Population), order: make([]int, c.Population), pool: workers, scratch: make([][]float32, workers.Size()),
	}
	for k := range o.scratch {
		o.scratch[k] = make([]float32, block)
	}
	o.accumulate = o.add
	end := 0
	for i := range o.centre.Specs() {
		off, n := o.centre.Range(i)
		o.gaps = append(o.gaps, [2]int{end, off})
		end = off + n
	}
	o.gaps = append(o.gaps, [2]int{end, len(o.centre.Floats())})
	var err error
	if o.grad, err = o.centre.Like(); err != nil {
		return o, err
	}
	return o, o.newOptimizer(c)
}

// newOptimizer takes over the state of the optimiser that there was. After an error nothing has
// changed.
func (o *openAI) newOptimizer(c OpenAIConfig) error {
	var list []optim.Param
	for i, s := range o.centre.Specs() {
		off, n := o.centre.Range(i)
		list = append(list, optim.Param{Name: s.Name, Offset: off, Len: n})
	}
	oc := c.Optimizer
	if bad := oc.Unmatched(list); len(bad) > 0 {
		return fmt.Errorf("optimizer: patterns %q match no trainable parameter", bad)
	}
	oc.LR = c.LearningRate
	groups, err := optim.Groups(oc, o.centre.Floats(), o.grad.Floats(), list)
	if err != nil {
		return fmt.Errorf("optimizer: %w", err)
	}
	opt, err := optim.New(oc, optim.WithPool(o.pool))
	if err == nil && o.opt != nil {
		err = opt.SetState(o.opt.State())
	}
	if err != nil {
		return fmt.Errorf("optimizer: %w", err)
	}
	for k := range groups {
		// SetLR multiplies the schedule's factor by this.
		groups[k].LRScale = groups[k].LR
	}
	o.opt, o.groups = opt, groups
	return nil
}

func (o *openAI) members() int { return o.c.Population }

// draw writes the perturbation of a pair in block b.
func (o *openAI) draw(dst []float32, pair, b int) {
	var s rng.Stream
	s.Seed(o.key.Split("pair", int(o.generation), pair, b))
	s.FillNormal32(dst, 0, 1)
}

func (o *openAI) write(member int, dst, scratch []float32) {
	sigma := float32(o.c.Sigma)
	if member%2 == 1 {
		sigma = -sigma
	}
	centre := o.centre.Floats()
	for b, lo := 0, 0; lo < len(dst); b, lo = b+1, lo+block {
		hi := min(lo+block, len(dst))
		eps := scratch[:hi-lo]
		o.draw(eps, member/2, b)
		for i, x := range centre[lo:hi] {
			dst[lo+i] = x + float32(sigma*eps[i])
		}
	}
}

// add adds the part of the gradient that is due to a pair, for every Size-th block. The sum of a
// parameter has the same order whatever the number of workers.
func (o *openAI) add(k int) {
	grad := o.grad.Floats()
	if o.weight == 0 {
		return
	}
	for b := k; b*block < len(grad); b += o.pool.Size() {
		g := grad[b*block : min((b+1)*block, len(grad))]
		eps := o.scratch[k][:len(g)]
		o.draw(eps, o.pair, b)
		for i, x := range eps {
			g[i] += float32(o.weight * x)
		}
	}
}

func (o *openAI) step(ctx context.Context, returns []float64, envSteps int64, m agents.Metrics) error {
	watch := o.setup.Profile.Start()
	centredRanks(o.ranks, returns, o.order)
	clear(o.grad.Floats())
	pairs := len(returns) / 2
	for o.pair = range pairs {
		if err := o.setup.Between(ctx, o.pair, pairs); err != nil {
			return err
		}
		o.weight = float32((o.ranks[2*o.pair+1] - o.ranks[2*o.pair]) / float64(len(returns)))
		o.pool.Run(o.accumulate)
	}
	for _, gap := range o.gaps {
		clear(o.grad.Floats()[gap[0]:gap[1]])
	}
	watch = watch.Lap(agents.Gradient)
	factor := o.c.LearningRateSchedule.Factor(o.c.LearningRate, envSteps, o.total)
	optim.SetLR(o.groups, factor)
	norm, _, err := optim.ClipGlobalNorm(o.groups, math.Inf(1))
	if err != nil {
		return err
	}
	if err := o.opt.Step(o.groups); err != nil {
		return err
	}
	watch.Lap(agents.Optimising)
	o.generation++
	m["train/grad_norm"], m["train/learning_rate"] = norm, factor*o.c.LearningRate
	return nil
}

// edit takes over what can change between two generations.
func (o *openAI) edit(config any, totalEnvSteps int64) error {
	if err := agents.Editable(o.c, config, "sigma", "learning_rate", "learning_rate_schedule", "optimizer"); err != nil {
		return err
	}
	c := config.(OpenAIConfig)
	if err := o.newOptimizer(c); err != nil {
		return err
	}
	o.c, o.total = c, totalEnvSteps
	return nil
}

func (o *openAI) save(w *checkpoint.Writer) error {
	w.PutJSON("generation", o.generation)
	network.SaveOptimizer(w.Scope("optim"), o.opt)
	return nil
}

func (o *openAI) load(r *checkpoint.Reader) error {
	var generation int64
	if err := r.JSON("generation", &generation); err != nil {
		return err
	}
	if err := network.LoadOptimizer(r.Scope("optim"), o.opt); err != nil {
		return err
	}
	o.generation = generation
	return nil
}

func (o *openAI) close() error {
	if o.grad == nil {
		return nil
	}
	return o.grad.Close()
}

package vector

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/wrap"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Normalized normalises the observations and rewards of another vector, which it owns, and learns their
// statistics.
type Normalized struct {
	inner Env
	c     wrap.Normalize
	gamma float64
	spec  envs.Spec
	view  *View
	// fields are those that are normalised.
	fields []field
	// ret are the statistics of the running discounted returns, of which returns has one for each
	// environment.
	ret     wrap.Running
	returns []float64
	// taken are the returns of the rows that took a step, where some may not.
	taken []float64
}

// field is one part of the observation.
type field struct {
	index int
	stats wrap.Running
	// norm has the slices of stats.
	norm wrap.Normalizer
	// raw and shown are the elements of the batch, final and shownFinal those of episodes that
	// ended, and present those of raw whose rows are present, where some may be absent.
	raw, shown, final, shownFinal, present []float32
}

var _ Env = (*Normalized)(nil)

// Normalize returns v normalised. It owns v from then on; after an error v remains the caller's.
func Normalize(v Env, c wrap.Normalize) (*Normalized, error) {
	if err := configs.Validate(c); err != nil {
		return nil, fmt.Errorf("wrappers.normalize: %w", err)
	}
	raw := v.Spec()
	indices, err := chosen(raw, c)
	if err != nil {
		return nil, fmt.Errorf("wrappers.normalize.%w", err)
	}
	e := &Normalized{inner: v, c: c, gamma: c.Discount(), spec: raw, ret: wrap.NewRunning(1), returns: make([]float64, v.Len())}
	if c.Reward {
		e.spec.Reward = envs.Range{Low: -c.ClipReward, High: c.ClipReward}
	}
	e.spec.Observation = slices.Clone(raw.Observation)
	for _, i := range indices {
		e.spec.Observation[i].Space = normalized(raw.Observation[i].Space, c.ClipObs)
	}
	if e.view, err = NewView(e.spec, v.Len(), indices, c.Reward); err != nil {
		return nil, fmt.Errorf("wrappers.normalize: %w", err)
	}
	from, to := v.Batch(), e.view.Batch()
	for _, i := range indices {
		f := field{
			index: i, stats: wrap.NewRunning(elements(raw.Observation[i].Space)),
			raw: from.Obs[i].Float32s(), shown: to.Obs[i].Float32s(), final: from.Final[i].Float32s(), shownFinal: to.Final[i].Float32s(),
		}
		f.norm = wrap.Normalizer{Field: raw.Observation[i].Name, Mean: f.stats.Mean, Var: f.stats.Var, Epsilon: c.Epsilon, Clip: c.ClipObs}
		if from.Present != nil {
			f.present = make([]float32, len(f.raw))
		}
		e.fields = append(e.fields, f)
	}
	if from.Present != nil {
		e.taken = make([]float64, v.Len())
	}
	return e, nil
}

// chosen returns the fields to normalise. The error begins with the key that does not fit.
func chosen(spec envs.Spec, c wrap.Normalize) (list []int, err error) {
	if !c.On() {
		return nil, errors.New("obs: neither observations nor rewards are to be normalised")
	}
	if !c.Obs {
		return nil, nil
	}
	fits := func(f envs.Field) bool {
		box, ok := f.Space.(envs.Box)
		return ok && box.Of == tensor.Float32 && f.Window == nil && f.Name != wrap.SkillField
	}
	for _, name := range c.Fields {
		i := spec.Observation.Index(name)
		switch {
		case i < 0:
			return nil, fmt.Errorf("fields: %q: the observation of %s has %s", name, spec.Name, describe(spec.Observation))
		case !fits(spec.Observation[i]):
			return nil, fmt.Errorf("fields: observation %q of %s is %s, expected a box of float32 that is no window over a table and no skill", name, spec.Name, describe(spec.Observation[i:i+1]))
		}
		list = append(list, i)
	}
	if len(list) > 0 {
		slices.Sort(list)
		return list, nil
	}
	for i, f := range spec.Observation {
		if fits(f) {
			list = append(list, i)
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("obs: %s observes %s; none of it is a box of float32 that is no window over a table", spec.Name, describe(spec.Observation))
	}
	return list, nil
}

func describe(d envs.Dict) string {
	list := make([]string, len(d))
	for i, f := range d {
		list[i] = fmt.Sprintf("%s (%v)", f.Name, f.Space)
		if f.Window != nil {
			list[i] = fmt.Sprintf("%s (%v, a window)", f.Name, f.Space)
		}
	}
	return fmt.Sprint(list)
}

func elements(s envs.Space) int {
	n := 1
	for _, d := range s.Shape() {
		n *= d
	}
	return n
}

// normalized is the space of a field after normalisation.
func normalized(s envs.Space, clip float64) envs.Space { return envs.NewBox(-clip, clip, s.Shape()...) }

// Spec implements Env: that of the environments with the bounds of what was normalised.
func (e *Normalized) Spec() envs.Spec { return e.spec }

// Len implements Env.
func (e *Normalized) Len() int { return e.inner.Len() }

// Batch implements Env.
func (e *Normalized) Batch() *Batch { return e.view.Batch() }

// Inner returns the vector inside, which shows raw observations and rewards. It must not be
// stepped.
func (e *Normalized) Inner() Env { return e.inner }

// Reset implements Env. The statistics stay, and take in the first observations; the returns
// begin at 0.
func (e *Normalized) Reset(key rng.Key) error {
	if err := e.inner.Reset(key); err != nil {
		return err
	}
	clear(e.returns)
	e.view.Follow(e.inner.Batch())
	e.observe()
	clear(e.view.Batch().Reward)
	return nil
}

// Step implements Env. It allocates nothing beyond what the vector inside does.
func (e *Normalized) Step(actions *tensor.Tensor) error {
	if err := e.inner.Step(actions); err != nil {
		return err
	}
	e.view.Follow(e.inner.Batch())
	e.observe()
	b := e.view.Batch()
	for i := range e.fields {
		f := &e.fields[i]
		d := len(f.norm.Mean)
		for _, ep := range b.Ended {
			at := ep.Env * d
			f.norm.Apply(f.shownFinal[at:at+d], f.final[at:at+d])
		}
	}
	if e.c.Reward {
		e.reward(b)
	}
	return nil
}

// observe takes the present observations into the statistics and shows them normalised.
func (e *Normalized) observe() {
	present := e.view.Batch().Present
	for i := range e.fields {
		f := &e.fields[i]
		x := f.raw
		if present != nil {
			x = f.present[:0]
			d := len(f.norm.Mean)
			for r, here := range present {
				if here {
					x = append(x, f.raw[r*d:(r+1)*d]...)
				}
			}
		}
		wrap.Update(&f.stats, x)
		f.show(present)
	}
}

// show shows the observations of the rows that are present normalised. Those of the others are
// zeros here, too.
func (f *field) show(present []bool) { apply(&f.norm, f.shown, f.raw, present) }

func apply(n *wrap.Normalizer, z, x []float32, present []bool) {
	n.Apply(z, x)
	d := len(n.Mean)
	for r, here := range present {
		if !here {
			clear(z[r*d : (r+1)*d])
		}
	}
}

// reward takes the discounted returns into their statistics and shows the rewards scaled.
func (e *Normalized) reward(b *Batch) {
	earned := b.Earned()
	for i, r := range earned {
		e.returns[i] = float64(e.returns[i]*e.gamma) + r
	}
	taken := e.returns
	if b.Present != nil {
		taken = e.taken[:0]
		for i, t := range b.Type {
			if t != envs.First {
				taken = append(taken, e.returns[i])
			}
		}
	}
	wrap.Update(&e.ret, taken)
	std := math.Sqrt(e.ret.Var[0] + e.c.Epsilon)
	for i, r := range earned {
		b.Reward[i] = min(max(r/std, -e.c.ClipReward), e.c.ClipReward)
	}
	for i, t := range b.Type {
		if t == envs.Last {
			e.returns[i] = 0
		}
	}
}

// Raw is the batch of the vector inside: observations and rewards as the environments gave them.
func (e *Normalized) Raw() *Batch { return e.inner.Batch() }

// ScaleObs scales rows of a field of the observation in place by the present statistics; fields
// that are not normalised stay as they are.
func (e *Normalized) ScaleObs(field int, x *tensor.Tensor) {
	for i := range e.fields {
		if f := &e.fields[i]; f.index == field {
			f.norm.Apply(x.Float32s(), x.Float32s())
		}
	}
}

// ScalesRewards reports whether rewards are normalised, and ScaleRewards scales some in place by the
// present statistics.
func (e *Normalized) ScalesRewards() bool { return e.c.Reward }

// ScaleRewards does what [Normalized.ScalesRewards] says.
func (e *Normalized) ScaleRewards(x []float32) {
	if !e.c.Reward {
		return
	}
	std := math.Sqrt(e.ret.Var[0] + e.c.Epsilon)
	for i, r := range x {
		x[i] = float32(min(max(float64(r)/std, -e.c.ClipReward), e.c.ClipReward))
	}
}

// Normalizers returns copies of the present statistics of observations, in the order of the fields;
// none where only rewards are normalised.
func (e *Normalized) Normalizers() []wrap.Normalizer {
	var list []wrap.Normalizer
	for i := range e.fields {
		n := e.fields[i].norm
		n.Mean, n.Var = slices.Clone(n.Mean), slices.Clone(n.Var)
		list = append(list, n)
	}
	return list
}

// Statistics is everything that a Normalized remembers beside the environments. Its JSON form is complete and
// exact.
type Statistics struct {
	// Fields are the names of the normalised fields, Obs their statistics.
	Fields []string       `json:"fields"`
	Obs    []wrap.Running `json:"obs"`
	// Return are the statistics of discounted returns, Returns those of the running episodes.
	Return  wrap.Running `json:"return"`
	Returns []float64    `json:"returns"`
}

// State returns a copy of what the vector remembers.
func (e *Normalized) State() Statistics {
	s := Statistics{Return: e.ret.Clone(), Returns: slices.Clone(e.returns), Fields: []string{}, Obs: []wrap.Running{}}
	for i := range e.fields {
		s.Fields, s.Obs = append(s.Fields, e.fields[i].norm.Field), append(s.Obs, e.fields[i].stats.Clone())
	}
	return s
}

// SetState goes on from a saved state, once the vector inside has gone back to where it was: its
// present observations are shown by the saved statistics and not taken into them again. After an
// error nothing has changed.
func (e *Normalized) SetState(s Statistics) error {
	names := []string{}
	for i := range e.fields {
		names = append(names, e.fields[i].norm.Field)
	}
	if !slices.Equal(names, s.Fields) || len(s.Obs) != len(names) {
		return fmt.Errorf("normalize: the saved statistics are of %q, expected %q", s.Fields, names)
	}
	if len(s.Returns) != len(e.returns) {
		return fmt.Errorf("normalize: the saved returns are of %d environments, expected %d", len(s.Returns), len(e.returns))
	}
	errs := []error{s.Return.Check("returns", 1)}
	for i := range e.fields {
		errs = append(errs, s.Obs[i].Check(names[i], len(e.fields[i].stats.Mean)))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("normalize: %w", err)
	}
	e.ret = s.Return.Clone()
	copy(e.returns, s.Returns)
	e.view.Follow(e.inner.Batch())
	for i := range e.fields {
		f := &e.fields[i]
		copy(f.stats.Mean, s.Obs[i].Mean)
		copy(f.stats.Var, s.Obs[i].Var)
		f.stats.Count = s.Obs[i].Count
		f.show(e.view.Batch().Present)
	}
	if e.c.Reward {
		clear(e.view.Batch().Reward)
	}
	return nil
}

// Abandon forgets the running returns, for when the vector inside has begun new episodes by itself.
func (e *Normalized) Abandon() { clear(e.returns) }

// Release ends the normalisation alone; the vector inside is the caller's again.
func (e *Normalized) Release() error { return e.view.Close() }

// Close implements Env.
func (e *Normalized) Close() error { return errors.Join(e.view.Close(), e.inner.Close()) }

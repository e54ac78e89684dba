package offline

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/models/decisionlog"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Join says which decisions of a server become a data set, and what they earned.
type Join struct {
	// Dir is the log's folder, Model the one whose decisions are meant.
	Dir, Model string
	// Rewards is a table of rewards by request, empty for none. What it says comes before what
	// clients said with the next request.
	Rewards string
	// Missing is what a decision earned that no reward is known of; NaN leaves it out.
	Missing float64
}

// JoinReport says what a join has left out. Numbers are of decisions where nothing else is said.
type JoinReport struct {
	// Unrewarded have no reward. Repeated are those whose row of a request comes more than once, so
	// that it is not known which one a reward belongs to. Unmatched are rewards without a decision.
	Unrewarded, Repeated, Unmatched int64
	// Cut are episodes whose end is not known: their last decision is left out, for lack of what
	// was seen after it.
	Cut int64
	// Orphans belong to sequences that had begun before the log did.
	Orphans int64
}

// Notes are what a person should be told.
func (r JoinReport) Notes() (notes []string) {
	for _, n := range []struct {
		n    int64
		text string
	}{
		{r.Unrewarded, "%d decisions without a reward are left out (--missing-reward gives them one)"},
		{r.Repeated, "%d decisions are left out because their request's id comes more than once"},
		{r.Unmatched, "%d rewards belong to no decision of the log"},
		{r.Cut, "%d episodes do not say how they ended: their last decision is left out"},
		{r.Orphans, "%d decisions of sequences that began before the log are left out"},
	} {
		if n.n > 0 {
			notes = append(notes, fmt.Sprintf(n.text, n.n))
		}
	}
	return notes
}

// ImportDecisions writes the decisions that a server has logged, with their rewards, as a data set
// in a folder that must not exist. m is that of the environments; each version that has answered is
// a behaviour. A decision on its own is an episode of one step, which terminates; those of a
// sequence are an episode, until its client says that it has ended. Episodes come in the order of
// their ends, version after version; those that have not ended, and the rewards, are in memory.
func ImportDecisions(ctx context.Context, j Join, m Manifest, to string, told func(episodes, of int64)) (*Manifest, JoinReport, error) {
	x := &joiner{Join: j, m: &m, ctx: ctx}
	x.obs, x.action = m.columns()
	for _, f := range m.Observation {
		if f.Window != nil {
			return nil, x.JoinReport, fmt.Errorf("observation %q is a window of a table, of which data sets have the row, and a server sees the values", f.Name)
		}
	}
	if len(m.Costs) > 0 {
		return nil, x.JoinReport, fmt.Errorf("the environment has the costs %q, which no decision tells", m.Costs)
	}
	var err error
	if j.Rewards != "" {
		if x.rewards, err = readRewards(j.Rewards); err != nil {
			return nil, x.JoinReport, err
		}
	}
	if err := x.survey(); err != nil {
		return nil, x.JoinReport, err
	}
	// Versions that draw have probabilities other than 1.
	m.Behaviours = nil
	for _, v := range x.versions {
		m.Behaviours = append(m.Behaviours, Behaviour{Algorithm: "served", Policy: j.Dir + "//" + j.Model + ":" + v.version, SHA256: strings.TrimPrefix(v.digest, "sha256:"), Stochastic: v.draws})
	}
	done, err := importing(to, m, func(w *Writer) error {
		for k := range x.versions {
			if err := w.fill(ctx, k, x.episodes(k), func(n int64) {
				if told != nil {
					told(n, 0)
				}
			}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil && x.Unrewarded > 0 {
		err = fmt.Errorf("%w; %s", err, strings.Join(x.Notes(), "; "))
	}
	return done, x.JoinReport, err
}

// servedVersion is a version that has answered.
type servedVersion struct {
	version, digest string
	draws           bool
}

// joiner reads a log and joins rewards.
type joiner struct {
	Join
	JoinReport
	ctx      context.Context
	m        *Manifest
	obs      []column
	action   column
	rewards  map[rewardKey]*earned
	versions []servedVersion
}

// survey finds the versions, and counts how often each reward is asked for.
func (x *joiner) survey() error {
	err := decisionlog.Read(x.ctx, x.Dir, x.Model, func(_ *decisionlog.Layout, r *decisionlog.Row) error {
		i := slices.IndexFunc(x.versions, func(v servedVersion) bool { return v.version == r.Version && v.digest == r.Digest })
		if i < 0 {
			i = len(x.versions)
			x.versions = append(x.versions, servedVersion{version: r.Version, digest: r.Digest})
		}
		x.versions[i].draws = x.versions[i].draws || r.LogProb != 0 && !math.IsNaN(r.LogProb)
		if e := x.rewards[rewardKey{r.Request, r.Row}]; e != nil {
			e.taken++
		}
		return nil
	})
	for _, e := range x.rewards {
		if e.taken == 0 {
			x.Unmatched++
		}
	}
	return err
}

// open is an episode that has not ended: what it has one observation, action and log-probability
// more of than rewards.
type open struct {
	*Episode
	// last is the decision whose reward is not known yet.
	last rewardKey
}

// episodes gives those of a version. What a file of the log ends is in memory.
func (x *joiner) episodes(k int) source {
	v, s := x.versions[k], &sequences{x: x, open: map[string]*open{}}
	files, err := decisionlog.Files(x.Dir, x.Model)
	return func() (*Episode, error) {
		for err == nil && len(s.whole) == 0 && len(files)+len(s.begun) > 0 {
			if len(files) == 0 {
				s.cut(s.begun[0])
				continue
			}
			s.check = map[*decisionlog.Layout][]int{}
			err = decisionlog.ReadFile(x.ctx, files[0], func(l *decisionlog.Layout, r *decisionlog.Row) error {
				if r.Version != v.version || r.Digest != v.digest {
					return nil
				}
				return s.take(l, r)
			})
			files = files[1:]
		}
		if err != nil || len(s.whole) == 0 {
			return nil, err
		}
		e := s.whole[0]
		s.whole = s.whole[1:]
		return e, nil
	}
}

// sequences puts decisions of a version together.
type sequences struct {
	x    *joiner
	open map[string]*open
	// begun are the sequences that are open, in the order of their begins.
	begun []string
	// whole are episodes that have ended and were not given yet.
	whole []*Episode
	// check has the offsets of the fields within the rows of layouts that fit the environment.
	check map[*decisionlog.Layout][]int
}

// reward is what a decision has earned, by the table, by what its client said, or for lack of both.
func (x *joiner) reward(k rewardKey, said float64) (float64, bool) {
	if e := x.rewards[k]; e != nil {
		if e.taken > 1 {
			x.Repeated++
			return 0, false
		}
		return e.reward, true
	}
	if math.IsNaN(said) {
		said = x.Missing
	}
	if math.IsNaN(said) {
		x.Unrewarded++
		return 0, false
	}
	return said, true
}

// take takes a row.
func (s *sequences) take(l *decisionlog.Layout, r *decisionlog.Row) error {
	at, err := s.fits(l)
	if err != nil {
		return err
	}
	k := rewardKey{r.Request, r.Row}
	if r.Sequence == "" {
		reward, ok := s.x.reward(k, math.NaN())
		if !ok {
			return nil
		}
		e := s.x.m.newEpisode()
		s.act(e, at, r)
		s.earn(e, reward)
		s.see(e, at, r) // Nothing is bootstrapped from what follows.
		e.Terminated, e.Discount[0] = true, 0
		s.whole = append(s.whole, e)
		return nil
	}
	o := s.open[r.Sequence]
	if r.Start {
		if o != nil {
			s.cut(r.Sequence)
		}
		o = &open{Episode: s.x.m.newEpisode()}
		s.open[r.Sequence], s.begun = o, append(s.begun, r.Sequence)
	} else {
		if o == nil {
			s.x.Orphans++
			return nil
		}
		reward, ok := s.x.reward(o.last, r.Reward)
		if !ok {
			s.cut(r.Sequence)
			return nil
		}
		s.earn(o.Episode, reward)
		if r.Terminated || r.Truncated {
			s.see(o.Episode, at, r)
			if r.Terminated {
				o.Discount[o.Len()-1] = 0
			}
			o.Terminated, o.Truncated = r.Terminated, !r.Terminated
			s.forget(r.Sequence)
			s.whole = append(s.whole, o.Episode)
			return nil
		}
	}
	s.act(o.Episode, at, r)
	o.last = k
	if r.End {
		s.cut(r.Sequence)
	}
	return nil
}

// see appends an observation, act what was done as well, and earn what came of it.
func (s *sequences) see(e *Episode, at []int, r *decisionlog.Row) {
	for f, c := range s.x.obs {
		from := len(e.Obs[f])
		e.Obs[f] = append(e.Obs[f], r.Data[at[f]:at[f]+c.size()]...)
		c.inside(e.Obs[f][from:])
	}
	if n := s.x.m.Mask; n > 0 {
		from := at[len(s.x.obs)]
		e.Mask = append(e.Mask, r.Data[from:from+n]...)
	}
}

func (s *sequences) act(e *Episode, at []int, r *decisionlog.Row) {
	s.see(e, at, r)
	from := len(e.Action)
	e.Action, e.LogProb = append(e.Action, r.Data[len(r.Data)-s.x.action.size():]...), append(e.LogProb, r.LogProb)
	s.x.action.inside(e.Action[from:])
}

func (s *sequences) earn(e *Episode, reward float64) {
	e.Reward, e.Discount = append(e.Reward, reward), append(e.Discount, 1)
}

// cut ends an episode of which nothing is known any more: what its last decision was taken on is
// its final observation.
func (s *sequences) cut(id string) {
	o := s.open[id]
	s.forget(id)
	s.x.Cut++
	if n := o.Len(); n > 0 {
		o.Action, o.LogProb, o.Truncated = o.Action[:n*s.x.action.size()], o.LogProb[:n], true
		s.whole = append(s.whole, o.Episode)
	}
}

func (s *sequences) forget(id string) {
	delete(s.open, id)
	i := slices.Index(s.begun, id)
	s.begun = slices.Delete(s.begun, i, i+1)
}

// fits finds the fields of the environment in a layout, and the mask behind them.
func (s *sequences) fits(l *decisionlog.Layout) ([]int, error) {
	if at, ok := s.check[l]; ok {
		return at, nil
	}
	want := make([]column, 0, len(s.x.obs)+1)
	for f, c := range s.x.obs {
		c.name = s.x.m.Observation[f].Name
		want = append(want, c)
	}
	if n := s.x.m.Mask; n > 0 {
		want = append(want, column{name: agents.MaskInput, dtype: tensor.Bool, n: n})
	}
	var at []int
	for _, c := range want {
		offset, found := 0, false
		for _, have := range l.Obs {
			if found = have.Name == c.name; found {
				if err := same(decisionlog.ObsPrefix+c.name, c, have); err != nil {
					return nil, err
				}
				break
			}
			offset += have.Size()
		}
		if !found {
			var names []string
			for _, have := range l.Obs {
				names = append(names, have.Name)
			}
			return nil, fmt.Errorf("column %s%s: it is missing: the policy was given %q", decisionlog.ObsPrefix, c.name, names)
		}
		at = append(at, offset)
	}
	if err := same(actionColumn, s.x.action, l.Action); err != nil {
		return nil, err
	}
	s.check[l] = at
	return at, nil
}

// same reports a column of a log that is not what the environment has.
func same(name string, want column, have decisionlog.Column) error {
	if arrowTypes[want.dtype] != arrowTypes[have.DType] || want.n != have.N {
		return fmt.Errorf("column %s: %d elements of %v, and the environment has %d of %v", name, have.N, have.DType, want.n, want.dtype)
	}
	return nil
}

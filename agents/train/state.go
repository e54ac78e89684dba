package train

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/onnxrl/onnxrl/agents/actors"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/envs/wrap"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/checkpoint"
)

var _ checkpoint.Stater = (*Trainer)(nil)

// state is what a run carries between learner steps, beside what the agent and the environments
// hold. Positions are counted in env steps.
type state struct {
	Envs         int   `json:"envs"`
	Rounds       int64 `json:"rounds"`
	LearnerSteps int64 `json:"learner_steps"`
	Episodes     int64 `json:"episodes"`
	// RewardSum and RewardSteps are of the env steps since Logged.
	RewardSum   float64 `json:"reward_sum"`
	RewardSteps int64   `json:"reward_steps"`
	// MaskedOut of Masked entries of masks were invalid actions, since Logged.
	MaskedOut int64 `json:"masked_out,omitempty"`
	Masked    int64 `json:"masked,omitempty"`
	// Logged and Evaluated are where metrics were last recorded and the policy last evaluated;
	// Evaluated is -1 before the first time.
	Logged    int64 `json:"logged"`
	Evaluated int64 `json:"evaluated"`
	// Reference is the score that the next one must exceed by MinDelta; Stale counts the
	// evaluations that did not.
	Reference *float64 `json:"reference"`
	Stale     int      `json:"stale"`
	// Evaluations counts those of a trained policy, and Trained says that the learner has computed
	// a loss: one that only fills its replay has not trained the policy.
	Evaluations int  `json:"evaluations"`
	Trained     bool `json:"trained"`
	// Done says that the run has stopped early, Stopped why.
	Done        bool   `json:"done"`
	Stopped     string `json:"stopped"`
	Published   string `json:"published"`
	PublishedAt int64  `json:"published_at"`
	// Begun says that the run is within a cycle of collecting and learning, which began after Since
	// env steps: it was stopped there.
	Begun bool  `json:"begun,omitempty"`
	Since int64 `json:"since,omitempty"`
	// Lag is how old the parameters were that acted, of a run with actors.
	Lag *lag `json:"lag,omitempty"`
}

// SaveState writes everything that the rest of the run depends on: agent, environments, counters,
// episode statistics and the best parameters. Environments that cannot be saved, or have failed,
// are left out, which the log says once.
func (t *Trainer) SaveState(w *checkpoint.Writer) error {
	env, err := t.saveEnvs(w.Scope("actors"))
	switch {
	case errors.Is(err, envs.ErrCannotSave):
		if !t.warned && !t.setup.Offline() {
			t.hooks.Log.Warn("a run resumed from a checkpoint begins new episodes, so it will differ from one that never stopped", "reason", err)
		}
		t.warned = true
	case err != nil:
		return err
	}
	s := t.s
	s.Envs = t.cfg.NumEnvs
	w.PutJSON("state", s)
	if env != nil {
		w.PutBytes("envs", env)
	}
	w.Scope("episodes").PutFloat64s("returns", t.episodes.returns)
	w.Scope("episodes").PutFloat64s("lengths", t.episodes.lengths)
	w.Scope("episodes").PutFloat64s("successes", t.episodes.successes)
	if len(t.episodes.costs) > 0 {
		if t.counter != nil {
			t.counter.Costs.Settle()
			w.Scope("episodes").PutFloat64s("cost_sums", t.counter.Costs.Values)
		}
		for k, list := range t.episodes.costs {
			w.Scope("episodes").Scope("costs").PutFloat64s(strconv.Itoa(k), list)
		}
	}
	if t.norm != nil {
		w.PutJSON("normalize", t.norm.State())
	}
	t.validation.save(w.Scope("validation"))
	if t.best != nil {
		t.best.save(w.Scope("best"))
		_, params := t.learner.Policy()
		t.kept.save(w.Scope("best").Scope("params"), params)
		if t.norm != nil {
			w.Scope("best").PutJSON("normalizers", t.keptNorm)
		}
	}
	return t.learner.SaveState(w.Scope("agent"))
}

// LoadState restores a saved run, whatever this one has done before: nothing of that remains.
// Environment, agent and configuration must be the ones it was saved with, but for what
// [Trainer.Edit] may change.
func (t *Trainer) LoadState(r *checkpoint.Reader) error {
	var s state
	if err := r.JSON("state", &s); err != nil {
		return err
	}
	if s.Envs != t.cfg.NumEnvs {
		return fmt.Errorf("the run has %d environments, expected %d", s.Envs, t.cfg.NumEnvs)
	}
	if err := t.loadEnvs(r, s.Rounds); err != nil {
		return err
	}
	w, err := loadWindow(r.Scope("episodes"), len(t.episodes.costs))
	if err != nil {
		return err
	}
	if t.counter != nil {
		sums := t.counter.Costs
		sums.Restart()
		if len(w.costs) > 0 && r.Has("envs") {
			if err := r.Scope("episodes").Float64sInto("cost_sums", sums.Values, len(sums.Values)); err != nil {
				return err
			}
		}
	}
	validation, err := loadEvaluation(r.Scope("validation"))
	if err != nil {
		return err
	}
	if err := t.learner.LoadState(r.Scope("agent")); err != nil {
		return err
	}
	best, err := loadEvaluation(r.Scope("best"))
	if err != nil {
		return err
	}
	kept, keptNorm := snapshot{}, []wrap.Normalizer(nil)
	if best != nil {
		_, params := t.learner.Policy()
		if err := kept.load(r.Scope("best").Scope("params"), params); err != nil {
			return err
		}
		if t.norm != nil {
			if err := r.Scope("best").JSON("normalizers", &keptNorm); err != nil {
				return err
			}
		}
	}
	t.s, t.episodes, t.validation, t.best, t.kept, t.keptNorm = s, w, validation, best, kept, keptNorm
	t.saved, t.behind = t.Settled(), false
	for i := range t.called {
		t.called[i] = t.saved
	}
	t.last, t.usesBest, t.whole, t.envsLost = nil, false, false, false
	return t.newActor()
}

// errEnvsLost says why environments are not saved that have failed.
var errEnvsLost = fmt.Errorf("they have failed: %w", envs.ErrCannotSave)

// loadWindow reads the last episodes. Runs that were saved before successes were counted have none.
func loadWindow(r *checkpoint.Reader, costs int) (window, error) {
	w := newWindow(costs)
	for _, a := range []struct {
		name string
		to   *[]float64
	}{{"returns", &w.returns}, {"lengths", &w.lengths}, {"successes", &w.successes}} {
		if a.name == "successes" && !r.Has(a.name) {
			continue
		}
		v, _, err := r.Float64s(a.name)
		if err != nil {
			return w, err
		}
		*a.to = append(*a.to, v...)
	}
	for k := range w.costs {
		v, _, err := r.Scope("costs").Float64s(strconv.Itoa(k))
		if err != nil {
			return w, err
		}
		if len(v) != len(w.returns) {
			return w, fmt.Errorf("%d returns and %d costs of episodes", len(w.returns), len(v))
		}
		w.costs[k] = append(w.costs[k], v...)
	}
	if len(w.returns) != len(w.lengths) || max(len(w.returns), len(w.successes)) > episodeWindow {
		return w, fmt.Errorf("%d returns, %d lengths and %d successes of episodes", len(w.returns), len(w.lengths), len(w.successes))
	}
	return w, nil
}

// saveEnvs returns the state of the environments, or saves that of each actor's. An error that
// wraps envs.ErrCannotSave says that there is none, or not of all.
func (t *Trainer) saveEnvs(w *checkpoint.Writer) (env []byte, err error) {
	switch {
	case t.group != nil:
		return nil, t.saveActors(w)
	case t.envsLost:
		return nil, errEnvsLost
	}
	return vector.SaveState(t.base)
}

// place is the JSON part of where an actor's environments are.
type place struct {
	Begun   bool   `json:"begun"`
	Rounds  int64  `json:"rounds"`
	Unsaved string `json:"unsaved,omitempty"`
}

func (t *Trainer) saveActors(w *checkpoint.Writer) (err error) {
	for i, p := range t.group.Positions() {
		w := w.Scope(strconv.Itoa(i))
		if p == nil {
			w.PutJSON("position", place{})
			continue
		}
		w.PutJSON("position", place{true, p.Rounds, p.Unsaved})
		if p.Unsaved != "" {
			err = fmt.Errorf("%s: %w", strings.TrimSuffix(p.Unsaved, ": "+envs.ErrCannotSave.Error()), envs.ErrCannotSave)
			continue
		}
		w.PutBytes("envs", p.Envs)
		w.PutFloat64s("costs", p.Costs)
	}
	return err
}

// loadActors reads where the environments of each actor go on.
func (t *Trainer) loadActors(r *checkpoint.Reader) error {
	list := make([]*actors.Position, t.cfg.Actors.Count)
	for i := range list {
		r := r.Scope(strconv.Itoa(i))
		if !r.Has("position") {
			return fmt.Errorf("the run is not one of %d actors", len(list))
		}
		var p place
		if err := r.JSON("position", &p); err != nil {
			return err
		}
		if !p.Begun {
			continue
		}
		list[i] = &actors.Position{Rounds: p.Rounds, Unsaved: p.Unsaved}
		if p.Unsaved != "" {
			t.hooks.Log.Warn("the checkpoint is of environments that could not be saved: new episodes begin", "actor", i)
			continue
		}
		var err error
		if list[i].Envs, _, err = r.Bytes("envs"); err != nil {
			return err
		}
		if list[i].Costs, _, err = r.Float64s("costs"); err != nil {
			return err
		}
	}
	if r.Scope(strconv.Itoa(len(list))).Has("position") {
		return fmt.Errorf("the run has more than %d actors", len(list))
	}
	return t.group.SetPositions(list)
}

// loadEnvs continues the saved episodes. Where they could not be saved, it begins others than those
// that the run began with.
func (t *Trainer) loadEnvs(r *checkpoint.Reader, rounds int64) error {
	if t.group != nil {
		return t.loadActors(r.Scope("actors"))
	}
	restarted := !r.Has("envs")
	if restarted {
		t.hooks.Log.Warn("the checkpoint is of environments that could not be saved: new episodes begin")
		if err := t.base.Reset(t.worlds.Split("resumed", int(rounds))); err != nil {
			return err
		}
	} else {
		env, _, err := r.Bytes("envs")
		if err != nil {
			return err
		}
		if err := vector.LoadState(t.base, env); err != nil {
			return err
		}
	}
	if t.norm == nil {
		return nil
	}
	var s vector.Statistics
	if err := r.JSON("normalize", &s); err != nil {
		return err
	}
	if err := t.norm.SetState(s); err != nil {
		return err
	}
	if restarted {
		t.norm.Abandon()
	}
	return nil
}

// scored is the JSON part of a saved evaluation. Values are arrays, because they need not be
// finite.
type scored struct {
	EnvSteps     int64    `json:"env_steps"`
	LearnerSteps int64    `json:"learner_steps"`
	Metrics      []string `json:"metrics"`
	Excess       float64  `json:"excess,omitzero"`
}

func (e *Evaluation) save(w *checkpoint.Writer) {
	if e == nil {
		return
	}
	names := slices.Sorted(maps.Keys(e.Metrics))
	values := make([]float64, 0, len(names)+1)
	for _, n := range names {
		values = append(values, e.Metrics[n])
	}
	w.PutJSON("evaluation", scored{e.EnvSteps, e.LearnerSteps, names, e.Excess})
	w.PutFloat64s("values", append(values, e.Score))
}

// loadEvaluation returns nil where none was saved.
func loadEvaluation(r *checkpoint.Reader) (*Evaluation, error) {
	if !r.Has("evaluation") {
		return nil, nil
	}
	var s scored
	if err := r.JSON("evaluation", &s); err != nil {
		return nil, err
	}
	values := make([]float64, len(s.Metrics)+1)
	if err := r.Float64sInto("values", values); err != nil {
		return nil, err
	}
	e := &Evaluation{EnvSteps: s.EnvSteps, LearnerSteps: s.LearnerSteps, Score: values[len(s.Metrics)], Metrics: map[string]float64{}, Excess: s.Excess}
	for i, n := range s.Metrics {
		e.Metrics[n] = values[i]
	}
	return e, nil
}

// snapshot is a copy of the parameters that training changes, by role, in the layout of their
// segments.
type snapshot map[models.Role][]float32

// changes reports whether training changes the parameters of a segment that a policy may have.
func changes(s *models.Segment) bool { return s.Role == models.Trainable || s.Role == models.Buffer }

func (k snapshot) take(p *models.Params) {
	for _, s := range p.Segments() {
		if changes(s) {
			k[s.Role] = append(k[s.Role][:0], s.Floats()...)
		}
	}
}

func (k snapshot) restore(p *models.Params) {
	for _, s := range p.Segments() {
		copy(s.Floats(), k[s.Role])
	}
}

func (k snapshot) save(w *checkpoint.Writer, p *models.Params) {
	for _, s := range p.Segments() {
		if !changes(s) {
			continue
		}
		for i, spec := range s.Specs() {
			off, n := s.Range(i)
			w.PutFloat32s(spec.Name, k[s.Role][off:off+n], spec.Shape...)
		}
	}
}

func (k snapshot) load(r *checkpoint.Reader, p *models.Params) error {
	for _, s := range p.Segments() {
		if !changes(s) {
			continue
		}
		k[s.Role] = make([]float32, len(s.Floats()))
		for i, spec := range s.Specs() {
			off, n := s.Range(i)
			if err := r.Float32sInto(spec.Name, k[s.Role][off:off+n], spec.Shape...); err != nil {
				return err
			}
		}
	}
	return nil
}

package population

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"gonum.org/v1/gonum/stat"

	"github.com/onnxrl/onnxrl/agents/evolve"
	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/configs"
)

// openRouters opens the search whose members are routers and whose generations are their turns, or
// the one that a population goes on with. What does not fit is found out here, before there are
// experts to choose between: their files are not opened.
func (p *Population) openRouters(ctx context.Context) (err error) {
	o := p.searching()
	o.Edit = p.over
	if note := p.o.Note; note != nil {
		o.Note = func(text string) { note("router: " + text) }
	}
	if p.o.Resume != "" {
		if o.Resume = filepath.Join(p.ledger.Dir, RouterDir); evolve.Holds(o.Resume) {
			p.routers, err = evolve.Open(ctx, "", o)
			return err
		}
		o.Resume = ""
	}
	if o.Base, err = p.c.overExperts(p.search.Experiment().Env); err != nil {
		return err
	}
	c, err := p.c.Router.search(p.c.turns())
	if err == nil {
		p.routers, err = evolve.New(ctx, p.ledger.Name, c, o)
	}
	return err
}

// overExperts is the experiment of the routers, whose experts act in env; their files are not there
// yet.
func (c *Config) overExperts(env configs.Kinded) (*configs.Document, error) {
	text, err := configs.Marshal(c.Router.Experiment)
	if err != nil {
		return nil, err
	}
	doc, err := configs.Parse("router.experiment", text)
	if err != nil {
		return nil, err
	}
	if s, ok := doc.Lookup("env.kind"); ok {
		var kind string
		if err := s.Decode(&kind); err == nil && kind != "meta" {
			return nil, fmt.Errorf("env.kind: %q, expected meta, whose steps are choices between experts", kind)
		}
	}
	var files []string
	for i := range c.Experts.Population {
		files = append(files, fmt.Sprintf("expert-%d.onnx", i))
	}
	return doc, errors.Join(experiment.Absolute(doc), doc.SetValue("env.env", env), setExperts(doc, files))
}

// Check decodes the experiments of experts and routers and the searches that they are members of,
// without opening anything.
func (c Config) Check(kinds experiment.Kinds) error {
	e, err := evolve.Experiment(kinds, c.Experts, c.Experts.Base, nil)
	if err == nil {
		_, err = c.Experts.Strategist()
	}
	if err != nil {
		return fmt.Errorf("experts: %w", err)
	}
	if !c.Router.On() {
		return nil
	}
	doc, err := c.overExperts(e.Env)
	if err == nil {
		_, err = kinds.Decode(doc)
	}
	var s evolve.Config
	if err == nil {
		s, err = c.Router.search(c.turns())
	}
	if err == nil {
		_, err = s.Strategist()
	}
	if err != nil {
		return fmt.Errorf("router.experiment: %w", err)
	}
	return nil
}

// setExperts names the models that a router chooses between.
func setExperts(doc *configs.Document, files []string) error {
	var list []map[string]string
	for _, path := range files {
		list = append(list, map[string]string{"path": path})
	}
	return doc.SetValue("env.experts", list)
}

// over edits the experiment of a turn, which is the last of history: its experts are those of the
// generation before it, as they were then.
func (p *Population) over(ctx context.Context, history [][]evolve.Record, doc *configs.Document) error {
	turn := len(history) - 1
	seats, err := p.seats(turn)
	if err != nil {
		return err
	}
	files := make([]string, len(seats))
	for i, r := range seats {
		if r.Member != i {
			p.note("turn %d of the router: expert %d has diverged from the beginning and has no model; in its seat is that of expert %d", turn, i, r.Member)
		}
	}
	err = run.Each(ctx, p.search.Parallel(), len(seats), func(ctx context.Context, i int) (err error) {
		if r := seats[i]; r.Member == i {
			files[i], err = p.search.Policy(ctx, r)
		}
		return err
	})
	if err != nil {
		return err
	}
	if p.c.Router.after(turn) == p.c.Experts.Generations && p.early == nil {
		p.publishEarly(ctx)
	}
	for i, r := range seats {
		files[i] = files[r.Member]
	}
	if err := setExperts(doc, files); err != nil {
		return err
	}
	return doc.SetValue("chosen_from", p.chosenFrom(p.search.Records()[:p.c.Router.after(turn)], history))
}

func (p *Population) note(format string, args ...any) {
	if p.o.Note != nil {
		p.o.Note(fmt.Sprintf(format, args...))
	}
}

// seats are the experts of a turn of the router, in the order of the members. In the seat of one
// that has diverged before it ever had a policy is the best of the others, so that a router has as
// many experts in all of its turns.
func (p *Population) seats(turn int) ([]evolve.Record, error) {
	list := p.search.Records()[p.c.Router.after(turn)-1]
	best := p.search.Best(list)
	if best.Dir == "" {
		return nil, fmt.Errorf("there is nobody to choose: all %d experts have diverged from the beginning; the first: %s", len(list), list[0].RolledBack)
	}
	seats := make([]evolve.Record, len(list))
	for i, r := range list {
		if seats[i] = r; r.Dir == "" {
			seats[i] = best
		}
	}
	return seats, nil
}

// chosenFrom counts the configurations that validation has chosen among: every expert and router
// that began, or took over from another with hyper-parameters of its own; a router alone was not
// chosen.
func (p *Population) chosenFrom(experts, routers [][]evolve.Record) *experiment.ChosenFrom {
	f := experiment.ChosenFrom{}
	var ratios []float64
	for _, list := range experts {
		for _, r := range list {
			if r.Action != evolve.Keep {
				f.Trials++
			}
			if p.search.Config().Metric == "sharpe" && r.Score.Defined() {
				ratios = append(ratios, float64(r.Score))
			}
		}
	}
	for _, list := range routers {
		for _, r := range list {
			if r.Action != evolve.Keep && len(list) > 1 {
				f.Trials++
			}
		}
	}
	if len(ratios) > 1 {
		f.SharpeVariance = stat.Variance(ratios, nil)
	}
	return &f
}

// turn trains the routers on top of the experts as they are.
func (p *Population) turn(ctx context.Context) error {
	if err := p.routers.Generation(ctx); err != nil {
		return fmt.Errorf("turn %d of the router: %w", len(p.routers.Records()), err)
	}
	return nil
}

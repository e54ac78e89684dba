package ablate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/study"
	"github.com/onnxrl/onnxrl/configs"
)

// Base is the name of the base's cell.
const Base = "base"

// Plan is what a study trains.
type Plan struct {
	Study   Config
	Factors []PlanFactor
	Seeds   []uint64
	// Cells begin with the base.
	Cells []Cell
	Full  bool
}

// PlanFactor is a factor with the level that the base has.
type PlanFactor struct {
	Name string
	// Levels are in the study's order. When none of them is the base's, the first one is called
	// base.
	Levels []string
	// Base is the base's level.
	Base int
}

// Cell is one combination of levels.
type Cell struct {
	// Name is base, or the levels that differ from the base's: window=30,encoder=transformer.
	Name string
	// Dir is the name as that of a folder.
	Dir string
	// Levels has one index for each factor.
	Levels []int
	// Config is the effective experiment; its Seed is the runs', its Seeds are empty.
	Config experiment.Config
	// Shape is equal for cells whose runs cost the same.
	Shape string
}

// Differs lists the factors in which a cell is not the base.
func (p *Plan) Differs(c *Cell) []int {
	var list []int
	for f, l := range c.Levels {
		if l != p.Factors[f].Base {
			list = append(list, f)
		}
	}
	return list
}

// Assigns lists what a cell's levels assign to the base.
func (p *Plan) Assigns(c *Cell) study.Assignments {
	var list study.Assignments
	for _, f := range p.Differs(c) {
		list = append(list, p.level(f, c.Levels[f]).Set...)
	}
	return list
}

// level returns the study's level of an index. A factor whose base level the study does not list
// counts that one first.
func (p *Plan) level(f, i int) *Level {
	implied := len(p.Factors[f].Levels) - len(p.Study.Factors[f].Levels)
	return &p.Study.Factors[f].Levels[i-implied]
}

// Effective decodes an experiment's parts and returns it with its defaults filled in, and what its
// cost depends on.
type Effective func(ctx context.Context, c experiment.Config) (effective experiment.Config, shape string, err error)

// Options of a plan.
type Options struct {
	// Sets are assignments to all cells, as --set takes them. They count more than the study's own.
	Sets []string
	// Full plans all combinations.
	Full bool
	// Edit, unless nil, changes every document before it is decoded.
	Edit func(doc *configs.Document) error
	// Read, unless nil, reads the base in place of [experiment.Document], such as
	// [experiment.Kinds.Read], which translates documents of other programs.
	Read func(path string) (*configs.Document, error)
	// Decode, unless nil, decodes documents, such as [experiment.Kinds.Decode], which reports the
	// problems of all their kinds.
	Decode    func(doc *configs.Document) (experiment.Config, error)
	Effective Effective
}

// NewPlan decodes every cell's document, which is that of the file base, edited by the study's own
// assignments, by the options and by levels, and returns what there is to train. All problems of
// all levels are reported at once.
func NewPlan(ctx context.Context, c Config, base string, o Options) (*Plan, error) {
	if o.Read == nil {
		o.Read = experiment.Document
	}
	doc, err := o.Read(base)
	if err == nil {
		err = experiment.Absolute(doc)
	}
	if err != nil {
		return nil, fmt.Errorf("base: %w", err)
	}
	if err := errors.Join(c.Set.Apply(doc), doc.Set(o.Sets...)); err != nil {
		return nil, err
	}
	if o.Decode == nil {
		o.Decode = func(doc *configs.Document) (experiment.Config, error) {
			c := experiment.Defaults()
			return c, doc.Decode(&c)
		}
	}
	b := &planner{ctx: ctx, config: c, doc: doc, o: o}
	return b.plan(o.Full)
}

type planner struct {
	ctx    context.Context
	config Config
	doc    *configs.Document
	o      Options
	seeds  []uint64
}

// meaning is an effective experiment and its digest.
type meaning struct {
	config experiment.Config
	shape  string
	digest string
}

func (b *planner) plan(full bool) (*Plan, error) {
	base, err := b.decode(nil)
	if err != nil {
		return nil, fmt.Errorf("base: %w", err)
	}
	p := &Plan{Study: b.config, Full: full, Seeds: b.config.Seeds}
	if len(p.Seeds) == 0 {
		p.Seeds = b.seeds
	}
	single, err := b.levels(p, base)
	if err != nil {
		return nil, err
	}
	combinations := oneFactor(p.Factors)
	if full {
		combinations = grid(p.Factors)
	}
	var problems configs.Errors
	known := map[string]string{}
	for _, levels := range combinations {
		cell, digest, err := b.cell(p, levels, base, single)
		if b.ctx.Err() != nil {
			return nil, b.ctx.Err()
		}
		if err != nil {
			for _, e := range study.Problems(err) {
				e.Message = cell.Name + ": " + e.Message
				problems = append(problems, e)
			}
			continue
		}
		if other, taken := known[digest]; taken {
			differs := p.Differs(&cell)
			last := differs[len(differs)-1]
			problems = append(problems, study.Problems(p.level(last, levels[last]).at.Errorf("", "the cell %s is the same experiment as %s", cell.Name, other))...)
		}
		known[digest] = cell.Name
		p.Cells = append(p.Cells, cell)
	}
	if len(problems) > 0 {
		return nil, problems
	}
	return p, nil
}

// cell names a combination of levels and says what it means. Those of the base and of single levels
// are known already.
func (b *planner) cell(p *Plan, levels []int, base meaning, single map[*Level]meaning) (c Cell, digest string, err error) {
	c = Cell{Name: Base, Dir: Base, Levels: levels}
	m := base
	var sets study.Assignments
	var names, dirs []string
	for _, f := range p.Differs(&c) {
		level := p.level(f, levels[f])
		m = single[level]
		sets = append(sets, level.Set...)
		names = append(names, p.Factors[f].Name+"="+level.Name)
		dirs = append(dirs, study.Slug(p.Factors[f].Name)+"="+study.Slug(level.Name))
	}
	if len(names) > 0 {
		c.Name, c.Dir = strings.Join(names, ","), strings.Join(dirs, ",")
	}
	if len(names) > 1 {
		m, err = b.decode(sets)
	}
	c.Config, c.Shape = m.config, m.shape
	return c, m.digest, err
}

// levels decodes every level by itself and finds the base's.
func (b *planner) levels(p *Plan, base meaning) (map[*Level]meaning, error) {
	var problems configs.Errors
	single := map[*Level]meaning{}
	for _, f := range b.config.Factors {
		pf := PlanFactor{Name: f.Name, Base: -1}
		for j := range f.Levels {
			l := &f.Levels[j]
			pf.Levels = append(pf.Levels, l.Name)
			m, err := b.decode(l.Set)
			switch {
			case b.ctx.Err() != nil:
				return nil, b.ctx.Err()
			case err != nil:
				for _, e := range study.Problems(err) {
					// A problem without a place of its own, such as data that do not suffice, is
					// reported at the level.
					if e.File == "" {
						e = study.Problems(l.at.Errorf("", "%s", e.Error()))[0]
					}
					problems = append(problems, e)
				}
				continue
			case m.digest == base.digest && pf.Base >= 0:
				problems = append(problems, study.Problems(l.at.Errorf("", "means the same as the base, and so does %q", f.Levels[pf.Base].Name))...)
			case m.digest == base.digest:
				pf.Base = j
			}
			for k := range j {
				if d := single[&f.Levels[k]].digest; d == m.digest && d != base.digest {
					problems = append(problems, study.Problems(l.at.Errorf("", "means the same as the level %q", f.Levels[k].Name))...)
				}
			}
			single[l] = m
		}
		if pf.Base >= 0 && len(pf.Levels) == 1 {
			problems = append(problems, study.Problems(f.at.Errorf("", "its only level, %q, means the same as the base: nothing is varied", pf.Levels[0]))...)
		}
		if pf.Base < 0 {
			if slices.Contains(pf.Levels, Base) {
				problems = append(problems, study.Problems(f.at.Errorf("", "its level %q does not mean the same as the base: choose another name", Base))...)
			}
			pf.Base, pf.Levels = 0, append([]string{Base}, pf.Levels...)
		}
		p.Factors = append(p.Factors, pf)
	}
	if len(problems) > 0 {
		return nil, problems
	}
	return single, nil
}

// decode returns what the base with assignments means. Problems are placed at the assignments.
func (b *planner) decode(sets study.Assignments) (meaning, error) {
	if err := b.ctx.Err(); err != nil {
		return meaning{}, err
	}
	doc := b.doc.Clone()
	if err := sets.Apply(doc); err != nil {
		return meaning{}, err
	}
	sets = append(slices.Clip(sets), b.config.Set...)
	if b.o.Edit != nil {
		if err := b.o.Edit(doc); err != nil {
			return meaning{}, sets.Place(err)
		}
	}
	c, err := b.o.Decode(doc)
	if err != nil {
		return meaning{}, sets.Place(err)
	}
	if b.seeds == nil {
		b.seeds = c.Seeds
		if len(b.seeds) == 0 {
			b.seeds = []uint64{c.Seed}
		}
	}
	c.Seed, c.Seeds = 0, nil
	if c.Train.Threads == 0 {
		c.Train.Threads = 1
	}
	c, shape, err := b.o.Effective(b.ctx, c)
	if err != nil {
		return meaning{}, sets.Place(err)
	}
	digest, err := configs.Digest(c)
	return meaning{c, shape, digest}, err
}

// oneFactor lists the base and what differs from it in one factor.
func oneFactor(factors []PlanFactor) [][]int {
	base := make([]int, len(factors))
	for i, f := range factors {
		base[i] = f.Base
	}
	list := [][]int{base}
	for i, f := range factors {
		for l := range f.Levels {
			if l != f.Base {
				c := slices.Clone(base)
				c[i] = l
				list = append(list, c)
			}
		}
	}
	return list
}

// grid lists all combinations, the base first and the others with the last factor changing fastest.
func grid(factors []PlanFactor) [][]int {
	list := [][]int{nil}
	for _, f := range factors {
		var next [][]int
		for _, c := range list {
			for l := range f.Levels {
				next = append(next, append(slices.Clone(c), l))
			}
		}
		list = next
	}
	i := slices.IndexFunc(list, func(c []int) bool {
		for f, l := range c {
			if l != factors[f].Base {
				return false
			}
		}
		return true
	})
	return append([][]int{list[i]}, slices.Delete(slices.Clone(list), i, i+1)...)
}

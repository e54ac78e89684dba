package walkforward

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"gonum.org/v1/gonum/stat"

	"github.com/onnxrl/onnxrl/envs/market/split"
	"github.com/onnxrl/onnxrl/export/report/performance"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// Summary is what a study found. The JSON keys are stable.
type Summary struct {
	Complete bool `json:"complete"`
	// Judged counts the cells that are, out of Cells.
	Judged int `json:"judged"`
	Cells  int `json:"cells"`
	// Folds are the figures of every judged cell, fold by fold.
	Folds []CellSummary `json:"folds"`
	// Pooled are those of all test ranges of a variant in a row, for the variants that have one.
	Pooled []PooledRow `json:"pooled"`
	// Deflated is the deflated Sharpe ratio of the agent of each variant, by its name.
	Deflated map[string]performance.Deflated `json:"deflated_sharpe"`
	// Before are the differences of each variant to the one before it, where some are populations,
	// and Targets what the owner of the population system wanted, met or not.
	Before  []Difference `json:"differences_to_the_one_before,omitempty"`
	Targets []Target     `json:"targets,omitempty"`
	// Seeds is the Sharpe ratio of the pooled records of seeds, by variant.
	Seeds map[string]Spread `json:"seeds"`
	// Trials says how many trials were counted, and which.
	Trials  int    `json:"trials"`
	Counted string `json:"trials_counted"`
	// Block is the mean length of the bootstrap's blocks in bars, Resamples their number and Level
	// the probability that an interval covers.
	Block     performance.Number `json:"bootstrap_block"`
	Resamples int                `json:"bootstrap_resamples"`
	Level     performance.Number `json:"bootstrap_level"`
	// Market is the series by which months are up, sideways or down.
	Market  string   `json:"market"`
	Verdict string   `json:"verdict,omitempty"`
	Notes   []string `json:"notes"`

	pools []*pool // by variant, nil without a judged fold
}

// CellSummary is one fold of one variant.
type CellSummary struct {
	Fold    string        `json:"fold"`
	Variant string        `json:"variant"`
	From    string        `json:"from"`
	To      string        `json:"to"`
	Seeds   []SeedOutcome `json:"seeds"`
	Rows    []Row         `json:"rows"`
}

// Row is a record in numbers.
type Row struct {
	Name    string  `json:"name"`
	Role    string  `json:"role"`
	Figures Figures `json:"figures"`
}

// PooledRow is a record of all test ranges of a variant, with intervals over time. Difference is
// that of Sharpe ratios to equal-weight buy-and-hold, and ToBase that of the agent of a variant to
// the base's.
type PooledRow struct {
	Variant string `json:"variant"`
	Row
	AnnualReturn performance.Interval  `json:"annual_return_interval"`
	Sharpe       performance.Interval  `json:"sharpe_interval"`
	Difference   *performance.Interval `json:"sharpe_difference,omitempty"`
	ToBase       *performance.Interval `json:"sharpe_difference_to_base,omitempty"`
}

// Spread is a number over seeds.
type Spread struct {
	Mean performance.Number `json:"mean"`
	Std  performance.Number `json:"std"`
	N    int                `json:"n"`
}

// The bootstrap's settings; blocks are as long as the records ask for.
const (
	resamples = 2000
	level     = 0.95
)

// pool is all judged test ranges of a variant in a row.
type pool struct {
	names, roles []string
	samples      []*sample // by record
	ranges       []joined
	lookAhead    []string
}

// joined is one test range of a pool: the fold, its dates and records.
type joined struct {
	fold    string
	dates   []time.Time
	records []Record
}

func (p *pool) find(role string) int { return slices.Index(p.roles, role) }

// Summarize compares what is judged.
func (s *Study) Summarize() (*Summary, error) {
	sum := &Summary{Judged: s.Judged(), Cells: len(s.Plan.Cells), Folds: []CellSummary{}, Pooled: []PooledRow{}, Deflated: map[string]performance.Deflated{}, Seeds: map[string]Spread{}, Resamples: resamples, Level: level}
	sum.Complete = sum.Judged == sum.Cells
	sum.pools = make([]*pool, len(s.Plan.Variants))
	for v := range s.Plan.Variants {
		p, err := s.pool(v)
		if err != nil {
			return nil, err
		}
		sum.pools[v] = p
	}
	outcomes := s.outcomes()
	for i := range s.Plan.Cells {
		c, o := &s.Plan.Cells[i], outcomes[i]
		if o == nil {
			continue
		}
		one, err := s.cellSummary(c, o)
		if err != nil {
			return nil, err
		}
		sum.Folds = append(sum.Folds, one)
	}
	if sum.Judged == 0 {
		return sum, nil
	}
	if err := sum.pooled(s); err != nil {
		return nil, err
	}
	if s.populations() {
		if err := sum.before(s); err != nil {
			return nil, err
		}
		sum.targets(s)
	}
	sum.notes(s)
	return sum, nil
}

// parse reads the dates of a test range.
func (t *Test) parse() ([]time.Time, error) {
	out := make([]time.Time, len(t.Dates))
	for i, d := range t.Dates {
		var err error
		if out[i], err = time.Parse(time.DateOnly, d); err != nil {
			if out[i], err = time.Parse(time.RFC3339, d); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// marketOf is the record that tells what the market did.
func marketOf(list []Record) int {
	if i := slices.IndexFunc(list, func(r Record) bool { return r.Role == RoleIndex }); i >= 0 {
		return i
	}
	return slices.IndexFunc(list, func(r Record) bool { return r.Role == RoleBenchmark })
}

// samples are those of a list of records of one range.
func samplesOf(list []Record, dates []time.Time, o *Outcome) []*sample {
	market := performance.Returns(list[marketOf(list)].Value)
	out := make([]*sample, len(list))
	for i := range list {
		out[i] = list[i].sample(dates, o)
		out[i].bench = market
	}
	return out
}

func (s *Study) cellSummary(c *Cell, o *Outcome) (out CellSummary, err error) {
	f := s.Plan.Folds[c.Fold]
	out = CellSummary{Fold: f.Name, Variant: s.Plan.Variants[c.Variant], From: f.Test[0].From, To: f.Test[len(f.Test)-1].To, Seeds: o.Seeds}
	parts := make([][]*sample, len(o.Tests[0].Records))
	for i := range o.Tests {
		dates, err := o.Tests[i].parse()
		if err != nil {
			return out, fmt.Errorf("%s: %w", c.Name, err)
		}
		list := matched(o.Tests[0].Records, o.Tests[i].Records)
		for k, one := range samplesOf(list, dates, o) {
			parts[k] = append(parts[k], one)
		}
	}
	for k, r := range o.Tests[0].Records {
		out.Rows = append(out.Rows, Row{r.Name, r.Role, join(parts[k]).figures()})
	}
	return out, nil
}

// matched returns the records of a range by the names of another's. One that is missing, as
// buy-and-hold of the listed is where all are listed, is equal-weight buy-and-hold.
func matched(want, have []Record) []Record {
	out := make([]Record, len(want))
	for i, w := range want {
		k := slices.IndexFunc(have, func(r Record) bool { return r.Name == w.Name })
		if k < 0 {
			k = slices.IndexFunc(have, func(r Record) bool { return r.Role == RoleBenchmark })
		}
		out[i] = have[k]
		out[i].Name, out[i].Role = w.Name, w.Role
	}
	return out
}

// pool joins the judged test ranges of a variant, in order of time. One that several folds have
// tested, as combinatorial ones do, is the portfolio with an equal part in each.
func (s *Study) pool(v int) (*pool, error) {
	type tested struct {
		fold string
		*Outcome
		*Test
	}
	var all []tested
	for i, o := range s.outcomes() {
		if c := &s.Plan.Cells[i]; o != nil && c.Variant == v {
			for k := range o.Tests {
				all = append(all, tested{s.Plan.Folds[c.Fold].Name, o, &o.Tests[k]})
			}
		}
	}
	if len(all) == 0 {
		return nil, nil
	}
	slices.SortStableFunc(all, func(a, b tested) int { return strings.Compare(a.Dates[0], b.Dates[0]) })
	// The range with most records names them.
	longest := slices.MaxFunc(all, func(a, b tested) int { return len(a.Records) - len(b.Records) }).Records
	p := &pool{}
	parts := make([][]*sample, len(longest))
	for lo := 0; lo < len(all); {
		hi := lo + 1
		for hi < len(all) && all[hi].Dates[0] == all[lo].Dates[0] {
			hi++
		}
		dates, err := all[lo].parse()
		if err != nil {
			return nil, err
		}
		list := matched(longest, all[lo].Records)
		for k := range list {
			same := []Record{list[k]}
			for _, other := range all[lo+1 : hi] {
				same = append(same, matched(longest, other.Records)[k])
			}
			if len(same) > 1 {
				name := list[k].Name
				list[k] = average(same)
				list[k].Name = name
			}
		}
		for k, one := range samplesOf(list, dates, all[lo].Outcome) {
			parts[k] = append(parts[k], one)
		}
		p.ranges = append(p.ranges, joined{all[lo].fold, dates, list})
		for _, sentence := range all[lo].LookAhead {
			if !slices.Contains(p.lookAhead, sentence) {
				p.lookAhead = append(p.lookAhead, sentence)
			}
		}
		lo = hi
	}
	for k, r := range longest {
		p.names, p.roles, p.samples = append(p.names, r.Name), append(p.roles, r.Role), append(p.samples, join(parts[k]))
	}
	p.choose()
	return p, nil
}

// choose marks the simple rule with the highest Sharpe ratio, which nobody could have chosen
// beforehand.
func (p *pool) choose() {
	best, at := math.Inf(-1), -1
	for k, role := range p.roles {
		if x := performance.Sharpe(p.samples[k].excess()); role == RoleRule && x > best {
			best, at = x, k
		}
	}
	if at >= 0 {
		p.roles[at] = RoleSimpleRule
	}
}

// pooled adds the pooled rows with their intervals, and the deflated Sharpe ratios.
func (sum *Summary) pooled(s *Study) error {
	var ratios []float64
	base := sum.pools[0]
	for v, p := range sum.pools {
		if p == nil {
			continue
		}
		name := s.Plan.Variants[v]
		records, of := [][]float64{}, func(p *pool, k int) []float64 { return p.samples[k].r }
		for k := range p.names {
			records = append(records, of(p, k))
		}
		agent, benchmark := p.find(RoleAgent), p.find(RoleBenchmark)
		compared := v > 0 && base != nil && len(base.samples[0].r) == len(records[0])
		if compared {
			records = append(records, of(base, base.find(RoleAgent)))
		}
		first := p.samples[0]
		draws, err := performance.Resample(records, first.rate, performance.Plan{Resamples: resamples, Key: rng.New(0).Split("walk-forward")})
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		sum.Block = max(sum.Block, performance.Number(draws.Block))
		root := math.Sqrt(first.periods)
		difference := func(a, b int) *performance.Interval {
			d := make([]float64, len(draws.Sharpe[a]))
			for i := range d {
				d[i] = draws.Sharpe[a][i] - draws.Sharpe[b][i]
			}
			point := performance.Sharpe(performance.Excess(records[a], first.rate)) - performance.Sharpe(performance.Excess(records[b], first.rate))
			iv := performance.IntervalOf(point, d, level).Scale(root)
			return &iv
		}
		var seeds []float64
		for k, n := range p.names {
			ratio := performance.Sharpe(p.samples[k].excess())
			annual := make([]float64, resamples)
			for i, total := range draws.TotalReturn[k] {
				annual[i] = first.yearly(total, len(first.r))
			}
			row := PooledRow{Variant: name, Row: Row{n, p.roles[k], p.samples[k].figures()}, Sharpe: performance.IntervalOf(ratio, draws.Sharpe[k], level).Scale(root), AnnualReturn: performance.IntervalOf(p.samples[k].annual(records[k]), annual, level)}
			if k != benchmark {
				row.Difference = difference(k, benchmark)
			}
			if k == agent && compared {
				row.ToBase = difference(k, len(records)-1)
			}
			if row.Role == RoleSeed || k == agent && s.Plan.Study.Ensemble.By != "" {
				ratios = append(ratios, ratio)
			}
			if row.Role == RoleSeed {
				seeds = append(seeds, ratio*root)
			}
			sum.Pooled = append(sum.Pooled, row)
		}
		m, sd := stat.MeanStdDev(seeds, nil)
		sum.Seeds[name] = Spread{performance.Number(m), performance.Number(sd), len(seeds)}
		sum.Market = p.names[marketOf(p.ranges[0].records)]
	}
	sum.deflate(s, ratios)
	return nil
}

// deflate counts the trials: every seed and every ensemble of every variant, and what the base was
// chosen from.
func (sum *Summary) deflate(s *Study, ratios []float64) {
	each, what := len(s.Plan.Seeds), plural(len(s.Plan.Seeds), "seed")
	if s.Plan.Study.Ensemble.By != "" {
		each, what = each+1, what+" and their ensemble"
	}
	sum.Trials = each * len(s.Plan.Variants)
	sum.Counted = fmt.Sprintf("%s of %s over one set of folds", what, plural(len(s.Plan.Variants), "variant"))
	if more := s.trials(); more > 0 {
		sum.Trials += more
		sum.Counted += fmt.Sprintf(", and %s within populations", plural(more, "configuration"))
	}
	if f := s.Plan.Cells[0].Config.ChosenFrom; f != nil {
		sum.Trials += f.Trials
		sum.Counted += fmt.Sprintf(", and %s that the base was chosen from", plural(f.Trials, "configuration"))
	}
	variance := 0.0
	if ratios = performance.Present(ratios); len(ratios) > 1 {
		variance = stat.Variance(ratios, nil)
	}
	for v, p := range sum.pools {
		if p != nil {
			sum.Deflated[s.Plan.Variants[v]] = performance.DeflatedSharpe(p.samples[p.find(RoleAgent)].excess(), sum.Trials, variance)
		}
	}
}

// notes says how the tables are to be read, and in one sentence what was found.
func (sum *Summary) notes(s *Study) {
	add := func(format string, args ...any) { sum.Notes = append(sum.Notes, fmt.Sprintf(format, args...)) }
	p := s.Plan
	var left int
	for _, one := range sum.pools {
		if one == nil {
			continue
		}
		for i := 1; i < len(one.ranges); i++ {
			before, after := one.ranges[i-1], one.ranges[i]
			if after.dates[0].After(before.dates[len(before.dates)-1]) {
				left++
			}
		}
		break
	}
	add("Every fold begins and is measured with cash as its first value, for all rows alike; what happens between the test ranges of two folds (%d times) is in no record. Annual figures are by the number of bars.", left)
	add("Intervals cover %.0f %%: stationary block bootstrap over time, %d resamples, blocks of %.0f bars on average that all rows share. Seeds are not samples of history: the spread over seeds says how much of a result is the luck of training, and nothing about another history.", 100*level, resamples, float64(sum.Block))
	add("Trials: %d (%s).", sum.Trials, sum.Counted)
	add("Up, sideways and down are annual returns in the calendar months in which %s rose by more than %.0f %%, did neither, or fell by more; beta is to the same.", sum.Market, 100*trend)
	add("Herfindahl is the mean sum of squared weights, 1 for one asset and 0 for cash; of seeds that share the capital it is the mean of theirs.")
	if slices.ContainsFunc(sum.Pooled, func(r PooledRow) bool { return r.Role == RoleAgent && r.Figures["capacity"].Defined() }) {
		add("Capacity is the capital, in the currency of the prices, up to which 95 %% of the trades would take at most %.0f %% of the volume of their bar, in the fold where that is least; prices are not moved by it.", 100*impacted)
	} else {
		add("Capacity is not known: the data have no volume, or nothing was traded.")
	}
	add("The best simple rule was found with hindsight, among all of them by their pooled Sharpe ratios.")
	switch {
	case p.Study.Scheme.Kind == split.Combinatorial:
		add("Folds are combinatorial: policies have learnt from later times than those that they are tested on, too, and indicators reach back further than windows; every bar is tested several times, and its record is the portfolio with an equal part in each.")
	case p.Study.WarmStart == Last:
		add("Parameters begin with those of the best policy of the fold before, by seed.")
	}
	sum.lookAhead(p)
	for i, o := range s.outcomes() {
		if o != nil && len(o.Seen) > 0 {
			add("IN SAMPLE: fold %s: %s", s.Plan.Cells[i].Name, strings.Join(o.Seen, " "))
		}
	}
	if !sum.Complete {
		add("Not all folds are judged: %d of %d.", sum.Judged, sum.Cells)
	}
	sum.verdict()
}

// lookAhead adds what variants know of the future, each sentence once, with their names where it is
// not all of them.
func (sum *Summary) lookAhead(p *Plan) {
	var sentences []string
	of := map[string][]string{}
	judged := 0
	for v, one := range sum.pools {
		if one == nil {
			continue
		}
		judged++
		for _, sentence := range one.lookAhead {
			if of[sentence] == nil {
				sentences = append(sentences, sentence)
			}
			if name := p.Variants[v]; !slices.Contains(of[sentence], name) {
				of[sentence] = append(of[sentence], name)
			}
		}
	}
	for _, sentence := range sentences {
		note := "LOOK-AHEAD: "
		if names := of[sentence]; len(names) < judged {
			note += "in " + strings.Join(names, ", ") + ": "
		}
		sum.Notes = append(sum.Notes, note+sentence+" Such results cannot be earned.")
	}
}

// verdict says in one sentence how the agent of the base does.
func (sum *Summary) verdict() {
	row := func(role string) *PooledRow {
		i := slices.IndexFunc(sum.Pooled, func(r PooledRow) bool { return r.Variant == Base && r.Role == role })
		if i < 0 {
			return nil
		}
		return &sum.Pooled[i]
	}
	a, b := row(RoleAgent), row(RoleBenchmark)
	if a == nil || b == nil || a.Difference == nil {
		return
	}
	d := sum.Deflated[Base]
	how := "cannot be told from"
	switch {
	case a.Difference.Low > 0:
		how = "is above"
	case a.Difference.High < 0:
		how = "is below"
	}
	claim := "no evidence of skill"
	if a.Difference.Low > 0 && d.Probability >= level && len(sum.pools[0].lookAhead) == 0 {
		claim = "luck alone rarely does this"
	}
	interval := "no interval"
	if a.Difference.Low.Defined() {
		interval = fmt.Sprintf("%.0f %% interval %+.2f to %+.2f", 100*level, a.Difference.Low, a.Difference.High)
	}
	sum.Verdict = fmt.Sprintf("Out of sample the Sharpe ratio of %s, %.2f, %s that of equal-weight buy-and-hold, %.2f (difference %+.2f, %s); its deflated Sharpe probability is %.2f after %s: %s.",
		a.Name, a.Figures["sharpe"], how, b.Figures["sharpe"], a.Difference.Point, interval, d.Probability, plural(sum.Trials, "trial"), claim)
}

func plural(n int, what string) string {
	if n == 1 {
		return "one " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

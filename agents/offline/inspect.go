package offline

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/runtime/printable"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// maxProblems is the number of problems that a report shows; it counts all.
const maxProblems = 20

// Report is what an inspection finds; the JSON keys are stable.
type Report struct {
	Dir         string `json:"dir"`
	Environment string `json:"environment"`
	Episodes    int64  `json:"episodes"`
	Transitions int64  `json:"transitions"`
	// Gamma is 0 where it is not known.
	Gamma      float64           `json:"gamma"`
	Behaviours []BehaviourReport `json:"behaviours"`
	Columns    []ColumnReport    `json:"columns"`
	// Terminated is the share of episodes that came to their end, and LogProb that of transitions
	// whose behaviour's log-probability is known.
	Terminated float64 `json:"terminated"`
	LogProb    float64 `json:"log_prob_known"`
	// Problems are the first ones of all that were found.
	Problems []string `json:"problems"`
	Found    int      `json:"problems_found"`
	// Returns are those of the whole episodes, by behaviour.
	Returns [][]float64 `json:"-"`
}

// BehaviourReport sums up the episodes of a behaviour.
type BehaviourReport struct {
	Behaviour
	Episodes int `json:"episodes"`
	// The return is undiscounted; Q25, Median and Q75 are quantiles, and the standard deviation is
	// that of the population.
	Return float64 `json:"return_mean"`
	Std    float64 `json:"return_std"`
	Low    float64 `json:"return_min"`
	Q25    float64 `json:"return_q25"`
	Median float64 `json:"return_median"`
	Q75    float64 `json:"return_q75"`
	High   float64 `json:"return_max"`
	Length float64 `json:"length_mean"`
}

// ColumnReport sums up the numbers of a column, all elements together.
type ColumnReport struct {
	Name  string  `json:"name"`
	Space string  `json:"space"`
	Low   float64 `json:"min"`
	High  float64 `json:"max"`
	Mean  float64 `json:"mean"`
	Std   float64 `json:"std"`
}

// moments are those of the finite numbers of a column.
type moments struct {
	n, mean, m2, low, high float64
}

func (m *moments) add(x float64) {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return
	}
	if m.n == 0 {
		m.low, m.high = x, x
	}
	m.n++
	d := x - m.mean
	m.mean += d / m.n
	m.m2 += d * (x - m.mean)
	m.low, m.high = min(m.low, x), max(m.high, x)
}

// addBytes adds numbers of an element type.
func (m *moments) addBytes(d tensor.DType, b []byte) {
	for i := 0; i < len(b); i += d.Size() {
		switch d {
		case tensor.Float32:
			m.add(float64(math.Float32frombits(binary.LittleEndian.Uint32(b[i:]))))
		case tensor.Float64:
			m.add(math.Float64frombits(binary.LittleEndian.Uint64(b[i:])))
		case tensor.Int64:
			m.add(float64(int64(binary.LittleEndian.Uint64(b[i:]))))
		default:
			m.add(float64(b[i]))
		}
	}
}

// Inspect reads a whole data set, checks it, and sums it up. Problems of its content are in the
// report and are no error. Beside a return for each episode it has one row group in memory.
func (d *Dataset) Inspect(ctx context.Context, progress func(episodes int64)) (*Report, error) {
	c, err := NewChecker(d)
	if err != nil {
		return nil, fmt.Errorf("data set %s: %w", d.Dir, err)
	}
	r := &Report{Dir: d.Dir, Environment: d.Environment.Name, Episodes: d.Episodes, Transitions: d.Transitions, Gamma: d.Gamma, Problems: []string{}, Returns: make([][]float64, len(d.Behaviours))}
	problem := func(err error) {
		if r.Found++; len(r.Problems) < maxProblems {
			r.Problems = append(r.Problems, err.Error())
		}
	}
	var row *RowError
	if err := d.VerifyFiles(ctx); errors.As(err, &row) {
		problem(err)
	} else if err != nil {
		return nil, err
	}
	obs, action := d.columns()
	sums, lengths := make([]moments, len(obs)+2), make([]float64, len(d.Behaviours))
	var read, known, terminated, whole float64
	err = d.each(ctx, func(e *Episode) error {
		if progress != nil {
			progress(e.Number)
		}
		if err := c.Check(e); err != nil {
			problem(err)
		}
		for f, o := range obs {
			if d.Observation[f].Window == nil {
				sums[f].addBytes(o.dtype, o.outside(e.Obs[f]))
			}
		}
		sums[len(obs)].addBytes(action.dtype, action.outside(e.Action))
		for t, x := range e.Reward {
			sums[len(obs)+1].add(x)
			read++
			if p := e.LogProb[t]; p == p {
				known++
			}
		}
		whole++
		if e.Terminated {
			terminated++
		}
		r.Returns[e.Behaviour] = append(r.Returns[e.Behaviour], e.Return())
		lengths[e.Behaviour] += float64(e.Len())
		return nil
	}, func(e *RowError) error {
		problem(e)
		return nil
	})
	switch {
	case errors.As(err, &row):
		problem(err)
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		problem(err)
	}
	r.Terminated, r.LogProb = terminated/max(whole, 1), known/max(read, 1)
	for i, f := range d.Observation {
		// Manifests are valid.
		space, _ := agents.SpaceOf(f.Space)
		r.Columns = append(r.Columns, reportOf(f.Name, space.String(), sums[i]))
	}
	space, _ := agents.SpaceOf(d.Action)
	r.Columns = append(r.Columns, reportOf(actionColumn, space.String(), sums[len(obs)]), reportOf(rewardColumn, "", sums[len(obs)+1]))
	for i, b := range d.Behaviours {
		r.Behaviours = append(r.Behaviours, sumUp(b, r.Returns[i], lengths[i]))
	}
	return r, nil
}

func reportOf(name, space string, m moments) ColumnReport {
	return ColumnReport{Name: name, Space: space, Low: m.low, High: m.high, Mean: m.mean, Std: math.Sqrt(m.m2 / max(m.n, 1))}
}

func sumUp(b Behaviour, returns []float64, length float64) BehaviourReport {
	out := BehaviourReport{Behaviour: b, Episodes: len(returns)}
	var list []float64
	for _, x := range returns {
		if !math.IsNaN(x) && !math.IsInf(x, 0) {
			list = append(list, x)
		}
	}
	if len(list) == 0 {
		return out
	}
	slices.Sort(list)
	at := func(p float64) float64 { return stat.Quantile(p, stat.LinInterp, list, nil) }
	out.Return, out.Std = stat.PopMeanStdDev(list, nil)
	out.Low, out.Q25, out.Median, out.Q75, out.High = list[0], at(0.25), at(0.5), at(0.75), list[len(list)-1]
	out.Length = length / float64(len(returns))
	return out
}

// Describe says in a few words what acted.
func (b Behaviour) Describe() string {
	s := b.Algorithm
	if b.Stochastic {
		s += ", drawn"
	}
	if b.Noise > 0 {
		s += fmt.Sprintf(", noise %g", b.Noise)
	}
	if b.RandomActions > 0 {
		s += fmt.Sprintf(", %g of actions random", b.RandomActions)
	}
	if b.RandomEpisodes > 0 && b.Algorithm != "random" {
		s += fmt.Sprintf(", %g of episodes random", b.RandomEpisodes)
	}
	return s
}

// Print writes the report as tables.
func (r *Report) Print(to io.Writer) error {
	fmt.Fprintf(to, "%s: %s, %d episodes, %d transitions", r.Dir, r.Environment, r.Episodes, r.Transitions)
	if r.Gamma > 0 {
		fmt.Fprintf(to, ", gamma %g", r.Gamma)
	}
	fmt.Fprintf(to, "\n%.0f %% of episodes terminated, the others were cut off; the behaviour's log-probability is known of %.0f %% of the transitions\n\n", 100*r.Terminated, 100*r.LogProb)
	w := printable.NewNumbers(to)
	fmt.Fprintln(w, "behaviour\tepisodes\treturn\tstd\tmin\t25 %\tmedian\t75 %\tmax\tlength\t")
	for _, b := range r.Behaviours {
		fmt.Fprintf(w, "%s\t%d\t%.5g\t%.4g\t%.5g\t%.5g\t%.5g\t%.5g\t%.5g\t%.5g\t\n", b.Describe(), b.Episodes, b.Return, b.Std, b.Low, b.Q25, b.Median, b.Q75, b.High, b.Length)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(to)
	w = printable.NewTable(to)
	fmt.Fprintln(w, "column\tmin\tmax\tmean\tstd\tspace")
	for _, c := range r.Columns {
		fmt.Fprintf(w, "%s\t%.4g\t%.4g\t%.4g\t%.4g\t%s\n", c.Name, c.Low, c.High, c.Mean, c.Std, c.Space)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if r.Found == 0 {
		_, err := fmt.Fprintln(to, "\nno problems: files, order, spaces, ends and numbers are as they should be")
		return err
	}
	fmt.Fprintf(to, "\n%d problems:\n", r.Found)
	for _, p := range r.Problems {
		fmt.Fprintf(to, "  %s\n", p)
	}
	if n := r.Found - len(r.Problems); n > 0 {
		fmt.Fprintf(to, "  and %d more\n", n)
	}
	return nil
}

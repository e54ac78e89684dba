package assess

import (
	"fmt"
	"slices"
	"time"

	"github.com/onnxrl/onnxrl/agents/evaluate"
	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/trader"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/market/prepared"
	ranges "github.com/onnxrl/onnxrl/envs/market/split"
	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/envs/wrap"
)

// sameClose says what is wrong with fills at prices that decisions have seen.
const sameClose = "Trades are filled at the close that their decision has already seen (execution.fill: same_close), which is not possible in a market."

// LookAhead implements [experiment.Judge]: it says what in an environment knows the future, as far as it can be known, one sentence
// each: fills at prices that decisions have seen, and what the data say of themselves (see package
// prepared). What it cannot know is in the caveats of a report: assets that were chosen with
// hindsight, and columns that were computed elsewhere. Environments without a market have none.
func (Judge) LookAhead(f envs.Factory) []string {
	o, ok := wrap.FindFactory[trading.Opened](f)
	if !ok {
		return nil
	}
	out := slices.Clone(o.Data().LookAhead)
	if o.Source().Config().LookAhead() {
		out = append(out, sameClose)
	}
	return out
}

func (r *Request) lookAhead() []string {
	out := Judge{}.LookAhead(r.Env)
	for _, s := range r.LookAhead {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// seen says what of the evaluated bars the policies learnt from or were chosen by.
func (r *Request) seen(bars trading.Range) (out []string, chosen bool) {
	dates := r.Env.Data().Market.Dates
	evaluated := evaluate.Period{First: dates[bars.First], Last: dates[bars.Last]}
	for _, c := range []struct {
		period evaluate.Period
		split  envs.Split
		what   string
	}{{r.Trained, envs.Train, "was trained on"}, {r.Chosen, envs.Valid, "was chosen by its results on"}} {
		parts := r.Env.Data().TrainParts
		if c.split == envs.Train && parts != nil && !slices.ContainsFunc(parts, func(p trading.Range) bool { return p.First <= bars.Last && bars.First <= p.Last }) {
			continue
		}
		if c.period == (evaluate.Period{}) {
			c.period = trader.PeriodOf(r.Env, c.split)
		}
		both, ok := evaluated.Overlap(c.period)
		chosen = ok && c.split == envs.Valid
		switch {
		case ok && both == evaluated:
			out = append(out, fmt.Sprintf("The agent %s these data.", c.what))
		case ok:
			out = append(out, fmt.Sprintf("The agent %s a part of these data, %s to %s.", c.what, both.First.Format(time.DateOnly), both.Last.Format(time.DateOnly)))
		}
	}
	return out, chosen
}

// Periods implements [experiment.Judge]: it returns the bars that a run of a document learns from and chooses by, as far as the
// data section of the kind trading names dates; none elsewhere.
func (Judge) Periods(c experiment.Config) (trained, chosen evaluate.Period) {
	params := trading.Params{Config: trading.Defaults()}
	data := prepared.Default()
	if c.Env.Kind != "trading" || c.Env.Decode(&params) != nil || params.Data.Decode(&data) != nil {
		return trained, chosen
	}
	period := func(r ranges.Range) (p evaluate.Period) {
		if first, err := time.Parse(time.DateOnly, r.From.String()); err == nil {
			p.First = first
		}
		if last, err := time.Parse(time.DateOnly, r.To.String()); err == nil {
			p.Last = last.AddDate(0, 0, 1).Add(-time.Nanosecond)
		}
		return p
	}
	return period(data.Split.Train), period(data.Split.Valid)
}

package ablate

import (
	"fmt"
	"slices"

	"github.com/onnxrl/onnxrl/agents/study"
	"github.com/onnxrl/onnxrl/export/report/plots"
)

// neutral are metrics of which more is not better by itself, so that differences are neither gains
// nor losses.
var neutral = []string{"volatility", "turnover", "fees", "mean_length"}

// figures are one dot plot for each factor, and one of all differences to the base.
func (s *Summary) figures() ([]study.File, error) {
	var list []study.File
	add := func(f *plots.Figure, err error) error {
		if err != nil {
			return err
		}
		for name, write := range f.Files() {
			list = append(list, study.File{Name: name, Write: write})
		}
		return nil
	}
	metric := s.Metrics[0]
	var marks []plots.Mark
	if s.Reference != nil && s.Reference[0].Defined() {
		marks = append(marks, plots.Mark{Name: s.ReferenceName, At: float64(s.Reference[0])})
	}
	for _, name := range s.Factors {
		var dots []plots.Dot
		for _, e := range s.Effects {
			if e.Factor != name {
				continue
			}
			v := e.Stats[0]
			d := plots.Dot{Name: e.Level, Kind: plots.Agent, Value: float64(v.Mean), Low: float64(v.Mean - v.Std), High: float64(v.Mean + v.Std)}
			if e.Base {
				d.Kind = plots.Benchmark
			}
			for _, x := range e.Values {
				d.Each = append(d.Each, float64(x))
			}
			dots = append(dots, d)
		}
		title := fmt.Sprintf("%s by %s", metric, name)
		if err := add(plots.Dots(study.Slug(name), title+" on the validation range", title, "validation range: each seed, mean ± standard deviation", plots.Plain, dots, marks)); err != nil {
			return nil, err
		}
	}
	var dots []plots.Dot
	for _, e := range s.Effects {
		if e.Base {
			continue
		}
		v := e.Stats[0]
		dots = append(dots, plots.Dot{Name: e.Factor + ": " + e.Level, Value: float64(v.Diff), Low: float64(v.Low), High: float64(v.High), Signed: !slices.Contains(neutral, metric)})
	}
	title := metric + ": difference to the base"
	err := add(plots.Dots("differences", title+" on the validation range", title, fmt.Sprintf("paired by seed, with %.0f %% intervals", 100*Confidence), plots.Plain, dots, []plots.Mark{{Name: "no difference", At: 0}}))
	return list, err
}

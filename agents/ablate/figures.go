package ablate

import (
	"fmt"
	"io"
	"slices"

	"github.com/onnxrl/onnxrl/export/report/plots"
)

// file is something to be written.
type file struct {
	name  string
	write func(io.Writer) error
}

// resolution of pixel images, in dots per inch: twice that of screens.
const resolution = 144

// neutral are metrics of which more is not better by itself, so that differences are neither gains
// nor losses.
var neutral = []string{"volatility", "turnover", "fees", "mean_length"}

// figures are one dot plot for each factor, and one of all differences to the base: SVG that
// follows the reader's light or dark, and PNG in both.
func (s *Summary) figures() ([]file, error) {
	var list []file
	add := func(f *plots.Figure, err error) error {
		if err != nil {
			return err
		}
		list = append(list, file{f.Name + ".svg", bytesOf(f.SVG)})
		for scheme, name := range []string{"light", "dark"} {
			list = append(list, file{f.Name + "-" + name + ".png", bytesOf(func() ([]byte, error) { return f.PNG(plots.Scheme(scheme), resolution) })})
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
		if err := add(plots.Dots(slug(name), title+" on the validation range", title, "validation range: each seed, mean ± standard deviation", plots.Plain, dots, marks)); err != nil {
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

func bytesOf(draw func() ([]byte, error)) func(io.Writer) error {
	return func(w io.Writer) error {
		text, err := draw()
		if err == nil {
			_, err = w.Write(text)
		}
		return err
	}
}

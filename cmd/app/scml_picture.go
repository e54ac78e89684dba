package app

import (
	"errors"
	"fmt"
	"slices"

	"github.com/onnxrl/onnxrl/envs/scml/record"
	"github.com/onnxrl/onnxrl/envs/scml/world"
	"github.com/onnxrl/onnxrl/export/report/plots"
)

const pictureUsage = "draw prices, stocks, scores and flows into this file: .svg or .png"

// drawWorld draws a recorded world.
func drawWorld(w *record.World, path string) error {
	if len(w.Played) == 0 {
		return errors.New("--picture: no days were recorded")
	}
	s := w.Summarise()
	prices := plots.Panel{Title: "Trading price / catalog"}
	for p := range w.Catalog {
		l := plots.Line{Name: fmt.Sprintf("product %d", p)}
		for i := range w.Played {
			l.Y = append(l.Y, w.Played[i].End.Trading[p]/float64(w.Catalog[p]))
		}
		prices.Lines = append(prices.Lines, l)
	}
	stocks, scores := plots.Panel{Title: "Input stock (units)"}, plots.Panel{Title: "Balance / initial"}
	stages := make([][]string, w.Levels+2)
	for _, a := range s.Agents {
		stages[a.Level+1] = append(stages[a.Level+1], a.ID)
		stock, score := plots.Line{Name: a.ID}, plots.Line{Name: a.ID}
		for i := range w.Played {
			e := w.Played[i].End.Agents[a.ID]
			stock.Y, score.Y = append(stock.Y, float64(e.Stock)), append(score.Y, e.Score)
		}
		stocks.Lines, scores.Lines = append(stocks.Lines, stock), append(scores.Lines, score)
	}
	stages[0], stages[len(stages)-1] = []string{world.Seller}, []string{world.Buyer}
	o := plots.Chain{Name: "world", Panels: []plots.Panel{prices, stocks, scores}, Stages: stages, FlowTitle: "Units delivered"}
	for _, f := range s.Flows {
		o.Flows = append(o.Flows, plots.Flow{Stage: f.Product, From: slices.Index(stages[f.Product], f.Seller), To: slices.Index(stages[f.Product+1], f.Buyer), Amount: float64(f.Quantity)})
	}
	o.Alt = fmt.Sprintf("A world of %d levels over %d days: trading prices, stocks and scores by day, and the units that were delivered between agents", w.Levels, len(w.Played))
	f, err := o.Draw()
	if err != nil {
		return err
	}
	return writePicture(path, f)
}

package bars

import (
	"errors"
	"fmt"
	"strings"
)

// Quality is what was found in a source.
type Quality struct {
	Symbols []SymbolReport `json:"symbols"`
	Files   []File         `json:"files"`
	// Adjusted is the By of Adjustment.
	Adjusted   string     `json:"adjusted"`
	Adjustment Adjustment `json:"price_adjustment"`
	// Warnings are what [Data.Examine] has found in all rows together, as errors or as notes.
	Warnings []string `json:"warnings,omitempty"`
	// Exchange compares the times with source.exchange; nil where there is none.
	Exchange *ExchangeReport `json:"exchange,omitempty"`
	Times    int             `json:"times"`
	From     string          `json:"from"`
	To       string          `json:"to"`
}

// Inspect checks the rows of every symbol and reports on all of them: one that the rules refuse is
// reported as a problem and does not take part in the calendar. Where that is so of all of them, it is
// the error, as it is for whoever prepares the data.
func Inspect(d *Data, rules Rules, c Calendar, adjustVolume string) (*Quality, error) {
	q := &Quality{Files: d.Files, Adjusted: d.Adjustment.By, Adjustment: d.Adjustment, Symbols: make([]SymbolReport, len(d.Series))}
	cleaned := make([]Series, len(d.Series))
	var problems []error
	for i, s := range d.Series {
		var err error
		if cleaned[i], q.Symbols[i], err = Clean(s, rules, adjustVolume); err != nil {
			q.Symbols[i].Problem, cleaned[i] = err.Error(), Series{Symbol: s.Symbol}
			problems = append(problems, err)
		}
	}
	q.Exchange = d.Exchange()
	warnings, err := d.Examine(rules)
	if q.Warnings = warnings; err != nil {
		q.Warnings = append(q.Warnings, strings.Split(err.Error(), "\n")...)
	}
	if len(problems) == len(d.Series) {
		return nil, fmt.Errorf("check the data: %w", errors.Join(problems...))
	}
	p, err := Align(cleaned, nil, c, q.Symbols)
	if err != nil {
		return nil, fmt.Errorf("inspect: %w", err)
	}
	q.Times, q.From, q.To = len(p.Times), formatTime(p.Times[0]), formatTime(p.Times[len(p.Times)-1])
	return q, nil
}

package publish

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"

	"github.com/onnxrl/onnxrl/agents/evaluate"
	"github.com/onnxrl/onnxrl/agents/train"
	"github.com/onnxrl/onnxrl/export/bake"
	"github.com/onnxrl/onnxrl/runtime/onnx"
)

// Past is what the file of a policy says of how it came about, so that whoever evaluates it
// elsewhere knows which data are new to it and how often fortune was tried.
type Past struct {
	// Trained and Chosen are the times of the data that the policy learnt from and was chosen by;
	// none where data have no times, and Chosen where there was no validation.
	Trained, Chosen evaluate.Period
	// LookAhead says what the policy knows of the future, one sentence each.
	LookAhead []string
	// Trials is nil in files that were written before there was such a record.
	Trials *Trials
}

// Join adds the past of what a policy's training began with: the periods become the shortest that
// hold both. Its trials are not those of the policy.
func (p *Past) Join(parent Past) {
	p.Trained, p.Chosen = p.Trained.Hull(parent.Trained), p.Chosen.Hull(parent.Chosen)
	for _, s := range parent.LookAhead {
		if !slices.Contains(p.LookAhead, s) {
			p.LookAhead = append(slices.Clip(p.LookAhead), s)
		}
	}
}

// Trials is out of how much a policy was chosen. The JSON keys are stable.
type Trials struct {
	// Runs is the number of runs of the configuration, one for each seed, this one included.
	Runs int `json:"runs"`
	// Evaluations is the number of validations of this run's learning curve that the policy is the
	// best of.
	Evaluations int64 `json:"evaluations"`
	// Searched is the number of configurations that a search chose this one from, and
	// SharpeVariance the variance between their annual Sharpe ratios on the validation split; 0
	// without a search, and where that searched for something else.
	Searched       int     `json:"searched,omitempty"`
	SharpeVariance float64 `json:"sharpe_variance,omitempty"`
}

// Selection is what a policy with this record was chosen from.
func (t Trials) Selection() *evaluate.Selection {
	return &evaluate.Selection{
		Runs: t.Runs, Evaluations: int(t.Evaluations), Searched: t.Searched, SearchVariance: t.SharpeVariance,
		Source: "the model's own record, in its metadata",
	}
}

// The metadata keys, after bake.MetaPrefix.
const (
	trainedKey   = "trained_on"
	chosenKey    = "chosen_on"
	lookAheadKey = "look_ahead"
	trialsKey    = "trials"
)

// past is that of a policy of the publisher's run.
func (p *Publisher) past(policy train.Policy) Past {
	out := p.preprocessing.Past
	if policy.Evaluations == 0 {
		out.Chosen = evaluate.Period{}
	}
	out.Trials = &Trials{Runs: max(p.o.Runs, 1), Evaluations: policy.Evaluations}
	if c := p.o.Config.ChosenFrom; c != nil {
		out.Trials.Searched, out.Trials.SharpeVariance = c.Trials, c.SharpeVariance
	}
	out.Join(p.o.Inherited)
	return out
}

// Info are the metadata of a file, without their prefix.
func (p Past) Info() map[string]string {
	out := map[string]string{}
	for k, v := range map[string]string{trainedKey: p.Trained.String(), chosenKey: p.Chosen.String()} {
		if v != "" {
			out[k] = v
		}
	}
	if len(p.LookAhead) > 0 {
		out[lookAheadKey] = text(p.LookAhead)
	}
	if p.Trials != nil {
		out[trialsKey] = text(p.Trials)
	}
	return out
}

// text is the JSON of a value that has one.
func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// PastOf reads the metadata of a published model. What they do not have stays zero.
func PastOf(m *onnx.Model) (p Past, err error) {
	for _, f := range []struct {
		key  string
		read func(text string) error
	}{
		{trainedKey, func(t string) (err error) { p.Trained, err = evaluate.ParsePeriod(t); return err }},
		{chosenKey, func(t string) (err error) { p.Chosen, err = evaluate.ParsePeriod(t); return err }},
		{lookAheadKey, func(t string) error { return json.Unmarshal([]byte(t), &p.LookAhead) }},
		{trialsKey, func(t string) error { return json.Unmarshal([]byte(t), &p.Trials) }},
	} {
		text, _ := m.Meta(bake.MetaPrefix + f.key)
		if text == "" {
			continue
		}
		if err := f.read(text); err != nil {
			return Past{}, fmt.Errorf("metadata %s: %w", bake.MetaPrefix+f.key, err)
		}
	}
	return p, nil
}

// StepsOf returns the env steps after which the policy in a file was published; ok is false where
// there is no such file or it does not say.
func StepsOf(path string) (steps int64, ok bool, err error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return 0, false, nil
	}
	m, err := onnx.Load(path)
	if err != nil {
		return 0, false, err
	}
	text, _ := m.Meta(bake.MetaPrefix + "env_steps")
	steps, err = strconv.ParseInt(text, 10, 64)
	return steps, err == nil, nil
}

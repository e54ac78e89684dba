package run

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/onnxrl/onnxrl/agents/train"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/envs/wrap"
	"github.com/onnxrl/onnxrl/models/checkpoint"
	"github.com/onnxrl/onnxrl/models/transfer"
)

// statistics are what a run knew of the observations and returns that the parameters of
// Options.Init were learnt from.
type statistics struct {
	state    vector.Statistics
	wrappers wrap.Config
	// missing says why there are none to take; empty where there are.
	missing string
}

// statisticsOf reads those beside the parameters of a source.
func statisticsOf(s *transfer.Source) (out *statistics, err error) {
	out = &statistics{}
	if s.Kind != "checkpoint" {
		out.missing = "a file has no running statistics; those of an exported agent are inside of its graph, for good: begin with the run or the checkpoint"
		return out, nil
	}
	c, err := checkpoint.Open(s.Name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	const section = "normalize"
	if !c.Reader().Has(section) {
		out.missing = "it normalised nothing"
		return out, nil
	}
	if err := c.Reader().JSON(section, &out.state); err != nil {
		return nil, fmt.Errorf("%s: %w", s.Name, err)
	}
	out.wrappers = wrap.Defaults()
	path := filepath.Join(filepath.Dir(filepath.Dir(s.Name)), ConfigFile)
	doc, err := configs.Open(path)
	if err != nil {
		out.missing = fmt.Sprintf("the checkpoint lies in no run directory, whose %s would say what they are of", ConfigFile)
		return out, nil
	}
	if section, ok := doc.Lookup("wrappers"); ok {
		if err := section.Decode(&out.wrappers); err != nil {
			first, _, _ := strings.Cut(err.Error(), "\n")
			out.missing = "what they are of cannot be read: " + first
		}
	}
	return out, nil
}

// inherit gives a run that has not begun the statistics that belong to the parameters it begins
// with, where both mean the same by an observation, and says once what became of them.
func (i *initial) inherit(note func(format string, args ...any), tr *train.Trainer, wrappers wrap.Config) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	s, on := i.statistics, wrappers.Normalize.On()
	var taken, left []string
	switch {
	case s.missing != "":
		if on {
			left = []string{s.missing}
		}
	case (s.wrappers.FrameStack.On() || wrappers.FrameStack.On()) && s.wrappers.FrameStack != wrappers.FrameStack:
		left = []string{fmt.Sprintf("wrappers.frame_stack is %+v there and %+v here", s.wrappers.FrameStack, wrappers.FrameStack)}
	default:
		var err error
		if taken, left, err = tr.Inherit(s.state, s.wrappers.Normalize); err != nil {
			return fmt.Errorf("init %s: %w", i.Ref, err)
		}
	}
	i.Statistics = strings.Join(taken, ", ")
	if i.told {
		return nil
	}
	i.told = true
	if len(taken) > 0 {
		note("init: normalisation goes on from the statistics of %s", i.Statistics)
	}
	if len(left) > 0 {
		note("init: statistics of normalisation that are not taken: %s", strings.Join(left, "; "))
	}
	return nil
}

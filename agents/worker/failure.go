package worker

import (
	"context"
	"errors"
	"math"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/models/checkpoint"
	"github.com/onnxrl/onnxrl/runtime/optim"
)

// Failure is an error of a job written down, so that whoever has sent the job finds the same
// errors in it; the JSON keys are stable.
type Failure struct {
	Text string `json:"text"`
	// Kind is one of the words below; empty for an error without one.
	Kind string `json:"kind,omitempty"`
	// Inner is the text of the error of that kind, and Gradient what a *optim.NonFiniteError has.
	Inner    string    `json:"inner,omitempty"`
	Gradient *Gradient `json:"gradient,omitempty"`
}

// Gradient is a *optim.NonFiniteError; Bits are those of its value.
type Gradient struct {
	What  string `json:"what"`
	Param string `json:"param"`
	Index int    `json:"index"`
	Bits  uint32 `json:"bits"`
}

// The kinds of failures.
const (
	diverged    = "diverged"
	nonFinite   = "non-finite"
	corrupt     = "damaged checkpoint"
	diskFull    = "disk full"
	interrupted = "interrupted"
)

// ErrDiskFull is what an error of a job is that another machine may not have.
var ErrDiskFull = errors.New("the disk is full")

// FailureOf writes an error down; nil without one.
func FailureOf(err error) *Failure {
	if err == nil {
		return nil
	}
	f := &Failure{Text: err.Error()}
	var d *agents.DivergedError
	var g *optim.NonFiniteError
	switch {
	case errors.As(err, &d):
		f.Kind, f.Inner = diverged, d.Text
	case errors.As(err, &g):
		f.Kind, f.Gradient = nonFinite, &Gradient{What: g.What, Param: g.Param, Index: g.Index, Bits: math.Float32bits(g.Value)}
	case errors.Is(err, checkpoint.ErrCorrupt):
		f.Kind = corrupt
	case IsDiskFull(err):
		f.Kind = diskFull
	case errors.Is(err, context.Canceled):
		f.Kind = interrupted
	}
	return f
}

// Err is the error that was written down; nil of none.
func (f *Failure) Err() error {
	if f == nil {
		return nil
	}
	e := &failure{text: f.Text}
	switch f.Kind {
	case diverged:
		e.inner = &agents.DivergedError{Text: f.Inner}
	case nonFinite:
		if g := f.Gradient; g != nil {
			e.inner = &optim.NonFiniteError{What: g.What, Param: g.Param, Index: g.Index, Value: math.Float32frombits(g.Bits)}
		}
	case corrupt:
		e.inner = checkpoint.ErrCorrupt
	case diskFull:
		e.inner = ErrDiskFull
	case interrupted:
		e.inner = context.Canceled
	}
	return e
}

// failure has the text of an error of another process, and is what that was.
type failure struct {
	text  string
	inner error
}

func (e *failure) Error() string { return e.text }

func (e *failure) Unwrap() error { return e.inner }

// resultOf writes down what has come of a job.
func resultOf(r run.Result, err error) *result {
	return &result{Result: r, Failure: FailureOf(err)}
}

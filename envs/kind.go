package envs

import (
	"context"
	"errors"
	"fmt"

	"github.com/onnxrl/onnxrl/configs"
)

// Split names a part of the data or a purpose: what a policy is trained on, chosen on, or evaluated
// on. Environments without data give the same dynamics for all of them.
type Split string

// The splits that every environment knows.
const (
	Train Split = "train"
	Valid Split = "valid"
	Test  Split = "test"
)

// Kind is one row of a list of environments: the name that a configuration gives as kind, and how
// the other keys become environments.
type Kind struct {
	Name string
	// Summary says in one line what the environment is.
	Summary string
	// Needs says what Open needs beyond the parameters, such as files of data; empty where the
	// parameters are all.
	Needs string
	// OfMachine says that the environment needs programs of the machine and no data. A configuration
	// may be tried by opening it, and an error of Open that is a [LackingError] says that they are not
	// there.
	OfMachine bool
	// Defaults returns the parameters that Open decodes over, a struct whose fields are the keys.
	Defaults func() any
	// Open decodes the parameters strictly, over the kind's defaults, and loads what all of its
	// environments share.
	Open func(ctx context.Context, params configs.Section) (Factory, error)
}

// NotGivenError says that an environment cannot be made before a key of its kind is given, which a
// document may leave open for who runs it.
type NotGivenError struct {
	// Key is the path below env, Expected what is to stand there.
	Key, Expected string
}

// Error implements error.
func (e *NotGivenError) Error() string { return e.Key + ": " + e.Expected }

// LackingError says that a machine lacks what an environment needs beyond its document, such as an
// interpreter, so that nothing is known of the document.
type LackingError struct {
	// What says what is missing; Err says it with the place in the configuration.
	What, Err error
}

// Error implements error.
func (e *LackingError) Error() string { return e.Err.Error() }

// Unwrap returns the error with its place.
func (e *LackingError) Unwrap() error { return e.Err }

// Factory makes the environments of one configuration. It is safe for concurrent use.
type Factory interface {
	// Config returns the effective parameters, defaults included, for the record of the run.
	Config() any
	// New returns the index-th environment of a batch. Equal splits and indices give equal
	// environments.
	New(split Split, index int) (Env, error)
	// Close frees what the environments share. They must be closed first.
	Close() error
}

// SharesFactory is a [Factory] of environments whose actions, in a Box, may stand for shares of a
// whole, such as the weights of a portfolio.
type SharesFactory interface {
	Factory
	// Shares returns what writes the shares [n] that an action [n] stands for, and overwrites
	// scratch [n]; nil where actions are others.
	Shares() func(shares []float64, action []float32, scratch []float64)
}

// Open finds the kind that a configuration names and opens it. The error for an unknown name is
// placed at the name.
func Open(ctx context.Context, kinds []Kind, c configs.Kinded) (Factory, error) {
	names := make([]string, len(kinds))
	for i, k := range kinds {
		if k.Name == c.Kind {
			return k.Open(ctx, c.Section)
		}
		names[i] = k.Name
	}
	return nil, c.Unknown(names)
}

// Make returns n environments of a factory, indexed from 0. When one cannot be made, those before
// it are closed.
func Make(f Factory, split Split, n int) ([]Env, error) {
	made := make([]Env, 0, n)
	for i := range n {
		e, err := f.New(split, i)
		if err != nil {
			err = fmt.Errorf("make environment %d of %d for %s: %w", i, n, split, err)
			for _, m := range made {
				err = errors.Join(err, m.Close())
			}
			return nil, err
		}
		made = append(made, e)
	}
	return made, nil
}

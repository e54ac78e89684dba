package scml

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/onnxrl/onnxrl/envs/scml/opponents"
	"github.com/onnxrl/onnxrl/envs/scml/world"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/objects"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// Roster finds agents by name: those that [Find] knows, and those of directories with networks,
// which it opens once. It is safe for concurrent use.
type Roster struct {
	open func(context.Context) (engine.Compiler, error)

	mu     sync.Mutex
	opened map[string]*Networks
}

// NewRoster returns a roster whose networks are run by the engine that open returns. It is not
// called before there is a network.
func NewRoster(open func(context.Context) (engine.Compiler, error)) *Roster {
	return &Roster{open: open, opened: map[string]*Networks{}}
}

// without begins what an agent of a directory is to do without.
const without = ":no-"

// Find returns the kind of a name, or of a directory with an agent ([DescriptionFile]).
// Behind the directory layers may be named that are left out, as in
// "agents/first:no-coordinator" and "agents/first:no-executor:no-manager".
func (r *Roster) Find(name string) (*opponents.Kind, error) {
	dir, rest, _ := strings.Cut(name, without)
	dir, err := objects.Local(dir)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(dir, DescriptionFile)); err != nil {
		k, known := Find(name)
		if known != nil && strings.ContainsAny(name, `/\`) {
			return nil, fmt.Errorf("%q is neither an agent's name nor a directory with a file %s", name, DescriptionFile)
		}
		return k, known
	}
	n, err := r.networks(dir)
	if err != nil {
		return nil, err
	}
	layers := n.Layers()
	for layer := range strings.SplitSeq(rest, without) {
		switch layer {
		case "":
		case "manager":
			layers.Manager = nil
		case "executor":
			layers.Executor, layers.Coordinator, layers.Direct = nil, nil, false
		case "coordinator":
			layers.Coordinator = nil
		default:
			return nil, fmt.Errorf("%q: an agent has no layer %q; there are manager, executor and coordinator", name, layer)
		}
	}
	return &opponents.Kind{
		Name: name, Type: Type, Summary: "our agent, of " + dir,
		New: func(*opponents.Dice) world.Agent { return NewAgent(layers) },
	}, nil
}

// Check reports why Find would not find an agent, without opening networks.
func Check(name string) error {
	dir, _, _ := strings.Cut(name, without)
	dir, err := objects.Local(dir)
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(dir, DescriptionFile)); err == nil {
		_, err := ReadDescription(dir)
		return err
	}
	_, err = (*Roster)(nil).Find(name)
	return err
}

// Layers returns those of a directory.
func (r *Roster) Layers(dir string) (Layers, error) {
	n, err := r.networks(dir)
	if err != nil {
		return Layers{}, err
	}
	return n.Layers(), nil
}

func (r *Roster) networks(dir string) (*Networks, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := r.opened[dir]; n != nil {
		return n, nil
	}
	ctx := context.Background()
	c, err := r.open(ctx)
	if err != nil {
		return nil, err
	}
	n, err := OpenNetworks(ctx, dir, c)
	if err != nil {
		return nil, fmt.Errorf("open the agent of %s: %w", dir, err)
	}
	r.opened[dir] = n
	return n, nil
}

// Close frees the networks. No agent may be playing any more.
func (r *Roster) Close() (err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, n := range sorted.All(r.opened) {
		err = errors.Join(err, n.Close())
	}
	clear(r.opened)
	return err
}

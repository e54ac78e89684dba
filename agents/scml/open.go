package scml

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/served"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/models/artifact"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/objects"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// DescriptionFile is the file of an agent's directory that says what its layers are.
const DescriptionFile = "agent.json"

// Description says which files the layers of an agent are. Names are relative to its directory;
// what is empty is left out.
type Description struct {
	// Layout is the version of the observations, [Layout].
	Layout int `json:"layout"`
	// Goal is how many numbers the manager's goals have, Horizon how many days ahead it reads.
	Goal    int  `json:"goal"`
	Horizon int  `json:"horizon"`
	Direct  bool `json:"direct,omitempty"`
	// The layers, as [LoadLayer] takes them: ONNX files, or versions of artefact stores.
	Manager     string `json:"manager,omitempty"`
	Executor    string `json:"executor,omitempty"`
	Coordinator string `json:"coordinator,omitempty"`
}

// ReadDescription reads that of a directory.
func ReadDescription(dir string) (Description, error) {
	dir, err := objects.Local(dir)
	if err != nil {
		return Description{}, err
	}
	path := filepath.Join(dir, DescriptionFile)
	data, err := os.ReadFile(path)
	if err != nil {
		return Description{}, fmt.Errorf("%w; an agent is a directory with a file %s", err, DescriptionFile)
	}
	var d Description
	if err := json.Unmarshal(data, &d); err != nil {
		return Description{}, fmt.Errorf("%s: %w", path, err)
	}
	if err := d.Validate(); err != nil {
		return Description{}, fmt.Errorf("%s: %w", path, err)
	}
	return d, nil
}

// Validate reports all that is wrong.
func (d Description) Validate() error {
	var p configs.Problems
	p.Check(d.Layout == Layout, "layout", "is %d; this program's observations have layout %d", d.Layout, Layout)
	p.Check(d.Goal == WholeGoal || d.Goal == FullGoal, "goal", "is %d, expected %d or %d", d.Goal, WholeGoal, FullGoal)
	p.InRange("horizon", d.Horizon, 0, 1000)
	p.Check(d.Coordinator == "" || d.Executor != "", "coordinator", "it weighs the residuals of an executor, and there is none")
	p.Check(!d.Direct || d.Executor != "", "direct", "the executor is to answer, and there is none")
	return p.Err()
}

// isReference reports whether a layer is a version of an artefact store.
func isReference(name string) bool { return strings.Contains(name, "//") }

// LoadLayer reads a layer that the description of a directory names: a file of the directory, or a
// version of an artefact store, STORE//NAME:ALIAS or STORE//NAME@sha256:…, of a store whose
// directory is seen from that one.
func LoadLayer(dir, name string) (*onnx.Model, error) {
	dir, err := objects.Local(dir)
	if err != nil {
		return nil, err
	}
	if !isReference(name) {
		return onnx.Load(filepath.Join(dir, name))
	}
	store, ref, _ := strings.Cut(name, "//")
	if !filepath.IsAbs(store) {
		store = filepath.Join(dir, store)
	}
	_, v, err := artifact.Find(ref, store)
	if err != nil {
		return nil, err
	}
	return v.Model()
}

// openLayer compiles a layer. Weights beside a file are found.
func openLayer(ctx context.Context, dir, name string, c engine.Compiler, rows int) (*served.Policy, error) {
	if !isReference(name) {
		return served.Open(ctx, filepath.Join(dir, name), c, rows)
	}
	m, err := LoadLayer(dir, name)
	if err != nil {
		return nil, err
	}
	return served.New(ctx, m, c, rows)
}

// Threads is how many negotiations the networks are given at once; rows that are not used are
// zeros.
const Threads = 16

// Networks are the layers of a directory, opened. Agents of any number of worlds share them, which
// use them one after another.
type Networks struct {
	mu                             sync.Mutex
	d                              Description
	manager, executor, coordinator *served.Policy
	threads                        [Threads * ThreadFeatures]float32
	histories                      [Threads * Moves * MoveFeatures]float32
}

// The names of the networks' inputs, beside those of the day.
const (
	InputStatic, InputTemporal, InputRole = "static", "temporal", "role"

	InputThread, InputHistory, InputGoal     = "thread", "history", "goal"
	InputThreads, InputPresent, InputOneself = "threads", "present", "oneself"
)

// OpenNetworks compiles the layers of a directory.
func OpenNetworks(ctx context.Context, dir string, c engine.Compiler) (_ *Networks, err error) {
	if dir, err = objects.Local(dir); err != nil {
		return nil, err
	}
	d, err := ReadDescription(dir)
	if err != nil {
		return nil, err
	}
	n := &Networks{d: d}
	defer func() {
		if err != nil {
			err = errors.Join(err, n.Close())
		}
	}()
	open := func(name, layer string, rows, out int, inputs map[string]int) (*served.Policy, error) {
		if name == "" {
			return nil, nil
		}
		p, err := openLayer(ctx, dir, name, c, rows)
		if err != nil {
			return nil, fmt.Errorf("the %s: %w", layer, err)
		}
		if err := fits(p, out, inputs); err != nil {
			return nil, errors.Join(fmt.Errorf("the %s, %s of %s: %w", layer, name, dir, err), p.Close())
		}
		return p, nil
	}
	if n.manager, err = open(d.Manager, "manager", 1, d.Goal, map[string]int{InputStatic: StaticFeatures, InputTemporal: (d.Horizon + 1) * TemporalFeatures, InputRole: RoleFeatures}); err != nil {
		return nil, err
	}
	thread := map[string]int{InputThread: ThreadFeatures, InputHistory: Moves * MoveFeatures, InputGoal: FullGoal}
	size := Residual
	if d.Direct {
		size = Direct
	}
	if n.executor, err = open(d.Executor, "executor", Threads, size, thread); err != nil {
		return nil, err
	}
	thread[InputThreads], thread[InputPresent], thread[InputOneself] = Threads*ThreadFeatures, Threads, Threads
	if n.coordinator, err = open(d.Coordinator, "coordinator", Threads, 1, thread); err != nil {
		return nil, err
	}
	return n, nil
}

// fits checks what a policy reads and how many numbers its action has.
func fits(p *served.Policy, out int, inputs map[string]int) error {
	for _, name := range p.Inputs() {
		t := p.Input(name)
		if n, ok := inputs[name]; !ok {
			return fmt.Errorf("it reads %q; a layer of its kind is given %s", name, strings.Join(slices.Sorted(maps.Keys(inputs)), ", "))
		} else if t.DType() != tensor.Float32 || t.Len() != n*p.Rows() {
			return fmt.Errorf("its input %q is %v, expected %d float32 for each row", name, t, n)
		}
	}
	if t := p.Output(agents.ActionOutput); t.DType() != tensor.Float32 || t.Len() != out*p.Rows() {
		return fmt.Errorf("its output %q is %v, expected %d float32 for each row", agents.ActionOutput, t, out)
	}
	return nil
}

// Layers returns the layers that there are.
func (n *Networks) Layers() Layers {
	l := Layers{Direct: n.d.Direct}
	if n.manager != nil {
		l.Manager = n.goal
	}
	if n.executor != nil {
		l.Executor = n.residuals
	}
	if n.coordinator != nil {
		l.Coordinator = n.weights
	}
	return l
}

// Close frees the networks.
func (n *Networks) Close() (err error) {
	for _, p := range []*served.Policy{n.manager, n.executor, n.coordinator} {
		if p != nil {
			err = errors.Join(err, p.Close())
		}
	}
	return err
}

// input is the buffer of an input, or scratch where the network does not read it.
func input(p *served.Policy, name string, n int) []float32 {
	if t := p.Input(name); t != nil {
		return t.Float32s()
	}
	return make([]float32, n)
}

func (n *Networks) goal(d *Day) (Goal, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	p := n.manager
	d.Write(input(p, InputStatic, StaticFeatures), input(p, InputTemporal, (n.d.Horizon+1)*TemporalFeatures), input(p, InputRole, RoleFeatures))
	if err := p.Run(); err != nil {
		return Goal{}, err
	}
	return DecodeGoal(p.Output(agents.ActionOutput).Float32s(), d), nil
}

// write writes the threads' own inputs.
func (n *Networks) write(p *served.Policy, threads []Thread) {
	clear(n.threads[:])
	clear(n.histories[:])
	const history = Moves * MoveFeatures
	for i := range threads {
		threads[i].Write(n.threads[i*ThreadFeatures:(i+1)*ThreadFeatures], n.histories[i*history:(i+1)*history])
	}
	if t := p.Input(InputThread); t != nil {
		copy(t.Float32s(), n.threads[:])
	}
	if t := p.Input(InputHistory); t != nil {
		copy(t.Float32s(), n.histories[:])
	}
	if t := p.Input(InputGoal); t != nil {
		for i := range threads {
			WriteGoal(threads[i].Goal, threads[i].Lines, t.Float32s()[i*FullGoal:(i+1)*FullGoal])
		}
	}
}

// WriteGoal writes a goal for the layers below the manager, [FullGoal] numbers: of each bucket
// [Q_buy, P_buy, Q_sell, P_sell], quantities relative to the lines.
func WriteGoal(g *Goal, lines int, to []float32) {
	for i := range Buckets {
		for side := range 2 {
			t := g.Targets[side][i]
			to[4*i+2*side], to[4*i+2*side+1] = float32(float64(t.Quantity)/float64(lines)), float32(t.Price)
		}
	}
}

func (n *Networks) residuals(threads []Thread) error {
	if len(threads) > Threads {
		return fmt.Errorf("%d negotiations at once, at most %d are possible", len(threads), Threads)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.write(n.executor, threads)
	if err := n.executor.Run(); err != nil {
		return err
	}
	out := n.executor.Output(agents.ActionOutput).Float32s()
	size := len(out) / Threads
	for i := range threads {
		copy(threads[i].Residual[:], out[i*size:(i+1)*size])
	}
	return nil
}

// weights are 1 more than what the network says, which is cut to −1 … 1.
func (n *Networks) weights(threads []Thread) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	p := n.coordinator
	n.write(p, threads)
	for i := range threads {
		if t := p.Input(InputThreads); t != nil {
			copy(t.Float32s()[i*len(n.threads):], n.threads[:])
		}
		if t := p.Input(InputPresent); t != nil {
			row := t.Float32s()[i*Threads : (i+1)*Threads]
			clear(row)
			for j := range threads {
				row[j] = 1
			}
		}
		if t := p.Input(InputOneself); t != nil {
			row := t.Float32s()[i*Threads : (i+1)*Threads]
			clear(row)
			row[i] = 1
		}
	}
	if err := p.Run(); err != nil {
		return err
	}
	for i, x := range p.Output(agents.ActionOutput).Float32s()[:len(threads)] {
		threads[i].Weight = Weight(x)
	}
	return nil
}

// Weight is the weight that a coordinator's number means.
func Weight(x float32) float32 { return float32(1 + Cut(x)) }

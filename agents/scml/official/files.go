package official

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"strings"

	"github.com/onnxrl/onnxrl/agents/scml"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
)

//go:embed python/*.py python/README.md
var templates embed.FS

// The names of the graphs of an exported package.
const (
	DayFile   = "day.onnx"
	RoundFile = "round.onnx"
)

// onnxruntime is the version that exported packages are tested with.
const onnxruntime = "1.32.0"

// description is the agent.json of an exported package.
type description struct {
	Layout  int    `json:"layout"`
	Goal    int    `json:"goal"`
	Horizon int    `json:"horizon"`
	Direct  bool   `json:"direct,omitempty"`
	Day     string `json:"day,omitempty"`
	Round   string `json:"round,omitempty"`
}

// Exported is what Files has made.
type Exported struct {
	// Files are the package's, by name.
	Files map[string][]byte
	// Layers are those that are networks.
	Layers []string
	// Compared is how often the graph of a round was run beside those of its layers, 0 without, and
	// Difference the largest difference.
	Compared   int
	Difference float64
}

// Files makes a Python package of an agent's directory. name is the package's, and so an
// identifier. c runs the networks, to prove that they are what the agent needs and that the graph
// of a round computes what its layers do.
func Files(ctx context.Context, dir, name string, c engine.Compiler) (*Exported, error) {
	if !identifier.MatchString(name) || keywords[name] {
		return nil, fmt.Errorf("%q cannot be imported by Python: a package is called by letters, digits and underscores, with no digit in front, and by no word of the language", name)
	}
	d, err := scml.ReadDescription(dir)
	if err != nil {
		return nil, err
	}
	n, err := scml.OpenNetworks(ctx, dir, c)
	if err != nil {
		return nil, err
	}
	if err := n.Close(); err != nil {
		return nil, err
	}
	e := &Exported{Files: map[string][]byte{}}
	own := description{Layout: d.Layout, Goal: d.Goal, Horizon: d.Horizon, Direct: d.Direct}
	if d.Manager != "" {
		e.Layers, own.Day = append(e.Layers, "manager"), DayFile
		m, err := scml.LoadLayer(dir, d.Manager)
		if err == nil {
			err = e.add(DayFile, m)
		}
		if err != nil {
			return nil, fmt.Errorf("the manager: %w", err)
		}
	}
	if d.Executor != "" {
		own.Round = RoundFile
		if err := e.round(ctx, dir, &d, c); err != nil {
			return nil, err
		}
	}
	if e.Files[scml.DescriptionFile], err = json.MarshalIndent(own, "", "  "); err != nil {
		return nil, err
	}
	modules, err := templates.ReadDir("python")
	if err != nil {
		return nil, err
	}
	for _, m := range modules {
		if e.Files[m.Name()], err = templates.ReadFile(path.Join("python", m.Name())); err != nil {
			return nil, err
		}
	}
	layers := "It has no networks: a baseline decides, inside a shield that agrees to nothing the factory cannot keep."
	if len(e.Layers) > 0 {
		layers = "Its networks, " + strings.Join(e.Layers, ", ") + ", change what a baseline decides, inside a shield that agrees to nothing the factory cannot keep."
	}
	const readme = "README.md"
	e.Files[readme] = []byte(strings.NewReplacer("PACKAGE", name, "LAYERS", layers, "ONNXRUNTIME", onnxruntime).Replace(string(e.Files[readme])))
	return e, nil
}

var (
	identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	// keywords are Python's that identifiers may not be, and that file names may.
	keywords = func() map[string]bool {
		list := map[string]bool{}
		for _, word := range strings.Fields("False None True and as assert async await break class continue def del elif else except finally for from global if import in is lambda nonlocal not or pass raise return try while with yield") {
			list[word] = true
		}
		return list
	}()
)

// round adds the graph of a round.
func (e *Exported) round(ctx context.Context, dir string, d *scml.Description, c engine.Compiler) error {
	size := scml.Residual
	if d.Direct {
		size = scml.Direct
	}
	first, err := scml.LoadLayer(dir, d.Executor)
	if err != nil {
		return fmt.Errorf("the executor: %w", err)
	}
	e.Layers = append(e.Layers, "executor")
	var second *onnx.Model
	// Answers in place of residuals are not weighed.
	if d.Coordinator != "" && !d.Direct {
		e.Layers = append(e.Layers, "coordinator")
		if second, err = scml.LoadLayer(dir, d.Coordinator); err != nil {
			return fmt.Errorf("the coordinator: %w", err)
		}
	}
	m, err := Round(first, second, size)
	if err != nil {
		return err
	}
	if e.Difference, err = compare(ctx, c, m, first, second, size); err != nil {
		return err
	}
	e.Compared = compared
	return e.add(RoundFile, m)
}

// add adds a graph.
func (e *Exported) add(name string, m *onnx.Model) (err error) {
	if e.Files[name], err = onnx.Marshal(m); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

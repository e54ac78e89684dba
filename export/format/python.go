package format

import (
	"archive/zip"
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"strings"

	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/artifact"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
	"github.com/onnxrl/onnxrl/runtime/tensor/npy"
)

var (
	//go:embed python/agent.py
	agentPy []byte
	//go:embed python/example.py
	examplePy []byte
)

// Names of recorded arrays begin with the side of the model that they are on.
const (
	recordedInput  = "input."
	recordedOutput = "output."
)

// writePython writes OUT with model.onnx, agent.py, example.py, recorded.npz and README.md.
func writePython(_ context.Context, out string, p *Package) (list []string, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("export %s: %w", out, err)
		}
	}()
	if err := p.check(); err != nil {
		return nil, err
	}
	rows, err := p.rows()
	if err != nil {
		return nil, err
	}
	model, err := onnx.Marshal(p.Model)
	if err != nil {
		return nil, err
	}
	recorded, err := p.recorded()
	if err != nil {
		return nil, err
	}
	readme, err := p.readme(rows)
	if err != nil {
		return nil, err
	}
	return WriteFolder(out, map[string][]byte{"model.onnx": model, "agent.py": agentPy, "example.py": examplePy, "recorded.npz": recorded, "README.md": readme})
}

// recorded is the rows as numpy.savez would keep them, inputs and outputs in the model's order and
// without dates.
func (p *Package) recorded() ([]byte, error) {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, side := range []struct {
		prefix string
		ports  []*onnx.ValueInfo
		values map[string]*tensor.Tensor
	}{{recordedInput, p.Model.Graph.Input, p.Inputs}, {recordedOutput, p.Model.Graph.Output, p.Outputs}} {
		for _, v := range side.ports {
			array, err := npy.Encode(side.values[v.Name])
			if err != nil {
				return nil, fmt.Errorf("%q: %w", v.Name, err)
			}
			w, err := z.CreateHeader(&zip.FileHeader{Name: side.prefix + v.Name + ".npy", Method: zip.Store})
			if err != nil {
				return nil, err
			}
			if _, err := w.Write(array); err != nil {
				return nil, err
			}
		}
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// readme explains the folder and lists inputs and outputs.
func (p *Package) readme(rows int) ([]byte, error) {
	states, err := models.States(p.Model)
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n", p.Name)
	if d := p.Manifest.Description; d != "" {
		fmt.Fprintf(&b, "%s.\n\n", strings.TrimSuffix(d, "."))
	}
	b.WriteString("    pip install numpy onnxruntime\n    python example.py\n\n")
	fmt.Fprintf(&b, "`example.py` runs `model.onnx` on %d recorded observations (`recorded.npz`) and compares what it gives with what was recorded; it ends with status 1 where an action differs. `agent.py` has a class with the `predict` of Stable-Baselines3:\n\n", rows)
	b.WriteString("    from agent import Agent\n    action, state = Agent().predict(observation, state, episode_start, deterministic=True, action_masks=mask)\n\nWith `deterministic=False` it draws actions as the policy did in training.\n\n| | name | type | meaning |\n|---|---|---|---|\n")
	in, out := artifact.PortsOf(p.Model)
	describe := func(side string, ports, described []artifact.Port) {
		for _, port := range ports {
			about := ""
			for _, d := range described {
				if d.Name == port.Name {
					about = d.Description
				}
			}
			for _, s := range states {
				if s.Input == port.Name || s.Output == port.Name {
					about = fmt.Sprintf("state: `%s` of one step is `%s` of the next", s.Output, s.Input)
				}
			}
			fmt.Fprintf(&b, "| %s | `%s` | %s%v | %s |\n", side, port.Name, port.DType, port.Shape, about)
		}
	}
	describe("input", in, p.Manifest.Inputs)
	describe("output", out, p.Manifest.Outputs)
	if len(p.Model.MetadataProps) > 0 {
		b.WriteString("\nWhere the model comes from:\n\n")
		for _, kv := range p.Model.MetadataProps {
			fmt.Fprintf(&b, "- %s: %s\n", kv.Key, kv.Value)
		}
	}
	return []byte(b.String()), nil
}

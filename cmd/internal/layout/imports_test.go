package layout

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
)

var floor = []string{"agents", "envs", "models", "export", "configs", "runtime"}

// modulePrefix begins the import paths of the module.
const modulePrefix = "github.com/onnxrl/onnxrl/"

// rule says which packages of the module a package may import: those below one of the prefixes in
// may. The first rule whose prefix matches a package decides.
type rule struct {
	of  string
	may []string
}

// The direction of imports: configs and runtime carry envs and models, these carry agents, and cmd
// wires everything. Within runtime, tensors and messages carry inference, differentiation and
// engines; engines never import each other or differentiation.
var rules = []rule{
	{"runtime/tensor", nil},
	{"runtime/rng", nil},
	{"runtime/filehash", nil},
	{"runtime/buildinfo", nil},
	{"runtime/secretfile", nil},
	{"runtime/flightrpc/flighturl", nil},
	{"runtime/flightrpc", []string{"runtime/buildinfo", "runtime/secretfile"}},
	{"runtime/glob", nil},
	{"runtime/longtest", nil},
	{"runtime/sorted", nil},
	{"runtime/columnar", nil},
	{"runtime/columnar/parquetfile", []string{"runtime/columnar"}},
	{"runtime/journal", []string{"runtime/atomicfile"}},
	{"runtime/atomicfile", nil},
	{"runtime/objects/s3", []string{"runtime/objects", "runtime/objects/web"}},
	{"runtime/objects/web", []string{"runtime/objects"}},
	{"runtime/objects", []string{"runtime/atomicfile"}},
	{"runtime/printable", nil},
	{"runtime/progress", []string{"runtime/printable"}},
	{"runtime/metrics", []string{"runtime/atomicfile"}},
	{"runtime/spans", nil},
	{"runtime/pool", nil},
	{"runtime/processes", nil},
	{"runtime/optim", []string{"runtime/pool", "runtime/glob", "runtime/rng"}},
	{"runtime/onnx/shape", []string{"runtime/onnx", "runtime/tensor"}},
	{"runtime/onnx", []string{"runtime/onnx/schema", "runtime/tensor", "runtime/atomicfile", "runtime/objects"}},
	{"runtime/internal/hostile", []string{"runtime/onnx", "runtime/tensor"}},
	{"runtime/internal/nodecases", []string{"runtime/engine", "runtime/onnx", "runtime/tensor"}},
	{"runtime/engine/testengines", []string{"runtime/engine", "runtime/ort", "runtime/portable"}},
	{"runtime/engine", []string{"runtime/engine", "runtime/onnx", "runtime/tensor", "runtime/rng"}},
	{"runtime/ort", []string{"runtime/ort", "runtime/engine", "runtime/onnx", "runtime/tensor", "runtime/atomicfile", "runtime/filehash", "runtime/processes"}},
	{"runtime/portable", []string{"runtime/portable", "runtime/engine", "runtime/onnx", "runtime/tensor"}},
	{"runtime/autodiff", []string{"runtime/glob", "runtime/autodiff", "runtime/gradcheck", "runtime/engine", "runtime/onnx", "runtime/tensor", "runtime/rng"}},
	{"runtime/gradcheck", []string{"runtime/autodiff", "runtime/engine", "runtime/onnx", "runtime/tensor", "runtime/rng"}},
	{"configs", nil},
	{"envs", []string{"envs", "configs", "runtime"}},
	{"models", []string{"models", "configs", "runtime"}},
	{"export/pages/theme", nil},
	{"export/pages", []string{"export/pages/theme"}},
	{"export", []string{"export", "models", "configs", "runtime"}},
	// The packages under the commands join agents with what leaves the program: judgement, proof
	// and reports.
	{"agents/experiment", floor},
	{"agents/run", floor},
	{"agents/tune", floor},
	{"agents/evolve", floor},
	{"agents/population", floor},
	{"agents/league", floor},
	{"agents/pretrain", floor},
	{"agents/study", floor},
	{"agents/ablate", floor},
	{"agents/walkforward", floor},
	{"agents/assess", floor},
	{"agents/publish", floor},
	{"agents/trader", floor},
	{"agents/livetrade/board", floor},
	{"agents", []string{"agents", "envs", "models", "configs", "runtime"}},
	{"cmd", []string{""}},
}

// tenants plug into the harness, which knows nothing of them: a market with live trading and
// walk-forward, and SCML. What is special to their environments is in a judge (agents/experiment), a
// domain (agents/publish) and the other interfaces that their factories implement.
var tenants = []string{"envs/market", "envs/scml", "agents/scml", "agents/livetrade", "agents/walkforward", "agents/assess", "agents/trader"}

// TestTenantsAreGuestsOfNobody: nothing of the harness imports a tenant. The list of kinds and the
// commands name all.
func TestTenantsAreGuestsOfNobody(t *testing.T) {
	isTenant := func(pkg string) bool {
		return slices.ContainsFunc(tenants, func(x string) bool { return below(pkg, x) })
	}
	used := map[string]bool{}
	for _, p := range list(t) {
		pkg := strings.TrimPrefix(p["ImportPath"].(string), modulePrefix)
		lists := below(pkg, "cmd") || pkg == "agents/experiment/kinds"
		imports, _ := p["Imports"].([]any)
		for _, v := range imports {
			dep, ok := strings.CutPrefix(v.(string), modulePrefix)
			if !ok || !isTenant(dep) || isTenant(pkg) {
				continue
			}
			if used[dep] = true; !lists {
				t.Errorf("%s imports the tenant %s, which belongs behind an interface that its environment's factory or judge implements", pkg, dep)
			}
		}
	}
	if len(used) < len(tenants) {
		t.Errorf("the commands and the list of kinds import %d packages of tenants only", len(used))
	}
}

// engines must not appear below the seam: only programs, and tests, choose one.
var engines = []string{"runtime/ort", "runtime/portable"}

// testEngines gives tests their engines.
const testEngines = "runtime/engine/testengines"

// forTests are packages that only tests may import, and each other.
var forTests = []string{testEngines, "runtime/longtest", "agents/agenttest", "agents/offline/offlinetest", "cmd/internal/apptest", "envs/market/broker/brokertest", "envs/market/stream/kafkatest", "agents/worker/temporal/temporaltest", "agents/worker/workertest", "agents/replay/flight/flighttest", "runtime/objects/s3/s3test"}

// list has the packages of the module.
func list(t *testing.T) []map[string]any {
	t.Helper()
	pkgs, err := listed()
	if err != nil {
		t.Fatal(err)
	}
	return pkgs
}

var listed = sync.OnceValues(func() (pkgs []map[string]any, err error) {
	out, err := exec.Command("go", "list", "-json=ImportPath,Doc,Imports,GoFiles,CgoFiles,Dir", modulePrefix+"...").Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	dec := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p map[string]any
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return pkgs, nil
		} else if err != nil {
			return nil, err
		}
		pkgs = append(pkgs, p)
	}
})

func below(pkg, prefix string) bool {
	return prefix == "" || pkg == prefix || strings.HasPrefix(pkg, prefix+"/")
}

func TestImportsFollowTheDesign(t *testing.T) {
	edges := 0
	for _, p := range list(t) {
		pkg := strings.TrimPrefix(p["ImportPath"].(string), modulePrefix)
		i := slices.IndexFunc(rules, func(r rule) bool { return below(pkg, r.of) })
		if i < 0 {
			t.Errorf("%s: no rule covers this package", pkg)
			continue
		}
		imports, _ := p["Imports"].([]any)
		for _, v := range imports {
			path := v.(string)
			if path == "github.com/yalue/onnxruntime_go" && !below(pkg, "runtime/ort") {
				t.Errorf("%s imports onnxruntime_go; only runtime/ort may", pkg)
			}
			if path == "github.com/owulveryck/onnx-go" && !below(pkg, "runtime/portable") {
				t.Errorf("%s imports onnx-go; only runtime/portable may", pkg)
			}
			dep, ok := strings.CutPrefix(path, modulePrefix)
			if !ok {
				continue
			}
			edges++
			for _, e := range engines {
				if below(dep, e) && !below(pkg, e) && !below(pkg, "cmd") && !slices.Contains(forTests, pkg) {
					t.Errorf("%s imports the engine %s; engines are chosen by programs", pkg, dep)
				}
			}
			if slices.Contains(forTests, dep) && !slices.Contains(forTests, pkg) {
				t.Errorf("%s imports %s; only tests may", pkg, dep)
			}
			if below(dep, rules[i].of) {
				continue
			}
			if !slices.ContainsFunc(rules[i].may, func(m string) bool { return below(dep, m) }) {
				t.Errorf("%s imports %s, which its rule (%s may import %v) does not allow", pkg, dep, rules[i].of, rules[i].may)
			}
		}
	}
	if edges < 50 {
		t.Errorf("only %d imports within the module were checked", edges)
	}
}

func TestEveryPackageSaysWhatItIs(t *testing.T) {
	pkgs := list(t)
	for _, p := range pkgs {
		if doc, _ := p["Doc"].(string); doc == "" && p["GoFiles"] != nil {
			t.Errorf("%s has no package comment", p["ImportPath"])
		}
	}
	if len(pkgs) < 20 {
		t.Errorf("%d packages", len(pkgs))
	}
}

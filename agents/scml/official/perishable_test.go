package official

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents/scml"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// inWorld lets an exported agent begin in a world that says whether it is perishable, with stand-ins
// for the league's packages: what is looked at before anything else.
const inWorld = `
import sys, types
class Sync: pass
for name, items in {"negmas": ["ResponseType"], "negmas.sao": ["SAOResponse"], "scml": [], "scml.std": ["StdSyncAgent"]}.items():
    m = types.ModuleType(name)
    for i in items: setattr(m, i, Sync)
    sys.modules[name] = m
from lita.agent import LitaAgentHRL
class World:
    is_perishable = PERISHABLE
    def __getattr__(self, name): raise KeyError("it goes on: " + name)
a = LitaAgentHRL()
a.awi = World()
a.init()
`

// TestPerishableInPython: an exported agent refuses a perishable world by name when it is seated,
// whether the interface has that as a value or as a method.
func TestPerishableInPython(t *testing.T) {
	path := python(t, "a perishable world")
	if path == "" {
		return
	}
	dir := directory(t, scml.Description{Goal: scml.FullGoal, Horizon: scml.Horizon}, false)
	out := export(t, dir, "lita", portable.New())
	for value, want := range sorted.All(longtest.Few(t, map[string]string{"True": "the world is perishable", "lambda self: True": "the world is perishable", "False": "it goes on: n_steps"}, 2)) {
		cmd := exec.Command(path, "-c", strings.Replace(inWorld, "PERISHABLE", value, 1))
		cmd.Dir, cmd.Env = filepath.Dir(out), append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1")
		text, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(text), want) {
			t.Errorf("is_perishable = %s: %v\n%s", value, err, text)
		}
	}
}

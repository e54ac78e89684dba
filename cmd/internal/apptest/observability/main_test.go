package observability

import (
	"flag"
	"testing"

	"github.com/onnxrl/onnxrl/agents/experiment/kinds"
	"github.com/onnxrl/onnxrl/cmd/app"
	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
)

// update writes what is generated: dashboards and the table of the documentation.
var update = flag.Bool("update", false, "write the dashboards and the table of docs/observability.md")

const (
	root    = "../../../.."
	watched = root + "/configs/observability"
)

func TestMain(m *testing.M) {
	apptest.Main(m, func() { app.Main(kinds.All(), app.Name("onnxrl")) })
}

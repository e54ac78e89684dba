package scml

import (
	"testing"

	"github.com/onnxrl/onnxrl/agents/experiment/kinds"
	"github.com/onnxrl/onnxrl/cmd/app"
	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
)

func TestMain(m *testing.M) {
	apptest.Main(m, func() { app.Main(kinds.All(), app.Name("onnxrl")) })
}

package snippets

import (
	"context"
	"io"
	"testing"

	"github.com/onnxrl/onnxrl/agents/experiment/kinds"
	"github.com/onnxrl/onnxrl/cmd/app"
	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
)

func TestMain(m *testing.M) {
	apptest.Main(m, apptest.App{
		Main: func() { app.Main(kinds.All(), app.Name("onnxrl")) },
		Execute: func(ctx context.Context, args []string, in io.Reader, out, errw io.Writer) int {
			return app.Execute(ctx, kinds.All(), args, in, out, errw, app.Name("onnxrl"))
		},
	})
}

// Command onnxrl-bench measures onnxrl itself: what everything stands on (core), the server under
// good and hostile traffic (serve), actors in slow environments (actors), and how many workers
// there can be (scale). What users compare with is in onnxrl bench.
package main

import (
	"os"

	"github.com/onnxrl/onnxrl/agents/experiment/kinds"
	"github.com/onnxrl/onnxrl/cmd/app"
)

func main() {
	// The training that the server is measured beside is a process of its own.
	if len(os.Args) > 1 && os.Args[1] == "train" {
		app.Main(kinds.All(), app.Name("onnxrl"))
	}
	// So are the actors of one.
	if len(os.Args) > 1 && os.Args[1] == app.ActorName {
		app.Main(waitingKinds(), app.Name("onnxrl"))
	}
	app.Run("onnxrl-bench", "Measure the speed and the memory of onnxrl against stated targets", coreCommand, serveCommand, actorsCommand, scaleCommand)
}

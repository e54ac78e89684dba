package replay_test

import (
	"github.com/onnxrl/onnxrl/agents/replay"
	"github.com/onnxrl/onnxrl/agents/replay/arrowrows"
)

func init() { replay.RowFiles = arrowrows.File{} }

package flight

import "github.com/onnxrl/onnxrl/runtime/flightrpc"

// Limits of what a client can send; more is an error that says so. docs/limits.md lists it. The number of
// transitions of a table, and of items of a queue, is its capacity, and of tables there are those of the
// server.
const (
	// MaxJSON is the number of bytes of a descriptor, a ticket, metadata or the body of an action,
	// but for priorities, of which there are at most MaxKeys at once.
	MaxJSON = 1 << 20
	MaxKeys = 1 << 20
	// MaxSchema is the number of bytes of a schema's message, MaxColumns the number of its columns,
	// and MaxRow the number of bytes of a row of all of them.
	MaxSchema  = 1 << 20
	MaxColumns = 1024
	MaxRow     = 16 << 20
	// MaxName is the number of bytes of a writer's name, MaxEnvs that of its environments, and
	// MaxWriters the number of names that a table or queue knows.
	MaxName    = 256
	MaxEnvs    = 1 << 16
	MaxWriters = 1 << 18
	// MaxSteps is the number of rewards of a return.
	MaxSteps = 1 << 16
	// MaxItems is the number of items that a request takes out of a queue, or names.
	MaxItems = 1 << 16
	// MaxSample is the number of bytes of a sample.
	MaxSample = flightrpc.MaxMessage
)

package flight

import "github.com/onnxrl/onnxrl/runtime/flightrpc"

// What a client can send at most; more is an error that says so. The number of transitions of a
// table, and of items of a queue, is its capacity, and of tables there are those of the server.
const (
	// maxJSON is the number of bytes of a descriptor, a ticket, metadata or the body of an action,
	// but for priorities, of which there are at most maxKeys at once.
	maxJSON = 1 << 20
	maxKeys = 1 << 20
	// maxSchema is the number of bytes of a schema's message, maxColumns the number of its columns,
	// and maxRow the number of bytes of a row of all of them.
	maxSchema  = 1 << 20
	maxColumns = 1024
	maxRow     = 16 << 20
	// maxName is the number of bytes of a writer's name, maxEnvs that of its environments, and
	// maxWriters the number of names that a table or queue knows.
	maxName    = 256
	maxEnvs    = 1 << 16
	maxWriters = 1 << 18
	// maxSteps is the number of rewards of a return.
	maxSteps = 1 << 16
	// maxItems is the number of items that a request takes out of a queue, or names.
	maxItems = 1 << 16
	// maxSample is the number of bytes of a sample.
	maxSample = flightrpc.MaxMessage
)

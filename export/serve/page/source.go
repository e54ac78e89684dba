package page

// Source is what the page shows. Its methods are called by many requests at once.
type Source interface {
	// Snapshot is the state of the whole server.
	Snapshot() Snapshot
	// Describe says what a version takes and gives; an error says why that cannot be told.
	Describe(model, version string) (Description, error)
}

// Snapshot is the state of the server at one moment. The JSON keys are what the page reads.
type Snapshot struct {
	Server  string `json:"server"`
	Version string `json:"version"`
	// Engine is what runs the models.
	Engine string `json:"engine"`
	// UptimeSeconds dates the snapshot: rates are differences divided by its differences.
	UptimeSeconds float64 `json:"uptime_seconds"`
	// BoundsUS are the upper ends of the latency buckets in microseconds, ascending.
	BoundsUS []float64 `json:"bounds_us"`
	Models   []Model   `json:"models"`
}

// Model is one name with its versions.
type Model struct {
	Name     string    `json:"name"`
	Versions []Version `json:"versions"`
}

// Version is one version of a model.
type Version struct {
	Version string   `json:"version"`
	Aliases []string `json:"aliases"`
	// State is READY, LOADING, UNLOADING or UNAVAILABLE, and Reason why it is not ready.
	State  string `json:"state"`
	Reason string `json:"reason,omitempty"`
	// Default says that requests without a version go here.
	Default bool  `json:"default"`
	Stats   Stats `json:"stats"`
}

// Stats are counters since the version became ready.
type Stats struct {
	// Requests counts answers, Failures those among them that were errors.
	Requests uint64 `json:"requests"`
	Failures uint64 `json:"failures"`
	// Rows counts rows that were computed, Executions runs of the model; their ratio is the mean
	// batch.
	Rows       uint64 `json:"rows"`
	Executions uint64 `json:"executions"`
	// Pending is how many requests wait or run now.
	Pending int `json:"pending"`
	// Latency counts answers by the time they took in the server: one bucket for each of BoundsUS,
	// and one for what took longer.
	Latency []uint64 `json:"latency"`
}

// Description says what a version computes.
type Description struct {
	Description string `json:"description,omitempty"`
	Inputs      []Port `json:"inputs"`
	Outputs     []Port `json:"outputs"`
	// Sample holds one recorded input for each port by name, nil where there is none.
	Sample map[string]Tensor `json:"sample,omitempty"`
}

// Port is an input or output. Datatype is the protocol's, such as FP32; Shape has -1 for free
// extents, which Axes name, "" where they have no name.
type Port struct {
	Name        string   `json:"name"`
	Datatype    string   `json:"datatype"`
	Shape       []int    `json:"shape"`
	Axes        []string `json:"axes,omitempty"`
	Description string   `json:"description,omitempty"`
	// Low and High bound the values, one for all elements or one for each of a row; nil where no
	// finite bound is known. An infinite bound among finite ones is null.
	Low  []*float64 `json:"low,omitempty"`
	High []*float64 `json:"high,omitempty"`
}

// Tensor is a tensor in JSON: Data is a flat list of numbers or truth values, and of the words
// "NaN", "Infinity" and "-Infinity".
type Tensor struct {
	Shape []int `json:"shape"`
	Data  any   `json:"data"`
}

package decisionlog

import (
	"slices"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// ObsPrefix begins the names of the columns of inputs.
const ObsPrefix = "obs."

// The names of columns that other files share: those of rewards have the first two and "reward".
const (
	RequestColumn = "request"
	RowColumn     = "row"
	actionColumn  = "action"
)

// Column is what a file has of an input, or of the action.
type Column struct {
	// Name is that of the input.
	Name  string
	DType tensor.DType
	// N is the number of elements of a row, and List says that a row is a list of them.
	N    int
	List bool
}

// Size is the number of bytes of a row.
func (c Column) Size() int { return c.DType.Size() * c.N }

// Layout is what the rows of a file have: the inputs in their order, and the action.
type Layout struct {
	Obs    []Column
	Action Column
}

// Equal compares layouts.
func (l *Layout) Equal(o *Layout) bool { return slices.Equal(l.Obs, o.Obs) && l.Action == o.Action }

// Row is a decision.
type Row struct {
	// Time is in microseconds since 1970, UTC.
	Time            int64
	Request         string
	Row             int32
	Version, Digest string
	Sequence        string
	Start, End      bool
	// Data has the bytes of the inputs, one after the other, and then those of the action.
	Data []byte
	// LogProb is NaN where it is not known, and Reward where nothing was said of it.
	LogProb               float64
	Reward                float64
	Terminated, Truncated bool
}

// types are those of elements. Truth values are bytes.
var types = map[tensor.DType]arrow.DataType{
	tensor.Float32: arrow.PrimitiveTypes.Float32, tensor.Float64: arrow.PrimitiveTypes.Float64, tensor.Bool: arrow.PrimitiveTypes.Uint8,
	tensor.Uint8: arrow.PrimitiveTypes.Uint8, tensor.Int64: arrow.PrimitiveTypes.Int64, tensor.Int32: arrow.PrimitiveTypes.Int32,
}

// Supported reports whether a log can have elements of a type.
func Supported(d tensor.DType) bool { return types[d] != nil }

// head and tail are the columns before and after those of a layout.
var (
	head = []arrow.Field{
		{Name: "time", Type: &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}}, {Name: RequestColumn, Type: arrow.BinaryTypes.String}, {Name: RowColumn, Type: arrow.PrimitiveTypes.Int32},
		{Name: "version", Type: arrow.BinaryTypes.String}, {Name: "digest", Type: arrow.BinaryTypes.String}, {Name: "sequence", Type: arrow.BinaryTypes.String}, {Name: "start", Type: arrow.PrimitiveTypes.Uint8}, {Name: "end", Type: arrow.PrimitiveTypes.Uint8},
	}
	tail = []arrow.Field{
		{Name: "log_prob", Type: arrow.PrimitiveTypes.Float64}, {Name: "before.reward", Type: arrow.PrimitiveTypes.Float64}, {Name: "before.terminated", Type: arrow.PrimitiveTypes.Uint8}, {Name: "before.truncated", Type: arrow.PrimitiveTypes.Uint8},
	}
)

// data lists the columns of inputs and action.
func (l *Layout) data() []Column { return append(slices.Clone(l.Obs), l.Action) }

// schema is that of the files.
func (l *Layout) schema() *arrow.Schema {
	list := slices.Clone(head)
	for i, c := range l.data() {
		t, name := types[c.DType], ObsPrefix+c.Name
		if c.List {
			t = arrow.ListOfNonNullable(t)
		}
		if i == len(l.Obs) {
			name = actionColumn
		}
		list = append(list, arrow.Field{Name: name, Type: t})
	}
	return arrow.NewSchema(append(list, tail...), nil)
}

package oip

import (
	"slices"

	"github.com/onnxrl/onnxrl/export/serve"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// SequenceBatching says what a model keeps of a sequence and what it receives of it. It has one
// of Direct and Oldest.
type SequenceBatching struct {
	MaxSequenceIdleMicroseconds int64          `json:"max_sequence_idle_microseconds"`
	ControlInput                []ControlInput `json:"control_input"`
	State                       []State        `json:"state"`
	Direct                      *struct{}      `json:"direct,omitempty"`
	Oldest                      *Oldest        `json:"oldest,omitempty"`
}

// Oldest bounds the sequences.
type Oldest struct {
	MaxCandidateSequences int `json:"max_candidate_sequences"`
}

// ControlInput is an input that the server fills.
type ControlInput struct {
	Name    string    `json:"name"`
	Control []Control `json:"control"`
}

// Control says with what. It has one of the lists for false and true, or the type of an identifier.
type Control struct {
	Kind           string    `json:"kind"`
	Int32FalseTrue []int32   `json:"int32_false_true,omitempty"`
	Fp32FalseTrue  []float32 `json:"fp32_false_true,omitempty"`
	BoolFalseTrue  []bool    `json:"bool_false_true,omitempty"`
	DataType       string    `json:"data_type,omitempty"`
}

// State is a pair of ports that carries state; Dims leave the batch out.
type State struct {
	InputName    string         `json:"input_name"`
	OutputName   string         `json:"output_name"`
	DataType     string         `json:"data_type"`
	Dims         []int          `json:"dims"`
	InitialState []InitialState `json:"initial_state,omitempty"`
}

// InitialState is zeros or a file. Other values, which the metadata of a model may give, have no
// form here.
type InitialState struct {
	Name     string `json:"name"`
	DataType string `json:"data_type"`
	Dims     []int  `json:"dims"`
	ZeroData bool   `json:"zero_data,omitempty"`
	DataFile string `json:"data_file,omitempty"`
}

func newSequenceBatching(m serve.Metadata, c serve.Config) *SequenceBatching {
	idle, most := c.Sequences.Idle, c.Sequences.Max
	if idle == 0 {
		idle = serve.DefaultIdle
	}
	if most == 0 {
		most = serve.DefaultMaxSequences
	}
	out := &SequenceBatching{MaxSequenceIdleMicroseconds: idle.Microseconds(), ControlInput: []ControlInput{}, State: []State{}}
	if c.Sequences.Direct {
		out.Direct = &struct{}{}
	} else {
		out.Oldest = &Oldest{most}
	}
	for _, in := range c.Controls {
		k := Control{Kind: in.Kind.String()}
		switch {
		case in.Kind == serve.SequenceID:
			k.DataType = ConfigType(Datatype(in.DType))
		case in.DType == tensor.Int32:
			k.Int32FalseTrue = []int32{int32(in.False), int32(in.True)}
		case in.DType == tensor.Float32:
			k.Fp32FalseTrue = []float32{float32(in.False), float32(in.True)}
		case in.DType == tensor.Bool:
			k.BoolFalseTrue = []bool{in.False != 0, in.True != 0}
		}
		out.ControlInput = append(out.ControlInput, ControlInput{in.Input, []Control{k}})
	}
	for _, s := range c.State {
		dtype := ""
		if i := slices.IndexFunc(m.Inputs, func(p serve.Port) bool { return p.Name == s.Input }); i >= 0 {
			dtype = ConfigType(Datatype(m.Inputs[i].DType))
		}
		state := State{InputName: s.Input, OutputName: s.Output, DataType: dtype, Dims: append([]int{}, s.Shape...)}
		zero := !slices.ContainsFunc(s.Initial, func(v float64) bool { return v != 0 })
		if zero || s.File != "" {
			state.InitialState = []InitialState{{Name: s.Input, DataType: dtype, Dims: state.Dims, ZeroData: s.File == "", DataFile: s.File}}
		}
		out.State = append(out.State, state)
	}
	return out
}

package serve

import "github.com/onnxrl/onnxrl/runtime/tensor"

// Limits of a request, whichever way it comes. docs/limits.md lists it beside the limits of the
// protocols.
const (
	// MaxName is the most bytes of a request's identifier, of that of a sequence, and of the names
	// of models, versions, inputs and outputs: they are kept, logged and sent back.
	MaxName = 4096
	// MaxPorts is the most inputs, and the most outputs, of a request.
	MaxPorts = 4096
	// MaxRank is the most extents of a tensor.
	MaxRank = 64
	// MaxStrings is the most elements of a tensor of strings, each of which takes 16 bytes beside
	// its text.
	MaxStrings = 1 << 20
)

// CheckName refuses a text that is longer than MaxName. It does not repeat it.
func CheckName(what, text string) error {
	if len(text) > MaxName {
		return invalid("%s has %d bytes, expected at most %d", what, len(text), MaxName)
	}
	return nil
}

// CheckPorts refuses more inputs or outputs than MaxPorts; what is "inputs" or "outputs".
func CheckPorts(what string, n int) error {
	if n > MaxPorts {
		return invalid("more than %d %s", MaxPorts, what)
	}
	return nil
}

// CheckRank refuses shapes of more extents than MaxRank.
func CheckRank(n int) error {
	if n > MaxRank {
		return invalid("a shape of more than %d extents", MaxRank)
	}
	return nil
}

// CheckStrings refuses tensors of more strings than MaxStrings.
func CheckStrings(n int) error {
	if n > MaxStrings {
		return invalid("%d strings, expected at most %d", n, MaxStrings)
	}
	return nil
}

// bounded refuses requests that are larger than they may be.
func (r *Request) bounded() error {
	for _, t := range [...]struct{ what, text string }{{"the request's id", r.ID}, {"the sequence's id", r.Sequence.ID}, {"the model's name", r.Model}, {"the version's name", r.Version}} {
		if err := CheckName(t.what, t.text); err != nil {
			return err
		}
	}
	if err := CheckPorts("inputs", len(r.Inputs)); err != nil {
		return err
	}
	if err := CheckPorts("outputs", len(r.Outputs)); err != nil {
		return err
	}
	for i := range r.Inputs {
		if err := CheckName("the name of an input", r.Inputs[i].Name); err != nil {
			return err
		}
		if t := r.Inputs[i].Value; t != nil {
			if err := CheckRank(t.Rank()); err != nil {
				return err
			}
			if t.DType() == tensor.String {
				if err := CheckStrings(t.Len()); err != nil {
					return err
				}
			}
		}
	}
	for _, name := range r.Outputs {
		if err := CheckName("the name of an output", name); err != nil {
			return err
		}
	}
	return nil
}

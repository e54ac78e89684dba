package prove

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"

	"github.com/onnxrl/onnxrl/export/serve"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// header precedes the model on the other process's standard input: its length in 4 bytes, itself as
// JSON, then the model to the end.
type header struct {
	Options engine.Options
	Rows    []int
}

// report is a line of the other process's standard output: what it does now, and at last Done.
type report struct {
	Stage string
	Done  bool
}

// maxHeader bounds what is read before the model.
const maxHeader = 1 << 20

// encode makes what the other process reads, and its digest.
func encode(t serve.Trial) (data []byte, digest [sha256.Size]byte, err error) {
	o := t.Options
	o.Profile, o.Optimized = "", "" // files of the server's own session
	head, err := json.Marshal(header{o, t.Rows})
	if err != nil {
		return nil, digest, err
	}
	model, err := onnx.Marshal(hollow(t.Model))
	if err != nil {
		return nil, digest, err
	}
	data = binary.LittleEndian.AppendUint32(nil, uint32(len(head)))
	data = append(append(data, head...), model...)
	return data, sha256.Sum256(data), nil
}

// decode reads it, and fills the weights in.
func decode(r io.Reader) (h header, m *onnx.Model, err error) {
	var size [4]byte
	b := bufio.NewReader(r)
	if _, err := io.ReadFull(b, size[:]); err != nil {
		return h, nil, fmt.Errorf("read header: %w", err)
	}
	n := binary.LittleEndian.Uint32(size[:])
	if n > maxHeader {
		return h, nil, fmt.Errorf("read header: %d bytes, at most %d expected", n, maxHeader)
	}
	head := make([]byte, n)
	if _, err := io.ReadFull(b, head); err != nil {
		return h, nil, fmt.Errorf("read header: %w", err)
	}
	if err := json.Unmarshal(head, &h); err != nil {
		return h, nil, fmt.Errorf("read header: %w", err)
	}
	model, err := io.ReadAll(b)
	if err != nil {
		return h, nil, fmt.Errorf("read model: %w", err)
	}
	if m, err = onnx.Unmarshal(model); err != nil {
		return h, nil, err
	}
	return h, m, fill(m)
}

// computedWith lists the operators that do nothing but arithmetic with an input of floating-point
// numbers; the others may take sizes and counts from it.
var computedWith = map[string]bool{
	"Add": true, "BatchNormalization": true, "Conv": true, "ConvTranspose": true, "Div": true, "FusedConv": true, "FusedGemm": true,
	"FusedMatMul": true, "GRU": true, "Gather": true, "Gemm": true, "GroupNormalization": true, "InstanceNormalization": true, "LSTM": true,
	"LayerNormalization": true, "MatMul": true, "Max": true, "Min": true, "Mul": true, "PRelu": true, "RMSNormalization": true, "RNN": true,
	"SimplifiedLayerNormalization": true, "Sub": true,
}

// hollow returns a copy of a model without the contents of the main graph's weights that are only
// computed with, unless what is computed decides more than numbers, and without what no engine
// looks at.
func hollow(m *onnx.Model) *onnx.Model {
	c := m.ShallowClone()
	c.MetadataProps, c.DocString, c.ProducerName, c.ProducerVersion, c.ModelVersion = nil, "", "", "", 0
	keep := map[string]bool{}
	for _, v := range c.Graph.Output {
		keep[v.Name] = true
	}
	for i, n := range c.Graph.Node {
		n.DocString, n.MetadataProps = "", nil
		plain := computedWith[n.OpType] && known(n)
		for _, v := range n.Input {
			keep[v] = keep[v] || !plain
		}
		for _, s := range n.Subgraphs() {
			s.Reads(keep)
		}
		c.Graph.Node[i] = n
	}
	empty := map[string]bool{}
	for _, t := range c.Graph.Initializer {
		empty[t.Name] = !keep[t.Name] && t.DataLocation != onnx.TensorProto_EXTERNAL && hollowable(t)
	}
	if steers(c.Graph, empty) {
		return c
	}
	for i, t := range c.Graph.Initializer {
		if empty[t.Name] {
			c.Graph.Initializer[i] = &onnx.TensorProto{Name: t.Name, DataType: t.DataType, Dims: t.Dims}
		}
	}
	return c
}

// known reports whether a node's operator is one of the lists' and no function of the model's own.
func known(n *onnx.NodeProto) bool {
	d := onnx.NormalizeDomain(n.Domain)
	return d == onnx.DomainStandard || d == onnx.DomainMS
}

func hollowable(t *onnx.TensorProto) bool {
	switch tensor.DType(t.DataType) {
	case tensor.Float32, tensor.Float64, tensor.Float16, tensor.BFloat16:
		return true
	}
	return false
}

// weight is the byte that hollow weights are made of: a small positive number in every type.
const weight = 0x3c

// fill gives every initializer without content one.
func fill(m *onnx.Model) error {
	for _, t := range m.GetGraph().GetInitializer() {
		if t.DataLocation == onnx.TensorProto_EXTERNAL || !hollowable(t) || len(t.RawData)+len(t.FloatData)+len(t.Int32Data)+len(t.DoubleData) > 0 {
			continue
		}
		shape := make([]int, len(t.Dims))
		for i, d := range t.Dims {
			shape[i] = int(d)
		}
		n, err := tensor.Len(shape)
		if err != nil {
			return fmt.Errorf("initializer %q: %w", t.Name, err)
		}
		t.RawData = make([]byte, tensor.DType(t.DataType).ByteLen(n))
		for i := range t.RawData {
			t.RawData[i] = weight
		}
	}
	return nil
}

package autodiff

import (
	"testing"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/onnx/schema"
)

// TestBodiesHaveRules makes sure that no operator which the ONNX standard defines by other
// operators is without a rule: it could be expanded.
func TestBodiesHaveRules(t *testing.T) {
	bodies := 0
	for _, domain := range schema.Domains() {
		for _, op := range schema.Names(domain) {
			for opset := MinOpset; opset <= schema.Latest(domain); opset++ {
				if onnx.SchemaBody(domain, op, opset) == nil {
					continue
				}
				bodies++
				if rules().find(domain, op, opset) == nil {
					t.Errorf("%s.%s of opset %d has a body and no rule", domain, op, opset)
				}
			}
		}
	}
	if later := schema.Latest("") + 1; rules().find("", "SpaceToDepth", later) != nil {
		t.Errorf("a rule is taken for opset %d, which nobody knows", later)
	}
	if bodies < 100 {
		t.Errorf("only %d bodies were looked at", bodies)
	}
}

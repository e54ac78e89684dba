package kinds_test

import (
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents/experiment/kinds"
	"github.com/onnxrl/onnxrl/configs"
)

// TestConstraintsAreRefused by algorithms that cannot be trained under them, and taken by the
// others.
func TestConstraintsAreRefused(t *testing.T) {
	var able []string
	for _, k := range kinds.All().Agents {
		d, err := configs.Parse("x.yaml", []byte("env: {kind: cartpole}\nagent: {kind: "+k.Name+", constraints: [{cost: fuel, limit: 1}]}"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err = kinds.All().Decode(d); err == nil {
			able = append(able, k.Name)
		} else if !strings.Contains(err.Error(), ": agent.constraints: the algorithm cannot be trained under constraints; these can: sac, cql, td3, ddpg, td3_bc, ppo, maskable_ppo, mappo, ippo\n") {
			t.Errorf("%s: %v", k.Name, err)
		}
	}
	if got := strings.Join(able, " "); got != "sac cql td3 ddpg td3_bc ppo maskable_ppo mappo ippo" {
		t.Errorf("constraints are taken by %s", got)
	}
}

package world_test

import (
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/envs/scml/world"
)

// TestCode has ids that the official program made.
func TestCode(t *testing.T) {
	names := "AS0 ABC ABCD Ab AbCd A1 AB1 AbC1x XenoSotaAgent PriceTrendStdAgent LitaAgentYR KATSUDONAgent AX DogAgent HashSyncAgent A0B1C2 S0S Foo2Bar AOneShot SyncRandomOneShotAgent SyncRandomStdAgent GreedyStdAgent UltraSuperMiracleSoraFinalAgentZ PenguinAgent"
	codes := strings.Fields("ASS0 ABC ABC Abb Ab A11 ABB1 Ab Xe PTS LYR KAT AXX Do Ha ABC S00S Fo AO Sy SRS Gr USM Pe")
	for i, name := range strings.Fields(names) {
		if got := world.TypeCode(name); got != codes[i] {
			t.Errorf("%s: %s, expected %s", name, got, codes[i])
		}
	}
	if len(codes) != 24 {
		t.Errorf("%d cases", len(codes))
	}
	if id := world.FactoryID(4, 1, "SyncRandomStdAgent"); id != "04SRS@1" {
		t.Errorf("%s", id)
	}
}

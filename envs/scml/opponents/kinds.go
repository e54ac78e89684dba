package opponents

import (
	"fmt"
	"slices"
	"strings"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs/scml/world"
)

// Kind is an agent that can be seated.
type Kind struct {
	// Name is what commands call it, Type the class it follows.
	Name, Type, Summary string
	// Default says that it fills the places of tournaments that competitors leave.
	Default bool
	New     func(s *Dice) world.Agent
}

// Kinds lists all agents, those of tournaments' places first.
var Kinds = []Kind{
	{"greedy", "GreedyStdAgent", "concedes from the best price, and remembers prices", true, newGreedy},
	{"random", "RandomStdAgent", "offers anything, accepts one offer in ten", true, newRandom},
	{"syncrandom", "SyncRandomStdAgent", "spreads what it needs over its partners at random", true, newSyncRandom},
	{"penguin", "PenguinAgent", "winner of 2024: the best subset of offers, seven units a day", false, newPenguin},
	{"as0", "AS0", "winner of 2025: penguin that prefers partners who agree", false, newAS0},
	{"ultra", "UltraSuperMiracleSoraFinalAgentZ", "third of 2025: buys early, sells by need", false, newUltra},
	{"xenosota", "XenoSotaAgent", "second of 2025, after observation: shares by partner, a stock bought on two days", false, newXenoSota},
	{"pricetrend", "PriceTrendStdAgent", "finalist of 2025, after observation: all it needs at once, at the best price", false, newPriceTrend},
	{"oneshot", "SyncRandomOneShotAgent", "spreads what it needs of today, and accepts what comes closest", false, newOneShot},
	{"equaldist", "EqualDistOneShotAgent", "the same, in equal parts", false, newEqualDist},
	{"aspiration", "SingleAgreementAspirationAgent", "after observation: one agreement a day, from an aspiration that decays with time", false, newAspiration},
	{"nothing", "StdDoNothingAgent", "ends all negotiations", false, newNothing},
	{"hash", "HashAgent", "decides by a hash of the situation", false, newHash},
	{"hashsync", "HashSyncAgent", "the same, synchronously", false, newHashSync},
}

// Find returns the kind of a name or a type, whose module may stand before it.
func Find(name string) (*Kind, error) {
	last := name[strings.LastIndexAny(name, ".:")+1:]
	i := slices.IndexFunc(Kinds, func(k Kind) bool { return k.Name == last || k.Type == last })
	if i < 0 {
		var names []string
		for _, k := range Kinds {
			names = append(names, k.Name)
		}
		return nil, fmt.Errorf("no agent is called %q; %s", name, configs.Nearest(name, names))
	}
	return &Kinds[i], nil
}

package mappo

import (
	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/ppo"
)

// Kind makes agents whose value reads what is central, and IPPOKind those whose value does not.
var (
	Kind     = ppo.NewKind("mappo", "ppo for several agents, whose value reads what no policy does (central fields): discrete, multi-discrete, multi-binary and continuous actions, masks", Defaults)
	IPPOKind = ppo.NewKind("ippo", "ppo for several agents, each of which learns from what it sees itself: mappo with central: false", IPPODefaults)
)

// Kinds lists the kinds of this package.
func Kinds() []agents.Kind { return []agents.Kind{Kind, IPPOKind} }

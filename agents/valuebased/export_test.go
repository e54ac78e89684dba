package valuebased

import "github.com/onnxrl/onnxrl/agents"

// Epsilon is the exploration rate of the schedule, and Rate the probability of a random action now.
func (l *Learner) Epsilon() float64 { return l.epsilon() }
func (l *Learner) Rate() float64    { return l.rate() }

// ExploreAtLast sets the rate that the schedule ends with.
func (l *Learner) ExploreAtLast(rate float64) { l.settings.ExplorationFinal = rate }

// SelectByTarget lets the target network select the following actions.
func (l *Learner) SelectByTarget() { l.qOnline = l.zTarget }

// ActorValues are the action values of an actor's newest decision.
func ActorValues(x agents.Actor) []float32 { return x.(*actor).q }

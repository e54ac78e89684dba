// Package qrdqn is quantile regression DQN (Dabney et al. 2018, "Distributional reinforcement
// learning with quantile regression", arXiv 1710.10044) over discrete actions, in the form of
// sb3-contrib. It is of the family of package valuebased, which see for acting, replay and state.
//
// # One update
//
// The network gives N quantiles θ of the return of each action, and their mean is the action's
// value, by which actions are chosen:
//
//	q(s, a) = 1/N·Σᵢ θᵢ(s, a)
//	yⱼ = r + γ·d·θ⁻ⱼ(s', argmaxₐ q⁻(s', a))     q⁻ and θ⁻ are the target network's
//	δᵢⱼ = yⱼ − θᵢ(s, a),  τᵢ = (i + ½)/N
//	L = 1/B·Σ w·Σᵢ 1/N·Σⱼ |τᵢ − 1{δᵢⱼ < 0}|·h(δᵢⱼ)
//
// with Huber's function h of threshold 1. It is sb3-contrib 2.9's, number by number over 100 updates
// (contrib_test.go).
//
// # What sb3-contrib does not have
//
// The family's options work here too. double lets the online network's values select the following
// action; duelling makes each quantile V + A − mean A; prioritised ranks transitions by their loss,
// which is what learning makes smaller, as Rainbow does (Hessel et al. 2018, arXiv 1710.02298).
//
// # Defaults, and deviations from sb3-contrib
//
// Defaults are those of sb3_contrib.QRDQN 2.x. Adam's eps is 0.01/32 whatever the batch, where
// sb3-contrib divides by the batch's size if no optimiser is named. Other deviations are those of
// package dqn from Stable-Baselines3.
package qrdqn

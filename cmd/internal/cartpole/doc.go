// Command cartpole is the program that docs/embed.md begins with: it trains CartPole by PPO,
// evaluates the policy, and has the published file decide an action. It tells what a program links
// that names no more than it needs.
package main

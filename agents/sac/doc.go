// Package sac is soft actor-critic.
package sac

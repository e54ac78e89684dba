// Package a2c is synchronous advantage actor-critic (Mnih et al. 2016, arXiv 1602.01783) for factorised discrete actions, as QTMRL uses it.
package a2c

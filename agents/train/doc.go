// Package train runs an agent in its environments: it collects, learns, evaluates, checkpoints and publishes, and can be stopped and continued bit for bit.
package train

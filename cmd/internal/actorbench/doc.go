// Package actorbench measures what actors in processes of their own are for: env steps per second
// where environments are slow.
package actorbench

//go:build !linux

package dashboard

import "time"

// measure finds nothing: what holds a lock is not known here.
func (u *usage) measure(map[string]string, time.Time) map[string]*Process { return nil }

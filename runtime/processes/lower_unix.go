//go:build unix && !linux

package processes

import "golang.org/x/sys/unix"

func lower(nice int) error {
	is, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	if err != nil || is >= nice {
		return err
	}
	return unix.Setpriority(unix.PRIO_PROCESS, 0, nice)
}

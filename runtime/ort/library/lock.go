package library

import (
	"context"
	"fmt"
	"os"
	"time"
)

// lockPoll is how often a waiting installer asks for the lock. Waiting in the
// kernel could not be cancelled.
const lockPoll = 100 * time.Millisecond

// fileLock is an exclusive advisory lock held through an open file. Two opens of
// one path exclude each other even within a process, and the operating system
// drops the lock when its holder dies.
type fileLock struct{ f *os.File }

// lockFile takes the lock, calling waiting once if somebody else holds it.
func lockFile(ctx context.Context, path string, waiting func()) (*fileLock, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	var tick *time.Ticker
	for {
		held, err := tryLock(f)
		if err != nil {
			f.Close()
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		if held {
			return &fileLock{f}, nil
		}
		if tick == nil {
			waiting()
			tick = time.NewTicker(lockPoll)
			defer tick.Stop()
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// unlock drops the lock. The file stays: removing it would let two later owners
// lock different files of the same name.
func (l *fileLock) unlock() { l.f.Close() }

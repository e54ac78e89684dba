package objects

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"time"
)

// DefaultAttempts is how often an operation is tried, without progress in between, when Options do
// not say it. With the waits between them that is about half a minute.
const DefaultAttempts = 8

// firstWait and longestWait bound the back-off.
const (
	firstWait   = 100 * time.Millisecond
	longestWait = 10 * time.Second
)

// final reports whether trying again is of no use.
func final(err error) bool {
	var f *finalError
	return errors.As(err, &f) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, ErrChanged)
}

// retry calls do until it succeeds, fails for good, or has failed s.attempts times in a row without
// saying that it came further. The waits grow exponentially and are random, so that workers that
// failed together do not return together (full jitter: Brooker, "Exponential Backoff And Jitter",
// 2015).
func (s *source) retry(ctx context.Context, what string, do func() (further bool, err error)) error {
	wait := firstWait
	for failed := 0; ; {
		further, err := do()
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("%s: %w", what, context.Cause(ctx))
		case final(err):
			return fmt.Errorf("%s: %w", what, err)
		}
		if failed++; further {
			failed, wait = 1, firstWait
		}
		if failed >= s.attempts {
			return fmt.Errorf("%s: tried %d times: %w", what, failed, err)
		}
		s.stats.retries.Add(1)
		if err := s.sleep(ctx, rand.N(wait)+time.Millisecond); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		wait = min(2*wait, longestWait)
	}
}

// sleep waits unless the context ends.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

// source is a bucket whose operations are tried again.
type source struct {
	bucket   Bucket
	attempts int
	stats    *counters
	sleep    func(context.Context, time.Duration) error
}

func (s *source) stat(ctx context.Context, key string) (info Info, err error) {
	err = s.retry(ctx, "stat "+key, func() (bool, error) {
		info, err = s.bucket.Stat(ctx, key)
		return false, err
	})
	return info, err
}

func (s *source) write(ctx context.Context, key string, b []byte) error {
	err := s.retry(ctx, "write "+key, func() (bool, error) { return false, s.bucket.Write(ctx, key, b) })
	if err == nil {
		s.stats.sent.Add(1)
		s.stats.sentBytes.Add(int64(len(b)))
	}
	return err
}

// copyRange writes what is from an offset to size of an object to w, going on after an error where
// it was. An error of w is final.
func (s *source) copyRange(ctx context.Context, w io.Writer, key, tag string, offset, size int64) error {
	return s.retry(ctx, "read "+key, func() (bool, error) {
		if offset == size {
			return false, nil
		}
		r, err := s.bucket.Read(ctx, key, Range{Offset: offset, Length: size - offset, Tag: tag})
		if err != nil {
			return false, err
		}
		to := &countedWriter{to: w}
		n, err := io.Copy(to, io.LimitReader(r, size-offset))
		offset += n
		s.stats.receivedBytes.Add(n)
		if to.err != nil {
			err = Final(to.err)
		}
		if err == nil && offset < size {
			err = io.ErrUnexpectedEOF
		}
		return n > 0, errors.Join(err, r.Close())
	})
}

// readAll returns an object of at most limit bytes whose size is not known.
func (s *source) readAll(ctx context.Context, key string, limit int64) (b []byte, err error) {
	err = s.retry(ctx, "read "+key, func() (bool, error) {
		r, err := s.bucket.Read(ctx, key, Range{Length: -1})
		if err != nil {
			return false, err
		}
		b, err = io.ReadAll(io.LimitReader(r, limit+1))
		s.stats.receivedBytes.Add(int64(len(b)))
		if err = errors.Join(err, r.Close()); err == nil && int64(len(b)) > limit {
			err = Final(fmt.Errorf("more than %d bytes", limit))
		}
		return false, err
	})
	return b, err
}

// countedWriter remembers an error, which tells it from one of the reader.
type countedWriter struct {
	to  io.Writer
	err error
}

func (w *countedWriter) Write(p []byte) (int, error) {
	n, err := w.to.Write(p)
	if err != nil {
		w.err = err
	}
	return n, err
}

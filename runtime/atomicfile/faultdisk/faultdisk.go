// Package faultdisk wraps an atomicfile.Disk so that tests can make it fail: full after a number of
// bytes, or with an error at the n-th operation. A test that lets every operation fail once, one
// run after the other, proves that no failure damages what was there:
//
//	for n := 1; ; n++ {
//		disk := faultdisk.New(atomicfile.OS)
//		disk.FailAt(n, io.ErrUnexpectedEOF)
//		err := save(disk)
//		check(old or new content)
//		if !disk.Failed() {
//			break // fewer than n operations: every one has failed once
//		}
//	}
package faultdisk

import (
	"sync"
	"syscall"

	"github.com/onnxrl/onnxrl/runtime/atomicfile"
)

var _ atomicfile.Disk = (*Disk)(nil)

// Disk is a disk with faults. Writes, syncs, closes and every method of the interface count as
// operations; RemoveAll does not fail, so that cleaning up can be observed.
type Disk struct {
	under atomicfile.Disk

	mu       sync.Mutex
	room     int64 // bytes left; negative is unlimited
	failAt   int
	failWith error
	ops      int
	failed   bool
}

// New returns a disk that does not fail yet.
func New(under atomicfile.Disk) *Disk { return &Disk{under: under, room: -1} }

// SetRoom lets writes fail with ENOSPC once this many more bytes are written; the write that
// crosses the limit is cut.
func (d *Disk) SetRoom(bytes int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.room = bytes
}

// FailAt lets the n-th operation from now, counted from 1, fail with err.
func (d *Disk) FailAt(n int, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failAt, d.failWith, d.ops, d.failed = n, err, 0, false
}

// Failed reports whether any operation has failed.
func (d *Disk) Failed() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.failed
}

func (d *Disk) operation() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ops++; d.failWith != nil && d.ops == d.failAt {
		d.failed = true
		return d.failWith
	}
	return nil
}

// take grants up to n bytes of the room that is left.
func (d *Disk) take(n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.room < 0 {
		return n
	}
	granted := min(int64(n), d.room)
	d.room -= granted
	if granted < int64(n) {
		d.failed = true
	}
	return int(granted)
}

// Create implements atomicfile.Disk.
func (d *Disk) Create(path string) (atomicfile.File, error) {
	if err := d.operation(); err != nil {
		return nil, err
	}
	f, err := d.under.Create(path)
	if err != nil {
		return nil, err
	}
	return &file{File: f, disk: d}, nil
}

// Mkdir implements atomicfile.Disk.
func (d *Disk) Mkdir(path string) error {
	if err := d.operation(); err != nil {
		return err
	}
	return d.under.Mkdir(path)
}

// Rename implements atomicfile.Disk.
func (d *Disk) Rename(from, to string) error {
	if err := d.operation(); err != nil {
		return err
	}
	return d.under.Rename(from, to)
}

// Append implements atomicfile.Disk. Where the disk is full a part of the text is written.
func (d *Disk) Append(path string, at int64, text []byte) error {
	if err := d.operation(); err != nil {
		return err
	}
	granted := d.take(len(text))
	err := d.under.Append(path, at, text[:granted])
	if err == nil && granted < len(text) {
		err = syscall.ENOSPC
	}
	return err
}

// RemoveAll implements atomicfile.Disk; it never fails by itself.
func (d *Disk) RemoveAll(path string) error { return d.under.RemoveAll(path) }

// SyncDir implements atomicfile.Disk.
func (d *Disk) SyncDir(path string) error {
	if err := d.operation(); err != nil {
		return err
	}
	return d.under.SyncDir(path)
}

type file struct {
	atomicfile.File
	disk *Disk
}

func (f *file) Write(p []byte) (int, error) {
	if err := f.disk.operation(); err != nil {
		return 0, err
	}
	granted := f.disk.take(len(p))
	n, err := f.File.Write(p[:granted])
	if err == nil && n < len(p) {
		err = syscall.ENOSPC
	}
	return n, err
}

func (f *file) Sync() error {
	if err := f.disk.operation(); err != nil {
		return err
	}
	return f.File.Sync()
}

func (f *file) Close() error {
	// The file is closed in any case: a failing close also releases the descriptor.
	err := f.File.Close()
	if fault := f.disk.operation(); fault != nil {
		return fault
	}
	return err
}

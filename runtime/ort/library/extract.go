package library

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// extract writes the one library of src from its package's archive to dst, which
// must not exist, and flushes it to the disk. The file is complete and verified,
// or an error is returned; other entries of the archive are not written.
func extract(ctx context.Context, archive string, src source, dst string, progress func(int64)) error {
	if strings.HasSuffix(archive, ".tgz") {
		return extractTarGz(ctx, archive, src, dst, progress)
	}
	return extractZip(ctx, archive, src, dst, progress)
}

func extractTarGz(ctx context.Context, archive string, src source, dst string, progress func(int64)) error {
	f, err := os.Open(archive)
	if err != nil {
		return fmt.Errorf("open package: %w", err)
	}
	defer f.Close()
	gz, err := gzip.NewReader(f)
	if err != nil {
		return fmt.Errorf("read package %s: %w", filepath.Base(archive), err)
	}
	defer gz.Close()
	for tr := tar.NewReader(gz); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return missingEntry(archive, src)
		}
		if err != nil {
			return fmt.Errorf("read package %s: %w", filepath.Base(archive), err)
		}
		if h.Name == src.entry && h.Typeflag == tar.TypeReg {
			return writeVerified(ctx, tr, h.Size, src, dst, progress)
		}
	}
}

func extractZip(ctx context.Context, archive string, src source, dst string, progress func(int64)) error {
	z, err := zip.OpenReader(archive)
	if err != nil {
		return fmt.Errorf("read package %s: %w", filepath.Base(archive), err)
	}
	defer z.Close()
	for _, f := range z.File {
		if f.Name != src.entry {
			continue
		}
		r, err := f.Open()
		if err != nil {
			return fmt.Errorf("read package %s: %w", filepath.Base(archive), err)
		}
		defer r.Close()
		return writeVerified(ctx, r, int64(f.UncompressedSize64), src, dst, progress)
	}
	return missingEntry(archive, src)
}

func missingEntry(archive string, src source) error {
	return fmt.Errorf("read package %s: no entry %s", filepath.Base(archive), src.entry)
}

func writeVerified(ctx context.Context, r io.Reader, size int64, src source, dst string, progress func(int64)) error {
	if size != src.size {
		return &ChecksumError{Entry: src.entry, Want: src.sha256, WantSize: src.size, GotSize: size}
	}
	f, err := os.OpenFile(dst, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return fmt.Errorf("write library: %w", err)
	}
	h := sha256.New()
	// The limit bounds what a lying header can make us write.
	n, err := io.Copy(io.MultiWriter(f, h), io.LimitReader(&counter{ctx: ctx, r: r, report: progress}, size))
	if err == nil && n != size {
		err = io.ErrUnexpectedEOF
	}
	if err == nil {
		err = f.Sync()
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return fmt.Errorf("write library: %w", err)
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != src.sha256 {
		return &ChecksumError{Entry: src.entry, Want: src.sha256, Got: got, WantSize: src.size, GotSize: n}
	}
	return nil
}

// counter reports about every megabyte that passes, and ends when ctx does.
type counter struct {
	ctx    context.Context
	r      io.Reader
	n, due int64
	report func(int64)
}

func (c *counter) Read(p []byte) (int, error) {
	if c.ctx.Err() != nil {
		return 0, context.Cause(c.ctx)
	}
	n, err := c.r.Read(p)
	c.n += int64(n)
	if c.n >= c.due {
		c.report(c.n)
		c.due = c.n + 1<<20
	}
	return n, err
}

// syncDir makes a rename survive a crash of the machine.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil // directories cannot be flushed there; a rename is journalled
	}
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("flush cache: %w", err)
	}
	defer d.Close()
	if err := d.Sync(); err != nil {
		return fmt.Errorf("flush cache: %w", err)
	}
	return nil
}

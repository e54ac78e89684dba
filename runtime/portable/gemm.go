package portable

import (
	"sync"
	"unsafe"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"
)

// gonum's Gemm runs in parallel, on goroutines of its own, from four blocks of 64×64 on. Tiles
// below that stay serial: they allocate nothing and obey the session's number of threads. They add
// every element's products in the order of k, so that results do not depend on how rows are shared
// out.
const (
	tileRows = 64
	tileCols = 192
	// parallelFlops is the work below which starting another goroutine costs more than it saves.
	parallelFlops = 1 << 20
)

var impl = gonum.Implementation{}

// gemmTask is C = alpha·op(A)·op(B) + beta·C on row-major matrices; op transposes where ta or tb
// say so. With beta 0, C is not read.
type gemmTask struct {
	ta, tb        bool
	m, n, k       int
	lda, ldb, ldc int
	alpha, beta   float64
	a32, b32, c32 []float32
	a64, b64, c64 []float64
	double        bool
}

// gemmState is what a frame keeps for its matrix products.
type gemmState struct {
	parts []part
	wg    sync.WaitGroup
	bt    []byte
	at    []byte
}

// gemm computes a product in float32 or float64, on the session's threads where it is large enough.
func gemm[T float](c *call, ta, tb bool, m, n, k int, alpha T, a []T, lda int, b []T, ldb int, beta T, out []T, ldc int) {
	if m == 0 || n == 0 {
		return
	}
	t := gemmTask{ta: ta, tb: tb, m: m, n: n, k: k, lda: lda, ldb: ldb, ldc: ldc, alpha: float64(alpha), beta: float64(beta)}
	s := &c.f.gemm
	if k == 0 {
		for i := range m {
			row := out[i*ldc : i*ldc+n]
			for j := range row {
				if beta == 0 {
					row[j] = 0
				} else {
					row[j] *= beta
				}
			}
		}
		return
	}
	// Rows of dot products are twice as fast as sums of scaled rows, and do not skip a zero times
	// an infinity. Transposing B pays from a few rows on.
	if !tb && m >= 8 {
		bt := stateBuf[T](&s.bt, n*k)
		transposeInto(bt, b, k, n, ldb)
		b, ldb, t.tb, t.ldb = bt, k, true, k
	}
	if ta {
		at := stateBuf[T](&s.at, m*k)
		transposeInto(at, a, k, m, lda)
		a, t.ta, t.lda = at, false, k
	}
	if unsafe.Sizeof(alpha) == 4 {
		t.a32, t.b32, t.c32 = as[float32](a), as[float32](b), as[float32](out)
	} else {
		t.double = true
		t.a64, t.b64, t.c64 = as[float64](a), as[float64](b), as[float64](out)
	}
	threads := c.f.rt.workers.threads
	if threads > 1 {
		threads = min(threads, m, m*n*k/parallelFlops)
	}
	if threads <= 1 {
		t.rows(0, m)
		return
	}
	if len(s.parts) < threads {
		s.parts = make([]part, threads)
	}
	for i := range threads {
		lo, hi := i*m/threads, (i+1)*m/threads
		s.parts[i] = part{run: runGemm, gemm: t.slice(lo, hi)}
	}
	c.f.rt.workers.do(s.parts[:threads], &s.wg)
}

func runGemm(p *part) { p.gemm.rows(0, p.gemm.m) }

func (t gemmTask) slice(lo, hi int) gemmTask {
	t.m = hi - lo
	if t.double {
		t.a64, t.c64 = t.a64[lo*t.lda:], t.c64[lo*t.ldc:]
	} else {
		t.a32, t.c32 = t.a32[lo*t.lda:], t.c32[lo*t.ldc:]
	}
	return t
}

// rows computes the rows [lo, hi) tile by tile. A is not transposed.
func (t *gemmTask) rows(lo, hi int) {
	tb := blas.NoTrans
	if t.tb {
		tb = blas.Trans
	}
	for j := 0; j < t.n; j += tileCols {
		nj := min(tileCols, t.n-j)
		bo := j
		if t.tb {
			bo = j * t.ldb
		}
		for i := lo; i < hi; i += tileRows {
			mi := min(tileRows, hi-i)
			if t.double {
				impl.Dgemm(blas.NoTrans, tb, mi, nj, t.k, t.alpha, t.a64[i*t.lda:], t.lda, t.b64[bo:], t.ldb, t.beta, t.c64[i*t.ldc+j:], t.ldc)
			} else {
				impl.Sgemm(blas.NoTrans, tb, mi, nj, t.k, float32(t.alpha), t.a32[i*t.lda:], t.lda, t.b32[bo:], t.ldb, float32(t.beta), t.c32[i*t.ldc+j:], t.ldc)
			}
		}
	}
}

// transposeInto writes the rows×cols matrix src as a cols×rows matrix, in blocks that fit the
// cache.
func transposeInto[T any](dst, src []T, rows, cols, ld int) {
	const block = 16
	for i0 := 0; i0 < rows; i0 += block {
		i1 := min(i0+block, rows)
		for j0 := 0; j0 < cols; j0 += block {
			j1 := min(j0+block, cols)
			for i := i0; i < i1; i++ {
				row := src[i*ld : i*ld+cols]
				for j := j0; j < j1; j++ {
					dst[j*rows+i] = row[j]
				}
			}
		}
	}
}

func stateBuf[T float](buf *[]byte, n int) []T {
	var z T
	size := n * int(unsafe.Sizeof(z))
	if len(*buf) < size {
		*buf = alignedBytes(size)
	}
	return wordsOf[T]((*buf)[:size])
}

// as names the type that T is known to be. Converting through an interface would allocate.
func as[R, T float](s []T) []R {
	return unsafe.Slice((*R)(unsafe.Pointer(unsafe.SliceData(s))), len(s))
}

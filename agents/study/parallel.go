package study

import "sync"

// Parallel calls do for 0 to n-1, as many at a time as workers.
func Parallel(workers, n int, do func(i int)) {
	var wg sync.WaitGroup
	next := make(chan int)
	for range min(workers, n) {
		wg.Go(func() {
			for i := range next {
				do(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
}

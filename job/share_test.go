package job

import (
	"runtime"
	"sync"
	"testing"
)

// Of a function of the user that ends its goroutine nobody would hear who waits for it.
func TestGoroutineThatEnds(t *testing.T) {
	const workers = 4
	for range 1000 {
		var all sync.WaitGroup // one call on each goroutine
		all.Add(workers)
		returned := make(chan error, 1)
		go func() {
			defer close(returned)
			returned <- share(workers, workers, func(i int) error {
				all.Done()
				all.Wait()
				if i > 0 {
					runtime.Goexit()
				}
				return nil
			})
		}()
		if err, ok := <-returned; err != nil {
			return
		} else if ok {
			t.Fatal("three of four calls did not return, and there is no error")
		} // else the goroutine that waits was one of them
	}
	t.Error("call 0 was never made by the goroutine that waits")
}

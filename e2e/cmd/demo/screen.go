package main

import (
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast-xds/holdfast/e2e/load"
)

// screen tells the progress: on a terminal in one line that is always up to
// date, elsewhere in a line for each step.
type screen struct {
	live  bool
	began time.Time
	done  chan struct{}
	end   sync.WaitGroup

	mu   sync.Mutex
	now  string
	load *load.Run
}

func newScreen() *screen {
	_, err := unix.IoctlGetTermios(int(os.Stdout.Fd()), unix.TCGETS)
	s := &screen{live: err == nil, began: time.Now(), done: make(chan struct{})}
	if s.live {
		s.end.Go(s.refresh)
	}
	return s
}

// step says what is done from now on.
func (s *screen) step(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = fmt.Sprintf(format, args...)
	if !s.live {
		fmt.Println(s.line())
	}
}

// follow shows the figures of a load from now on.
func (s *screen) follow(r *load.Run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.load = r
}

// close ends the live line.
func (s *screen) close() {
	if !s.live {
		return
	}
	close(s.done)
	s.end.Wait()
	fmt.Print("\r\x1b[K")
}

func (s *screen) refresh() {
	t := time.NewTicker(200 * time.Millisecond)
	defer t.Stop()
	for {
		select {
		case <-s.done:
			return
		case <-t.C:
		}
		s.mu.Lock()
		fmt.Print("\r\x1b[K" + s.line())
		s.mu.Unlock()
	}
}

// line is called with mu held.
func (s *screen) line() string {
	out := fmt.Sprintf("%5.1fs  %s", time.Since(s.began).Seconds(), s.now)
	if s.load != nil {
		r := s.load.Report()
		out += fmt.Sprintf("   %s requests, %s failed", grouped(int(r.Requests)), grouped(int(r.Failed)))
	}
	return out
}

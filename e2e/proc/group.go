// Package proc runs the programs of a test: each with its output in a file, in
// a process group of its own, and certain to end with the test.
//
// A Group ends only what it started, by process id. Should the test itself be
// killed, the kernel kills its children (Pdeathsig).
//
// Linux only.
package proc

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"time"
)

// Group starts processes and ends them together.
type Group struct {
	logs   string
	starts chan func()

	mu   sync.Mutex
	live []*Process // oldest first
}

// NewGroup gives a Group whose logs go into a folder.
func NewGroup(logs string) *Group {
	g := &Group{logs: logs, starts: make(chan func())}
	go g.start()
	return g
}

// start runs all starts on one thread that lives as long as the Group: the
// kernel takes the end of the starting *thread* for the parent's death.
func (g *Group) start() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for f := range g.starts {
		f()
	}
}

// Start starts a program; its output is appended to NAME.log.
func (g *Group) Start(name, program string, args ...string) (*Process, error) {
	log, err := os.OpenFile(filepath.Join(g.logs, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	defer log.Close()
	c := exec.Command(program, args...)
	c.Stdout, c.Stderr = log, log
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	done := make(chan error)
	g.starts <- func() { done <- c.Start() }
	if err := <-done; err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	p := &Process{Name: name, Log: log.Name(), group: g, command: c, ended: make(chan struct{}), Started: time.Now()}
	go p.wait()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.live = append(g.live, p)
	return p, nil
}

// Close ends all processes that still run, newest first.
func (g *Group) Close() error {
	g.mu.Lock()
	live := slices.Clone(g.live)
	g.mu.Unlock()
	var errs []error
	for _, p := range slices.Backward(live) {
		errs = append(errs, p.Stop())
	}
	close(g.starts)
	return errors.Join(errs...)
}

func (g *Group) forget(p *Process) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.live = slices.DeleteFunc(g.live, func(q *Process) bool { return q == p })
}

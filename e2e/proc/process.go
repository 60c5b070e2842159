package proc

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// patience is how long a process may take to obey SIGTERM.
const patience = 15 * time.Second

// Process is a started program.
type Process struct {
	Name    string
	Log     string // path
	Started time.Time

	group   *Group
	command *exec.Cmd
	ended   chan struct{}
}

func (p *Process) wait() {
	_ = p.command.Wait() // how it ended is in ProcessState
	p.group.forget(p)
	close(p.ended)
}

// PID is the process id, which is also its group's.
func (p *Process) PID() int { return p.command.Process.Pid }

// Ended is closed when the process has ended.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// ErrEnded says that a process has ended. Until does not wait any longer then.
var ErrEnded = errors.New("process ended")

// Running gives an ErrEnded with the end of the log when the process has ended.
func (p *Process) Running() error {
	select {
	case <-p.ended:
		return fmt.Errorf("%s: %w (%s); the end of %s:\n%s", p.Name, ErrEnded, p.command.ProcessState, p.Log, p.Tail(20))
	default:
		return nil
	}
}

// Kill ends the process's group by SIGKILL and waits for its end.
func (p *Process) Kill() error {
	p.signal(syscall.SIGKILL)
	return p.gone()
}

// Stop ends it by SIGTERM, and by SIGKILL when that takes too long, which is an
// error.
func (p *Process) Stop() error {
	p.signal(syscall.SIGTERM)
	t := time.NewTimer(patience)
	defer t.Stop()
	select {
	case <-p.ended:
		return nil
	case <-t.C:
		_ = p.Kill()
		return fmt.Errorf("%s (pid %d) ignored SIGTERM for %v", p.Name, p.PID(), patience)
	}
}

// Freeze stops the process's group in its tracks (SIGSTOP) until Thaw.
func (p *Process) Freeze() { p.signal(syscall.SIGSTOP) }

// Thaw lets a frozen process go on.
func (p *Process) Thaw() { p.signal(syscall.SIGCONT) }

// gone bounds the wait for a killed process: one in an uninterruptible state
// must not hang the whole run.
func (p *Process) gone() error {
	t := time.NewTimer(patience)
	defer t.Stop()
	select {
	case <-p.ended:
		return nil
	case <-t.C:
		return fmt.Errorf("%s (pid %d) survives SIGKILL", p.Name, p.PID())
	}
}

func (p *Process) signal(s syscall.Signal) {
	select {
	case <-p.ended: // its number may be another's by now
	default:
		_ = syscall.Kill(-p.PID(), s) // gone already: what is wanted
	}
}

// Tail gives the last lines of the log.
func (p *Process) Tail(lines int) string {
	all, err := os.ReadFile(p.Log)
	if err != nil {
		return err.Error()
	}
	parts := strings.Split(strings.TrimSpace(string(all)), "\n")
	return strings.Join(parts[max(0, len(parts)-lines):], "\n")
}

// Logged counts the log's lines that contain all of the texts.
func (p *Process) Logged(texts ...string) (int, error) {
	all, err := os.ReadFile(p.Log)
	if err != nil {
		return 0, err
	}
	n := 0
next:
	for line := range bytes.Lines(all) {
		for _, t := range texts {
			if !bytes.Contains(line, []byte(t)) {
				continue next
			}
		}
		n++
	}
	return n, nil
}

package peer

import (
	"bufio"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
)

// Process is a peer that runs.
type Process struct {
	Address string

	command *exec.Cmd
	in      io.WriteCloser
	enc     *gob.Encoder
	dec     *gob.Decoder
}

// Start runs "self peer NAME ARGS", self being the program that calls Run.
func Start(self, name string, args ...string) (*Process, error) {
	c := exec.Command(self, append([]string{"peer", name}, args...)...)
	c.Stderr = os.Stderr
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := c.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := c.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.Start(); err != nil {
		return nil, fmt.Errorf("peer %s: %w", name, err)
	}
	p := &Process{command: c, in: in, enc: gob.NewEncoder(in), dec: gob.NewDecoder(bufio.NewReader(out))}
	if name == Informers {
		return p, nil
	}
	r, err := p.Reply()
	p.Address = r.Address
	return p, err
}

// PID of the process.
func (p *Process) PID() int { return p.command.Process.Pid }

// Reply waits for the next reply.
func (p *Process) Reply() (Reply, error) {
	var r Reply
	if err := p.dec.Decode(&r); err != nil {
		return r, fmt.Errorf("peer: %w", err)
	}
	if r.Error != "" {
		return r, errors.New("peer: " + r.Error)
	}
	return r, nil
}

// Feed gives it resources; when they are to be served it waits until they are.
func (p *Process) Feed(f Feed) (Reply, error) {
	if err := p.enc.Encode(f); err != nil {
		return Reply{}, fmt.Errorf("peer: %w", err)
	}
	if !f.Serve {
		return Reply{}, nil
	}
	return p.Reply()
}

// Close ends it.
func (p *Process) Close() error {
	_ = p.in.Close()
	return p.command.Wait()
}

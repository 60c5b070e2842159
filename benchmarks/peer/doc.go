// Package peer runs what holdfast is compared with, each in a process of its
// own, so that its CPU and memory are its own:
//
//   - go-control-plane's SnapshotCache, incremental and state of the world, fed
//     with the resources that our index made (so that its figures contain no
//     translation);
//   - a plain set of client-go informers over the same kinds, the floor for how
//     fast objects can be listed and decoded.
//
// The peer reads batches of resources from stdin and answers each on stdout, in
// gob; see Feed and Reply. What is measured is library code, set up as its
// documentation says.
package peer

import (
	"encoding/gob"
	"fmt"
	"io"
	"time"
)

// Names of the peers, as arguments of "bench peer".
const (
	Delta     = "go-control-plane-delta"
	SotW      = "go-control-plane-sotw"
	Informers = "client-go-informers"
)

// Resource is one xDS resource, or the name of one that is gone.
type Resource struct {
	Type, Name string
	Body       []byte
	Gone       bool
}

// Feed is what a peer reads: resources, and whether they are to be served now.
type Feed struct {
	Resources []Resource
	Serve     bool
}

// Reply is what a peer answers to a Feed that is to be served, and once at the
// start: its address.
type Reply struct {
	Address string
	Took    time.Duration // in the library's SetSnapshot and what it needs
	Error   string
}

// Run runs a peer until stdin ends.
func Run(name string, in io.Reader, out io.Writer, args []string) error {
	switch name {
	case Delta, SotW:
		return runSnapshotCache(gob.NewDecoder(in), gob.NewEncoder(out))
	case Informers:
		if len(args) != 1 {
			return fmt.Errorf("%s needs the API server's URL", name)
		}
		return runInformers(args[0], in, gob.NewEncoder(out))
	}
	return fmt.Errorf("no such peer: %s", name)
}

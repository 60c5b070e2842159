package e2e

import "testing"

// The tests with a folder as the source, in the order in which they are run:
// first those that need an Envoy in which nothing was ever removed. (One that has
// removed a TLS host goes on asking for its certificate until its connections
// are drained.)

func TestFolderFirstStart(t *testing.T) { firstStart(t, inFolder(t)) }

// HF-01
func TestFolderRestart(t *testing.T) { restarts(t, inFolder(t)) }

// HF-13
func TestFolderEditIsSmall(t *testing.T) { edits(t, inFolder(t)) }

// HF-05
func TestFolderNewHostsUnderLoad(t *testing.T) { newHosts(t, inFolder(t)) }

// HF-07
func TestFolderBadInput(t *testing.T) { badInput(t, inFolder(t)) }

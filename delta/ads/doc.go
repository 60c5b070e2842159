// Package ads serves the incremental aggregated discovery service over gRPC. It
// moves messages between clients and the machines of package delta and decides
// nothing itself.
//
// Each stream has three goroutines: one receives, one sends, and one loop owns
// the machine. A client that stops reading stops its sender alone; since a
// machine has at most one response of each type in flight, what can pile up for
// it is bounded. Server.Wait waits for all of them.
package ads

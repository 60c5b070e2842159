// Package e2e holds the tests on real parts: bin/holdfast as a subprocess, a
// real Envoy under load, a real kube-apiserver with etcd. All of it runs in a
// network namespace of its own when the tests run as root.
//
//	HOLDFAST_TEST_ENVOY    the envoy binary; without it everything is skipped
//	HOLDFAST_TEST_K8S_BIN  a folder with etcd and kube-apiserver; without it
//	                       the tests with an API server are skipped
//	HOLDFAST_TEST_BIN      the holdfast binary; without it one is built
//	HOLDFAST_TEST_KEEP     a folder in which logs and objects are kept
//
// Three worlds are made once, at their first use, and shared by their tests: a
// folder and a cluster of 3,407 hosts each, and a small cluster for what needs
// many changes. A test leaves its world as it found it: running, settled, every
// host served.
//
// Two build tags add what takes long: soak (make soak), and faults (make faults),
// which writes docs/faults.md.
//
// The parts that the tests are made of are packages of their own: fixture (the
// objects), backend, load, proc (processes), envoy, holdfast, kube, relay
// and rig, which puts them together.
package e2e

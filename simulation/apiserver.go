package simulation

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/holdfast-xds/holdfast/index"
	"github.com/holdfast-xds/holdfast/kinds"
)

// version is a revision of the model store: one counter for all kinds, like
// etcd's.
type version = index.ResourceVersion

// health of a kind at the API server.
type health uint8

const (
	served health = iota
	forbidden
	failing
	unserved
)

// event is one change of an object. object is the last state for a deletion.
type event struct {
	version version
	deleted bool
	object  *index.Object
}

// apiServer is a store with a history and some replicas in front of it that may
// lag. Lists are consistent: they are answered from the newest state. Watches
// are answered by one replica, as far as it has come.
type apiServer struct {
	now      version
	compact  version // events up to here can't be watched any more
	objects  map[index.ObjectKey]*index.Object
	history  map[index.Kind][]event
	health   map[index.Kind]health
	replicas []version

	// changed is told of every event, in order.
	changed func(event)
}

func newAPIServer(replicas int) *apiServer {
	return &apiServer{
		objects: map[index.ObjectKey]*index.Object{}, history: map[index.Kind][]event{},
		health: map[index.Kind]health{}, replicas: make([]version, replicas),
	}
}

// body is what the generator makes: a typed object whose metadata the server
// completes.
type body interface {
	v1.Object
}

func keyOf(kind index.Kind, o body) index.ObjectKey {
	return index.ObjectKey{Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName()}
}

// put creates or replaces an object.
func (a *apiServer) put(kind index.Kind, o body) {
	k := keyOf(kind, o)
	a.now++
	o.SetResourceVersion(a.now.String())
	o.SetCreationTimestamp(timestamp(a.now))
	if old := a.objects[k]; old != nil {
		o.SetCreationTimestamp(old.Body.(body).GetCreationTimestamp())
	}
	obj := &index.Object{ObjectKey: k, Version: a.now, Body: o}
	a.objects[k] = obj
	a.record(event{version: a.now, object: obj})
}

// remove deletes an object, if it is there.
func (a *apiServer) remove(k index.ObjectKey) bool {
	old := a.objects[k]
	if old == nil {
		return false
	}
	a.now++
	delete(a.objects, k)
	a.record(event{version: a.now, deleted: true, object: old})
	return true
}

func (a *apiServer) record(e event) {
	a.history[e.object.Kind] = append(a.history[e.object.Kind], e)
	if a.changed != nil {
		a.changed(e)
	}
}

// list gives a kind's objects at this moment, ordered by key.
func (a *apiServer) list(kind index.Kind) []*index.Object {
	var out []*index.Object
	for k, o := range a.objects {
		if k.Kind == kind {
			out = append(out, o)
		}
	}
	slices.SortFunc(out, func(x, y *index.Object) int { return compareKeys(x.ObjectKey, y.ObjectKey) })
	return out
}

func compareKeys(x, y index.ObjectKey) int {
	if c := strings.Compare(x.Namespace, y.Namespace); c != 0 {
		return c
	}
	return strings.Compare(x.Name, y.Name)
}

// after gives a kind's events in (since, upTo].
func (a *apiServer) after(kind index.Kind, since, upTo version) []event {
	h := a.history[kind]
	lo := sortSearch(h, since)
	hi := sortSearch(h, upTo)
	if hi <= lo {
		return nil
	}
	return h[lo:hi]
}

// sortSearch gives the number of events up to and including v.
func sortSearch(h []event, v version) int {
	i, _ := slices.BinarySearchFunc(h, v+1, func(e event, v version) int {
		switch {
		case e.version < v:
			return -1
		case e.version > v:
			return 1
		}
		return 0
	})
	return i
}

// unchangedUntil: a view of the kind as it was at v is the view as it was at
// every version from v up to the result.
func (a *apiServer) unchangedUntil(kind index.Kind, v version) version {
	h := a.history[kind]
	if i := sortSearch(h, v); i < len(h) {
		return h[i].version - 1
	}
	return a.now
}

// unserve deletes a kind's objects and then the kind, as the deletion of a CRD
// does.
func (a *apiServer) unserve(kind index.Kind) {
	for _, o := range a.list(kind) {
		a.remove(o.ObjectKey)
	}
	a.health[kind] = unserved
}

// allKinds in the order of their table.
var allKinds = func() []index.Kind {
	var out []index.Kind
	for i := range kinds.All {
		out = append(out, kinds.All[i].Kind)
	}
	return out
}()

func (e event) String() string {
	if e.deleted {
		return fmt.Sprintf("%s deleted at %d", e.object.ObjectKey, e.version)
	}
	return fmt.Sprintf("%s at %d", e.object.ObjectKey, e.version)
}

// listAt gives a kind's objects as they were at a version, ordered by key.
func (a *apiServer) listAt(kind index.Kind, v version) []*index.Object {
	then := map[index.ObjectKey]*index.Object{}
	for _, e := range a.after(kind, 0, v) {
		if e.deleted {
			delete(then, e.object.ObjectKey)
		} else {
			then[e.object.ObjectKey] = e.object
		}
	}
	return slices.SortedFunc(maps.Values(then), func(x, y *index.Object) int { return compareKeys(x.ObjectKey, y.ObjectKey) })
}

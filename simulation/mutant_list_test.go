package simulation_test

// mutants, by what they forget.
var mutants = []mutant{
	{
		name: "a removal needs no proof", file: "index/proof.go",
		old: "	if len(lacks) > 0 {\n		return Proof{}, lacks\n	}\n",
		new: "	_ = lacks\n",
	},
	{
		name: "frontiers are ignored: observed is enough", file: "index/kind.go",
		old: "return f.Observed && f.Version >= v }",
		new: "_ = v; return f.Observed }",
	},
	{
		name: "a part of a list is taken for the whole", file: "index/tx.go",
		old: "	t.keep(old, o)\n}\n",
		new: "	t.keep(old, o)\n	if !inOrder {\n		t.setKind(o.Kind, func(row *KindRow) { row.Frontier = Frontier{Observed: true, Version: max(o.Version, row.Frontier.Version)} })\n	}\n}\n",
	},
	{
		name: "a relist clears before it replaces", file: "simulation/watch.go",
		old: "	if !w.observed {\n		return w.turn(index.Listing, \"\", at)\n	}\n	return nil\n",
		new: "	return append(w.turn(index.Listing, \"\", at), index.Replace{Kind: w.kind, Version: w.listedAt})\n",
	},
	{
		name: "a list is read from a replica that lags", file: "simulation/watch.go",
		old: "	w.rest = w.server.listAt(w.kind, w.server.now)\n",
		new: "	w.rest = w.server.listAt(w.kind, w.server.replicas[w.replica])\n",
	},
	{
		name: "forbidden is taken for absent", file: "index/kind.go",
		old: "func (k *KindRow) absent() bool { return k.State == Absent && !k.Required }",
		new: "func (k *KindRow) absent() bool { return k.State == Absent && !k.Required || k.State == Forbidden }",
	},
	{
		name: "needs are ignored", file: "index/provenance.go",
		old: "		if b.Need&n != 0 {\n			out = append(out, b.Kind)\n		}\n",
		new: "		_ = b.Need & n\n",
	},
	{
		name: "a tombstone's ordinal is given away at once", file: "index/tombstone.go",
		old: "			if grave.Removed > slowest {\n				break\n			}\n",
		new: "			_ = slowest\n",
	},
	{
		name: "a foreign token is taken for ours", file: "index/token.go",
		old: "Foreign: source != s.source}",
		new: "Foreign: source != s.source && false}",
	},
	{
		name: "what shrinks is sent at once", file: "delta/rule.go",
		old: "		return sending(r, changeLacks(s, r, held))\n",
		new: "		return sending(r, nil)\n",
	},
	{
		name: "listeners are sent before all hosts are known", file: "delta/rule.go",
		old: "	if r.ClosedWorld {\n",
		new: "	if r.ClosedWorld && false {\n",
	},
	{
		name: "versions move on send", file: "delta/pump.go",
		old: "	s.followUp(t, d.send)\n	return r\n",
		new: "	s.accepted(t, f)\n	s.followUp(t, d.send)\n	return r\n",
	},
	{
		name: "a NACK is taken for an ACK", file: "delta/ack.go",
		old: "	if req.GetErrorDetail() != nil {\n",
		new: "	if req.GetErrorDetail() != nil && false {\n",
	},
	{
		name: "a route leaves before its cluster is acknowledged", file: "delta/order.go",
		old: "		if d := s.clusterAbsent(ref, held); d.why != \"\" {\n			return d\n		}\n",
		new: "		_ = held\n",
	},
	{
		name: "a cluster goes before the route's ACK", file: "delta/removal.go",
		old: "	case Cluster:\n		return s.clusterStillUsed(k)\n",
		new: "	case Cluster:\n		return delay{}\n",
	},
	{
		name: "a cluster that is being removed counts as there", file: "delta/subscription.go",
		old: "	return t.holds(name, row) && !t.beingRemoved(name)\n",
		new: "	return t.holds(name, row)\n",
	},
	{
		name: "endpoints are not sent again behind their cluster", file: "delta/order.go",
		old: "				e.want(ref.Name, always)\n",
		new: "				_ = always\n",
	},
	{
		name: "a first response may be a part", file: "delta/pump.go",
		old: "func (t *subscription) opening() bool { return t.fresh && !t.answered && t.wildcard }",
		new: "func (t *subscription) opening() bool { return t.fresh && !t.answered && t.wildcard && false }",
	},
	{
		name: "a listener leaves before what it names can be answered", file: "delta/order.go",
		old: "		if d := s.referentNotYet(ref); d.why != \"\" {\n			d.on = append(d.on, ref)\n			return d\n		}\n",
		new: "		_ = ref\n",
	},
	{
		name: "what a client says it holds is ignored", file: "delta/request.go",
		old: "		t.hold(name, holding{token: s.snap.ParseToken(version), version: version}, row, s.snap)\n",
		new: "		_, _ = version, row\n",
	},
	{
		name: "an equal body hides that we lag", file: "delta/subscription.go",
		old: "	if same && covers(s, now, &h.token) {\n",
		new: "	if _ = covers; same {\n",
	},
	{
		name: "what changed twice is moved twice", file: "delta/stream.go",
		old: "			if _, again := seen[k]; !again {\n",
		new: "			if _, again := seen[k]; !again || true {\n",
	},
	{
		name: "removed in silence: nobody is asked what it holds", file: "delta/removal.go",
		old: "	if s.now.Before(due) {\n		s.wakeAt(due)\n		return false\n	}\n	return true\n}\n\n// stillUsed",
		new: "	_ = due\n	return true\n}\n\n// stillUsed",
	},
	{
		name: "a derivation is not run again when its kind completes", file: "index/rules.go",
		old: "	r.reading(readKind(kind))\n",
		new: "",
	},
	{
		name: "a relist changes what is there before it ends", file: "index/tx.go",
		old: "	return old != nil && row != nil && row.Frontier.Observed && o.Version != 0\n",
		new: "	return old != nil && row != nil && row.Frontier.Observed && o.Version != 0 && false\n",
	},
	{
		name: "a relist keeps what is gone", file: "index/replace.go",
		old: "	t.removeUnlisted(c)\n",
		new: "",
	},
	{
		name: "what is unsubscribed still counts as held", file: "delta/request.go",
		old: "		s.forget(t, name, s.snap.Resolve(t.key(name)))\n",
		new: "",
	},
	{
		name: "clusters are sent before the client told of its endpoints", file: "delta/order.go",
		old: "	return url == Endpoints && s.subs[url] == nil",
		new: "	return url == Endpoints && false && s.subs[url] == nil",
	},
	{
		name: "a bookmark moves no frontier", file: "index/tx.go",
		old: "	case Bookmark:\n		t.advance(c.Kind, c.Version, false)\n",
		new: "	case Bookmark:\n",
	},
	{
		name: "endpoints that can't leave are not made up for", file: "delta/pump.go",
		old: "	return t.others[name].row\n",
		new: "	return nil\n",
	},
	{
		name: "what is to be looked at again counts as stopped", file: "delta/subscription.go",
		old: "	return withheld && !again\n",
		new: "	_ = again\n	return withheld\n",
	},
}

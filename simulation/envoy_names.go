package simulation

func (e *envoy) endpointNames() map[string]struct{} {
	out := map[string]struct{}{}
	for _, c := range e.clusters {
		for _, x := range []*held{c.active, c.warming} {
			if x != nil && x.parsed.(*parsedCluster).eds {
				out[x.parsed.(*parsedCluster).endpoints] = struct{}{}
			}
		}
	}
	return out
}

// chains gives the filter chains of all listeners, in service or warming.
func (e *envoy) chains(visit func(*parsedChain)) {
	for _, l := range e.listeners {
		for _, x := range []*held{l.active, l.warming} {
			if x == nil {
				continue
			}
			chains := x.parsed.(*parsedListener).chains
			for i := range chains {
				visit(&chains[i])
			}
		}
	}
}

func (e *envoy) usesScopes() bool {
	used := false
	e.chains(func(c *parsedChain) { used = used || c.scope != "" })
	return used
}

func (e *envoy) secretNames() map[string]struct{} {
	out := map[string]struct{}{}
	e.chains(func(c *parsedChain) {
		for _, name := range c.secrets {
			out[name] = struct{}{}
		}
	})
	return out
}

func (e *envoy) routeNames() map[string]struct{} {
	out := map[string]struct{}{}
	e.chains(func(c *parsedChain) {
		if c.routes != "" {
			out[c.routes] = struct{}{}
		}
	})
	for _, x := range e.scopes {
		out[x.parsed.(*parsedScope).routes] = struct{}{}
	}
	return out
}

package arbitertest

import "github.com/ordergrid/ordergrid/grid-node/arbiter"

// Sites are the cases of partitions in a pair of sites.
func Sites() []Transition {
	with := func(r arbiter.Record, change func(*arbiter.Record)) arbiter.Record {
		change(&r)
		return r
	}
	standby := func(term uint64) func(*arbiter.Record) {
		return func(r *arbiter.Record) { r.Standby, r.Term = true, term }
	}
	active := func(term uint64) func(*arbiter.Record) {
		return func(r *arbiter.Record) { r.Term = term }
	}
	var of arbiter.Record
	of.Spec.Standby, of.Spec.Source = true, "site a, a.example:7400"
	second := with(Rec(2, 1, "c2", A, A, B), func(r *arbiter.Record) { r.Spec = of.Spec; r.Standby = true })
	clean := with(second, func(r *arbiter.Record) {
		r.Spec.Promote = arbiter.Promote{Term: 2, Seq: 9, Hash: "00000000000000ff"}
	})
	forced := with(second, func(r *arbiter.Record) { r.Spec.Promote = arbiter.Promote{Term: 2, Forced: true} })
	pair := Rec(2, 1, "c2", A, A, B)
	demoted := with(pair, func(r *arbiter.Record) { r.Spec.Demote = arbiter.Demote{Wanted: true} })
	later := with(pair, func(r *arbiter.Record) { r.Spec.Demote = arbiter.Demote{Wanted: true, Term: 1} })
	fenced := with(pair, standby(3))
	return []Transition{
		{"first claim of a standby", of, with(Rec(1, 1, "c1", A, A), standby(0)), ""},
		{"first claim of a standby as an active site", of, Rec(1, 1, "c1", A, A), "role Active at the first claim, and spec.site.role is Standby; claim it as Standby"},
		{"first claim of an active site as a standby", arbiter.Record{}, with(Rec(1, 1, "c1", A, A), standby(0)), "role Standby at the first claim, and spec.site.role is Active"},
		{"first claim in a term", of, with(Rec(1, 1, "c1", A, A), standby(1)), "term 1 at the first claim"},
		{"a take-over in a standby", second, with(Rec(3, 1, "c3", B, B), standby(0)), ""},
		{"a standby forgotten by a take-over", second, Rec(3, 1, "c3", B, B), "role Active in term 0 without a promotion: spec.site.promote names term 0, and the site is in term 0"},
		{"a clean promotion", clean, with(Rec(9, 1, "c3", A, A, B), active(2)), ""},
		{"a promotion into the lineage of its log", clean, with(Rec(9, 4, "c3", A, A, B), active(2)), ""},
		{"a forced promotion", forced, with(Rec(3, 2, "c3", B, B), active(2)), ""},
		{"a promotion to an earlier epoch", clean, with(Rec(1, 1, "c3", A, A), active(2)), "epoch 1 does not follow 2"},
		{"a promotion by a process that lacks the log", forced, with(Rec(9, 2, "c3", C, C), active(2)), "was not in inSync"},
		{"a promotion in another term", clean, with(Rec(9, 1, "c3", A, A), active(3)), "role Active in term 3 without a promotion: spec.site.promote names term 2"},
		{"a promotion that was not decided", second, with(Rec(9, 1, "c3", A, A), active(2)), "role Active in term 2 without a promotion"},
		{"a promotion without an epoch", clean, with(pair, active(2)), "already taken"},
		{"a jump of the epoch in a standby", clean, with(Rec(9, 1, "c3", A, A), standby(0)), "epoch 9 does not follow 2"},
		{"a jump of the lineage in a standby", clean, with(Rec(3, 3, "c3", A, A), standby(0)), "lineage 3 does not follow 1"},
		{"a demotion", demoted, with(Rec(3, 1, "c3", A, A, B), standby(0)), ""},
		{"a demotion that was not decided", pair, with(Rec(3, 1, "c3", A, A, B), standby(0)), "role Standby without a demotion: spec.site.demote does not name the term 0"},
		{"a demotion in another term", later, with(Rec(3, 1, "c3", A, A, B), standby(0)), "role Standby without a demotion"},
		{"a demotion with a jump of the epoch", demoted, with(Rec(9, 1, "c3", A, A, B), standby(0)), "epoch 9 does not follow 2"},
		{"fenced by a later term", pair, with(Rec(3, 1, "c3", A, A, B), standby(3)), ""},
		{"a later term and still active", pair, with(Rec(3, 1, "c3", A, A, B), active(3)), "term 3 does not follow 0"},
		{"the term falls", fenced, with(Rec(3, 1, "c3", A, A, B), standby(1)), "term 1 is below 3"},
		{"the term is forgotten", fenced, Rec(3, 1, "c3", A, A, B), "term 0 is below 3"},
	}
}

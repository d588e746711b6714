package replica

// admission is what this replica knows of it.
func (r *Replica) admission() Admission {
	switch {
	case r.admissionRevision == 0:
		return AdmissionUnknown
	case r.closed:
		return AdmissionClosed
	}
	return AdmissionOpen
}

// observeAdmission takes over whether the partition takes new sessions and orders. The operator gives a partition up once
// all who may become its primary have said that it is closed, so that word has to stand. But a watch lags, a read may have
// been overtaken, and a primary may tell of what it heard long ago. Decisions are numbered, so the later one counts. An
// earlier one counts when the arbiter itself (fresh) shows it twice: the second read began after the later one was known,
// so the arbiter has lost its memory.
func (r *Replica) observeAdmission(a Admission, revision uint64, fresh bool) {
	switch {
	case a == AdmissionUnknown:
		return
	case revision >= r.admissionRevision || mutant(mutLateWatchOpens):
	case !fresh:
		r.readConfig()
		return
	case r.admissionDoubt != r.admissionRevision:
		r.admissionDoubt = r.admissionRevision
		r.askConfig()
		return
	}
	if revision >= r.admissionRevision {
		r.admissionDoubt = 0
	}
	r.closed, r.admissionRevision = a == AdmissionClosed, revision
}

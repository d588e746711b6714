package metrics

import "github.com/ordergrid/ordergrid/grid-node/wire"

// What reads a node: questions to views, and those that follow the log.

func (e emitter) questions(q *Questions) {
	e.gauge(questionsOpen, float64(q.Open))
	for code, n := range q.Ends {
		e.counter(questionEnds, n, snake(wire.QueryEndCode(code).String()))
	}
	e.counter(questionsTurn, q.Rejected)
	e.counter(questionRows, q.Scanned)
	e.counter(questionsGiven, q.Returned)
}

func (e emitter) follow(f *Follow) {
	e.gauge(followStreams, float64(f.Streams))
	e.gauge(followWindows, float64(f.Windows))
	e.counter(followExamined, f.Examined)
	e.counter(followEntries, f.Entries)
	e.counter(followBytes, f.Bytes)
	for reason, n := range f.Ends {
		name := "connection_lost"
		if reason != 0 {
			name = snake(wire.EndReason(reason).String())
		}
		e.counter(followEnds, n, name)
	}
	e.counter(followRejected, f.Rejected)
}

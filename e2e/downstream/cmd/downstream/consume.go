package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
)

// consume prints key, headers and value of the records of a topic, as a consumer with read_committed gets them, until
// ctx ends. args are the address of a broker and the topic.
func consume(ctx context.Context, args []string) error {
	cl, err := kgo.NewClient(kgo.SeedBrokers(args[0]), kgo.ConsumeTopics(args[1]), kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	if err != nil {
		return err
	}
	defer cl.Close()
	for {
		f := cl.PollFetches(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err := f.Err(); err != nil {
			return err
		}
		f.EachRecord(func(r *kgo.Record) {
			var headers []string
			for _, h := range r.Headers {
				headers = append(headers, h.Key+"="+string(h.Value))
			}
			fmt.Printf("%s  [%s]  %s\n", r.Key, strings.Join(headers, " "), strings.ReplaceAll(string(r.Value), "\x01", "|"))
		})
	}
}

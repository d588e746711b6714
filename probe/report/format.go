package report

import "github.com/ordergrid/ordergrid/internal/numtext"

func thousands(v float64) string { return numtext.Thousands(v) }

func short(v float64) string { return numtext.Short(v) }

// micros formats nanoseconds as microseconds.
func micros(ns float64) string { return short(ns / 1e3) }

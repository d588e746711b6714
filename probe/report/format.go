package report

import "github.com/ordergrid/ordergrid/internal/numtext"

func thousands(v float64) string { return numtext.Thousands(v) }

func short(v float64) string { return numtext.Short(v) }

// micros writes nanoseconds as microseconds.
func micros(ns float64) string { return short(ns / 1e3) }

// Thousands writes a whole number with separators: 6,000.
func Thousands(v float64) string { return numtext.Thousands(v) }

// Short writes a figure with three digits or more: 8.31, 83.1, 831, 8,310.
func Short(v float64) string { return numtext.Short(v) }

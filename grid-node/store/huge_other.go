//go:build !linux

package store

func adviseHuge([]byte) {}

func askHuge([]byte) {}

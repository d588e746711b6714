package linear_test

import (
	"testing"

	"github.com/ordergrid/ordergrid/internal/linear"
)

// version is what a change requires.
func version(v uint64) *uint64 { return &v }

// Each case is a history of one key; bad: no order of its operations explains it.
var keyedHistories = []struct {
	name string
	ops  []linear.KeyedOp
	bad  bool
}{
	{name: "nothing"},
	{name: "put, then read", ops: []linear.KeyedOp{
		{Kind: linear.Put, Call: 0, Return: 10, Value: "a", Version: 5}, {Client: 1, Kind: linear.Read, Call: 11, Return: 12, Value: "a", Version: 5}}},
	{name: "put, then not there", ops: []linear.KeyedOp{
		{Kind: linear.Put, Call: 0, Return: 10, Value: "a", Version: 5}, {Client: 1, Kind: linear.Read, Call: 11, Return: 12}}, bad: true},
	{name: "the value before, while it is replaced", ops: []linear.KeyedOp{
		{Kind: linear.Put, Call: 0, Return: 10, Value: "a", Version: 5}, {Kind: linear.Put, Call: 20, Return: 30, Value: "b", Version: 6},
		{Client: 1, Kind: linear.Read, Call: 21, Return: 22, Value: "a", Version: 5}}},
	{name: "the value before, after it was replaced", ops: []linear.KeyedOp{
		{Kind: linear.Put, Call: 0, Return: 10, Value: "a", Version: 5}, {Kind: linear.Put, Call: 20, Return: 30, Value: "b", Version: 6},
		{Client: 1, Kind: linear.Read, Call: 31, Return: 32, Value: "a", Version: 5}}, bad: true},
	{name: "both succeed at one version", ops: []linear.KeyedOp{
		{Kind: linear.Put, Call: 0, Return: 10, Value: "a", Version: 5},
		{Kind: linear.Put, Call: 20, Return: 30, If: version(5), Value: "b", Version: 6}, {Client: 1, Kind: linear.Put, Call: 20, Return: 30, If: version(5), Value: "c", Version: 7}}, bad: true},
	{name: "one of two succeeds at one version", ops: []linear.KeyedOp{
		{Kind: linear.Put, Call: 0, Return: 10, Value: "a", Version: 5},
		{Kind: linear.Put, Call: 20, Return: 30, If: version(5), Value: "b", Version: 6}, {Client: 1, Kind: linear.Put, Call: 20, Return: 30, If: version(5), Value: "c", Version: 6, Refused: true}}},
	{name: "refused at the version that it requires", ops: []linear.KeyedOp{
		{Kind: linear.Put, Call: 0, Return: 10, Value: "a", Version: 5}, {Kind: linear.Put, Call: 20, Return: 30, If: version(5), Value: "b", Version: 5, Refused: true}}, bad: true},
	{name: "taken twice", ops: []linear.KeyedOp{
		{Kind: linear.Put, Call: 0, Return: 10, Value: "a", Version: 5},
		{Kind: linear.Take, Call: 20, Return: 30, Value: "a", Version: 6, Found: true}, {Client: 1, Kind: linear.Take, Call: 20, Return: 30, Value: "a", Version: 7, Found: true}}, bad: true},
	{name: "taken once", ops: []linear.KeyedOp{
		{Kind: linear.Put, Call: 0, Return: 10, Value: "a", Version: 5},
		{Kind: linear.Take, Call: 20, Return: 30, Value: "a", Version: 6, Found: true}, {Client: 1, Kind: linear.Take, Call: 20, Return: 30}}},
	{name: "without an answer: taken, or not", ops: []linear.KeyedOp{
		{Kind: linear.Put, Call: 0, Return: 10, Value: "a", Version: 5}, {Kind: linear.Take, Call: 20, Return: linear.Never},
		{Client: 1, Kind: linear.Read, Call: 30, Return: 31, Value: "a", Version: 5}, {Client: 1, Kind: linear.Read, Call: 40, Return: 41}}},
	{name: "without an answer: taken, and there again", ops: []linear.KeyedOp{
		{Kind: linear.Put, Call: 0, Return: 10, Value: "a", Version: 5}, {Kind: linear.Take, Call: 20, Return: linear.Never},
		{Client: 1, Kind: linear.Read, Call: 30, Return: 31}, {Client: 1, Kind: linear.Read, Call: 40, Return: 41, Value: "a", Version: 5}}, bad: true},
	{name: "without an answer: applied if the version was there", ops: []linear.KeyedOp{
		{Kind: linear.Put, Call: 0, Return: 10, Value: "a", Version: 5}, {Kind: linear.Put, Call: 20, Return: linear.Never, If: version(4), Value: "b"},
		{Client: 1, Kind: linear.Read, Call: 30, Return: 31, Value: "b", Version: 6}}, bad: true},
	{name: "patched", ops: []linear.KeyedOp{
		{Kind: linear.Put, Call: 0, Return: 10, Value: "abcd", Version: 5}, {Kind: linear.Patch, Call: 20, Return: 30, Offset: 1, Value: "XY", Version: 6},
		{Kind: linear.Patch, Call: 31, Return: linear.Never, Offset: 4, Value: "!"},
		{Client: 1, Kind: linear.Read, Call: 40, Return: 41, Value: "aXYd", Version: 6}, {Client: 1, Kind: linear.Read, Call: 42, Return: 43, Value: "aXYd!", Version: 8}}},
	{name: "a patch is lost", ops: []linear.KeyedOp{
		{Kind: linear.Put, Call: 0, Return: 10, Value: "abcd", Version: 5}, {Kind: linear.Patch, Call: 20, Return: 30, Offset: 1, Value: "XY", Version: 6},
		{Client: 1, Kind: linear.Read, Call: 40, Return: 41, Value: "abcd", Version: 6}}, bad: true},
}

func TestCheckKeyed(t *testing.T) {
	for _, h := range keyedHistories {
		if err := linear.CheckKeyed(h.ops); (err != nil) != h.bad {
			t.Errorf("%s: %v", h.name, err)
		}
	}
}

// Package replay executes the log of a partition that matches again, independently of the grid:
// what a message asks for is read from its text once more, and matched by grid-node/match/naive.
// What it says an entry did is what every copy of the partition has to have done, to the byte.
//
// The log has to be there from its beginning: books of which a part is freed cannot be made again.
//
// Fills keeps the account of what copies say: that what was bought was sold, that positions and
// quantities add up. It knows neither books nor matching.
package replay

package generator

import (
	"bytes"
	"fmt"
)

// sides has the orders of a client buy and sell around one price, in a cycle: eight rest, then eight more trade with
// them, each with the best of the other side. However many clients there are, what rests of all is at most eight orders
// of each.
type sides struct {
	side, price []byte // the value of Side (54), the last digit of Price (44)
	at          int
}

// cycle is side and last digit of the price. Those that rest buy at 0 to 3 and sell at 5 to 8.
var cycle = [16][2]byte{
	{'1', '3'}, {'2', '5'}, {'1', '2'}, {'2', '6'}, {'1', '1'}, {'2', '7'}, {'1', '0'}, {'2', '8'},
	{'2', '0'}, {'1', '8'}, {'2', '0'}, {'1', '8'}, {'2', '0'}, {'1', '8'}, {'2', '0'}, {'1', '8'},
}

// newSides finds both fields in a message.
func newSides(msg []byte) (*sides, error) {
	side := bytes.Index(msg, []byte("\x0154=")) + len("\x0154=")
	price := bytes.Index(msg, []byte("\x0144=")) + len("\x0144=")
	if side < len("\x0154=") || price < len("\x0144=") {
		return nil, fmt.Errorf("%q has no side or no price", msg)
	}
	end := price + bytes.IndexByte(msg[price:], 1)
	return &sides{side: msg[side : side+1], price: msg[end-1 : end]}, nil
}

// next writes the fields of the next order and returns the difference of the sum of bytes.
func (s *sides) next() (sum uint32) {
	c := &cycle[s.at%len(cycle)]
	s.at++
	sum = uint32(c[0]) - uint32(s.side[0]) + uint32(c[1]) - uint32(s.price[0])
	s.side[0], s.price[0] = c[0], c[1]
	return sum
}

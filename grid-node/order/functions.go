package order

import (
	"crypto/sha256"
	"fmt"
)

// KindFunctions changes which functions of kind Post every copy calls when it stores an
// order; payload: a FunctionsChange. The modules are in the log, so that every copy that
// has the log can run them.
const KindFunctions Kind = 12

// Bounds of functions in the log.
const (
	MaxFunctions      = 8
	MaxFunctionModule = 256 << 10 // bytes
	MaxFunctionConfig = 4 << 10   // bytes
	MaxFunctionFuel   = 1_000_000
	MaxFunctionPages  = 64
	// MaxFunctionPiece is how many bytes of a module an entry has.
	MaxFunctionPiece = 16 << 10
)

// Function is a function of the log and what it is granted.
type Function struct {
	Name   string // as of a reader
	SHA256 [sha256.Size]byte
	Fuel   uint32 // of one call
	Pages  uint32 // memory in pages of 64 KiB
	Config string // given to it once
}

// FunctionsOp is a step of a change.
type FunctionsOp uint8

// Steps of a change, in their order.
const (
	FunctionsOffer FunctionsOp = 1 // these are to follow those in force
	FunctionsPiece FunctionsOp = 2 // a piece of a module of those
	FunctionsBegin FunctionsOp = 3 // from the next entry on those offered are in force
)

// FunctionsChange is the payload of an entry of kind functions.
//
//	off size field
//	 0  u8   op
//	 1  u8   functions, of an offer
//	 2  u16  0
//	 4  u32  size of the module, of a piece
//	 8  32   SHA-256 of the module, of a piece
//	40  u32  offset in the module, of a piece
//	44  u32  0
//	48  the piece; or of each function: SHA-256, fuel u32, pages u32, size of the
//	    configuration u16, size of the name u8, 5 bytes 0, name, configuration
type FunctionsChange struct {
	Op     FunctionsOp
	Offer  []Function
	SHA256 [sha256.Size]byte
	Size   uint32 // of the module
	Offset uint32
	Piece  []byte
}

const (
	functionsFixed = 48
	functionFixed  = 48
)

// Append appends the payload.
func (c *FunctionsChange) Append(dst []byte) []byte {
	dst = append(dst, byte(c.Op), byte(len(c.Offer)), 0, 0)
	dst = le.AppendUint32(dst, c.Size)
	dst = append(dst, c.SHA256[:]...)
	dst = le.AppendUint64(dst, uint64(c.Offset))
	for i := range c.Offer {
		dst = c.Offer[i].append(dst)
	}
	return append(dst, c.Piece...)
}

func (f *Function) append(dst []byte) []byte {
	dst = append(dst, f.SHA256[:]...)
	dst = le.AppendUint32(le.AppendUint32(dst, f.Fuel), f.Pages)
	dst = append(le.AppendUint16(dst, uint16(len(f.Config))), byte(len(f.Name)), 0, 0, 0, 0, 0)
	return append(append(dst, f.Name...), f.Config...)
}

// AppendFunctions appends definitions, as an offer has them.
func AppendFunctions(dst []byte, list []Function) []byte {
	for i := range list {
		dst = list[i].append(dst)
	}
	return dst
}

// ParseFunctions reads n definitions and returns the bytes behind them.
func ParseFunctions(b []byte, n int) (list []Function, rest []byte, err error) {
	bad := func(format string, args ...any) ([]Function, []byte, error) {
		return nil, nil, fmt.Errorf("function %d: "+format, append([]any{len(list)}, args...)...)
	}
	for range n {
		if len(b) < functionFixed {
			return bad("%d bytes, allowed: %d or more", len(b), functionFixed)
		}
		f := Function{Fuel: le.Uint32(b[32:]), Pages: le.Uint32(b[36:])}
		config, name := int(le.Uint16(b[40:])), int(b[42])
		if b[43]|b[44]|b[45]|b[46]|b[47] != 0 || len(b) < functionFixed+name+config {
			return bad("name of %d and configuration of %d bytes, allowed: as many as follow, behind zeros", name, config)
		}
		copy(f.SHA256[:], b)
		b = b[functionFixed:]
		f.Name, f.Config, b = string(b[:name]), string(b[name:name+config]), b[name+config:]
		if err := f.Validate(); err != nil {
			return bad("%w", err)
		}
		for i := range list {
			if list[i].Name == f.Name {
				return bad("name %q twice, allowed: once", f.Name)
			}
		}
		list = append(list, f)
	}
	return list, b, nil
}

// Validate checks the bounds of a function.
func (f *Function) Validate() error {
	switch {
	case !IsReaderName(f.Name):
		return fmt.Errorf("name %q, allowed: 1..%d lowercase letters, digits and hyphens", f.Name, MaxReaderName)
	case f.Fuel < 1 || f.Fuel > MaxFunctionFuel:
		return fmt.Errorf("%s: fuel %d, allowed: 1..%d", f.Name, f.Fuel, MaxFunctionFuel)
	case f.Pages < 1 || f.Pages > MaxFunctionPages:
		return fmt.Errorf("%s: memory of %d pages of 64 KiB, allowed: 1..%d", f.Name, f.Pages, MaxFunctionPages)
	case len(f.Config) > MaxFunctionConfig:
		return fmt.Errorf("%s: configuration of %d bytes, allowed: at most %d", f.Name, len(f.Config), MaxFunctionConfig)
	}
	return nil
}

// ParseFunctionsChange reads the payload of an entry of kind functions. Piece refers to b.
func ParseFunctionsChange(b []byte) (c FunctionsChange, err error) {
	if len(b) < functionsFixed {
		return c, fmt.Errorf("functions: %d bytes, allowed: %d or more", len(b), functionsFixed)
	}
	c.Op, c.Size, c.Offset = FunctionsOp(b[0]), le.Uint32(b[4:]), le.Uint32(b[40:])
	copy(c.SHA256[:], b[8:40])
	rest, zero := b[functionsFixed:], le.Uint16(b[2:]) == 0 && le.Uint32(b[44:]) == 0
	empty := c.Size == 0 && c.Offset == 0 && c.SHA256 == [sha256.Size]byte{}
	switch {
	case !zero:
	case c.Op == FunctionsOffer && empty && b[1] <= MaxFunctions:
		if c.Offer, rest, err = ParseFunctions(rest, int(b[1])); err != nil || len(rest) == 0 {
			return c, err
		}
	case c.Op == FunctionsPiece && b[1] == 0 && len(rest) > 0 && len(rest) <= MaxFunctionPiece && c.Size <= MaxFunctionModule && uint64(c.Offset)+uint64(len(rest)) <= uint64(c.Size):
		c.Piece = rest
		return c, nil
	case c.Op == FunctionsBegin && b[1] == 0 && empty && len(rest) == 0:
		return c, nil
	}
	return c, fmt.Errorf("functions: op %d with %d functions, module of %d bytes, offset %d, %d bytes behind; allowed: 1 an offer of at most %d, 2 a piece of at most %d bytes within a module of at most %d, 3 nothing else",
		b[0], b[1], c.Size, c.Offset, len(rest), MaxFunctions, MaxFunctionPiece, MaxFunctionModule)
}

package function

// reader decodes the binary format. The first failure stays in err; after it every read
// returns zero and the position is the end.
type reader struct {
	buf  []byte
	pos  int
	base int // offset of buf in the module, for messages
	err  error
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = refuse(r.base+r.pos, format, args...)
	}
	r.pos = len(r.buf)
}

func (r *reader) done() bool { return r.pos >= len(r.buf) }

func (r *reader) byte() byte {
	if r.pos >= len(r.buf) {
		r.fail("unexpected end")
		return 0
	}
	r.pos++
	return r.buf[r.pos-1]
}

// u32 reads an unsigned LEB128 number of at most 5 bytes.
func (r *reader) u32() uint32 {
	var v uint64
	for shift := 0; shift < 35; shift += 7 {
		b := r.byte()
		v |= uint64(b&0x7f) << shift
		if b < 0x80 {
			if v > 1<<32-1 {
				r.fail("number %d exceeds 32 bits", v)
				return 0
			}
			return uint32(v)
		}
	}
	r.fail("number is longer than 5 bytes")
	return 0
}

// skipSigned passes a signed LEB128 number of at most the bytes given. Whether its unused
// bits are right is left to wazero.
func (r *reader) skipSigned(limit int) {
	for range limit {
		if r.byte() < 0x80 {
			return
		}
	}
	r.fail("number is longer than %d bytes", limit)
}

func (r *reader) take(n uint32) []byte {
	if uint64(n) > uint64(len(r.buf)-r.pos) {
		r.fail("%d bytes announced, %d left", n, len(r.buf)-r.pos)
		return nil
	}
	r.pos += int(n)
	return r.buf[r.pos-int(n) : r.pos]
}

// count reads the length of a vector and bounds it, before anything is allocated for it.
func (r *reader) count(what string, limit int) int {
	n := r.u32()
	if uint64(n) > uint64(limit) {
		r.fail("%d %s, at most %d are allowed", n, what, limit)
		return 0
	}
	return int(n)
}

func appendU32(dst []byte, v uint32) []byte {
	for ; v >= 0x80; v >>= 7 {
		dst = append(dst, byte(v)|0x80)
	}
	return append(dst, byte(v))
}

func appendS64(dst []byte, v int64) []byte {
	for {
		b := byte(v & 0x7f)
		v >>= 7
		if v == 0 && b&0x40 == 0 || v == -1 && b&0x40 != 0 {
			return append(dst, b)
		}
		dst = append(dst, b|0x80)
	}
}

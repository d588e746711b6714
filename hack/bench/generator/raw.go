package generator

// rawDriver talks to a relay: requests and answers of fixed sizes, nothing else.
type rawDriver struct{ spec *Spec }

func (d *rawDriver) Close() error { return nil }

func (d *rawDriver) Connect(n int) (Conn, error) {
	s, err := dial(d.spec.Addresses[n%len(d.spec.Addresses)], d.spec.Shape.Threads <= pinnedThreads)
	if err != nil {
		return nil, err
	}
	return &rawConn{socket: s, request: make([]byte, d.spec.Request), reply: d.spec.Reply, in: make([]byte, 256<<10)}, nil
}

type rawConn struct {
	*socket
	request []byte
	reply   int
	in      []byte
}

func (c *rawConn) Close() { c.close() }

func (c *rawConn) Submit(order []byte) error {
	if err := c.write(order); err != nil {
		return err
	}
	for got := 0; got < c.reply; {
		n, err := c.read(c.in[got:c.reply])
		if err != nil {
			return err
		}
		got += n
	}
	return nil
}

// Get is a request of the size of a read; there is nothing to look up.
func (c *rawConn) Get(key []byte) error {
	copy(c.request, key)
	return c.Submit(c.request)
}

func (c *rawConn) Pipe(op Op, depth int, s *Stream) error {
	rest := 0
	put := func(m []byte) error {
		if op == Get {
			copy(c.request, m)
			m = c.request
		}
		c.out = append(c.out, m...)
		return nil
	}
	return s.pipe(depth, put, c.flush, func(int) (int, error) {
		n, err := c.read(c.in)
		whole := (rest + n) / c.reply
		rest = (rest + n) % c.reply
		return whole, err
	})
}

package sql

// set reads SET and RESET.
func (p *parser) set() (Statement, *Error) {
	if p.take("reset") {
		switch {
		case p.takeAll("time", "zone"):
			return &Set{Name: "timezone", Default: true}, p.finish()
		case p.take("all"):
			return &Set{Name: "all", Default: true}, p.finish()
		case p.takeAll("session", "authorization"):
			return &Simple{Verb: Quiet, Name: "RESET"}, p.finish()
		}
		n, err := p.setting()
		if err != nil {
			return nil, err
		}
		return &Set{Name: n, Default: true}, p.finish()
	}
	p.step()
	s := &Set{}
	switch {
	case p.take("local"):
		s.Local = true
	case p.takeAll("session", "characteristics", "as", "transaction"):
		write := p.now().is("read") && p.t[min(p.i+1, len(p.t)-1)].is("write")
		err := p.modes()
		if err == nil && (p.readOnly || write) {
			return &Set{Name: "default_transaction_read_only", Values: []string{map[bool]string{true: "on", false: "off"}[p.readOnly]}, Session: true}, nil
		}
		return &Simple{Verb: Quiet, Name: "SET"}, err
	case p.takeAll("session", "authorization"), p.take("role"):
		return &Refused{unsupported(p.now().at, "SET SESSION AUTHORIZATION and SET ROLE", "Connect as the other user.")}, nil
	case p.take("session"):
	}
	switch {
	case p.take("transaction"):
		return &Simple{Verb: Quiet, Name: "SET"}, p.modes()
	case p.take("names"):
		s.Name = "client_encoding"
		return s, p.values(s)
	case p.takeAll("time", "zone"):
		s.Name = "timezone"
		return s, p.values(s)
	}
	var err *Error
	if s.Name, err = p.setting(); err != nil {
		return nil, err
	}
	if !p.take("to") && !p.take("=") {
		return nil, p.wrong()
	}
	return s, p.values(s)
}

// setting reads the name of a parameter.
func (p *parser) setting() (string, *Error) {
	n, err := p.name()
	for err == nil && p.take(".") {
		var more string
		more, err = p.name()
		n += "." + more
	}
	return n, err
}

func (p *parser) values(s *Set) *Error {
	if p.take("default") || s.Name == "timezone" && p.take("local") {
		s.Default = true
		return p.finish()
	}
	for {
		minus := p.take("-")
		t := p.step()
		switch {
		case t.kind == number, !minus && (t.kind == text || t.kind == quoted || t.kind == word && (!reserved[t.text] || t.text == "on" || t.text == "true" || t.text == "false")):
		default:
			p.i--
			if t.kind == end {
				p.i = len(p.t) - 1
			}
			return p.wrong()
		}
		if minus {
			t.text = "-" + t.text
		}
		s.Values = append(s.Values, t.text)
		if !p.take(",") {
			return p.finish()
		}
	}
}

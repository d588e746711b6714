package client

import (
	"context"

	"github.com/ordergrid/ordergrid/grid-node/query"
	"github.com/ordergrid/ordergrid/grid-node/query/statement"
	"github.com/ordergrid/ordergrid/grid-node/view"
)

// QueryText is Query for a question as text, of package statement: a select of orders, such as "select ClOrdID, Price from
// orders where Account = 'A17' and State = 'new' order by Received desc limit 100". The columns of the answer are those of
// the statement, in its order. further are the columns that the grid's views have beside the usual ones
// (spec.orderIndex); any other tag is the text Tag5001. An error in the text is a *statement.Error, with its position and
// what is allowed there. Values in a text have to be quoted: prefer Query where a part of the question is input.
func (c *Client) QueryText(ctx context.Context, text string, further ...view.Extra) (*Answer, error) {
	s, err := statement.Parse(text, statement.Columns(further...))
	if err != nil {
		return nil, err
	}
	a, err := c.Query(ctx, Query{Query: s.Query})
	if err != nil {
		return nil, err
	}
	columns := make([]query.Column, len(s.Names))
	for i, at := range s.Place {
		columns[i] = query.Column{Name: s.Names[i], Kind: a.Columns[at].Kind}
	}
	for i, row := range a.Rows {
		a.Rows[i] = s.Row(row)
	}
	a.Columns = columns
	return a, nil
}
